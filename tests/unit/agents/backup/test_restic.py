"""restic's output and exit codes, with a program that plays restic."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest

from soperator.agents.backup.__main__ import ending
from soperator.agents.backup.errors import BackupError, Reason
from soperator.agents.backup.restic import Restic, snapshot_of
from soperator.reconcile.backup.result import REASONS

SUMMARY = {
    "message_type": "summary",
    "snapshot_id": "0123456789abcdef",
    "total_bytes_processed": 5,
    "data_added_packed": 3,
}


def fake(tmp_path, body):
    """A restic that is this shell script; it logs what it was asked for."""
    program = tmp_path / "restic"
    program.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/log\n{body}\n')
    program.chmod(0o755)
    return Restic("slurm/demo", (str(program),), "nightly")


def asked(tmp_path):
    return (tmp_path / "log").read_text().splitlines()


def test_the_summary_is_the_last_line():
    """Progress before it is skipped."""
    printed = json.dumps({"message_type": "status"}) + "\n" + json.dumps(SUMMARY) + "\n"
    assert snapshot_of(printed).name == "01234567"
    with pytest.raises(BackupError, match="no summary"):
        snapshot_of(json.dumps({"message_type": "status"}))


IDENTITY = 8 * "0123abcd"
CONFIG = f"""echo '{{"version": 2, "id": "{IDENTITY}"}}'"""
NEW = f"case $1 in cat) grep -q ^init LOG || exit 10; {CONFIG} ;; esac"


def test_a_repository_is_created_only_where_there_is_none(tmp_path):
    """Exit code 10 of `cat config` leads to `init`, success does not."""
    assert fake(tmp_path, NEW.replace("LOG", str(tmp_path / "log"))).prepare() == IDENTITY
    assert asked(tmp_path) == ["cat config", "init", "cat config", "unlock"]
    (tmp_path / "log").unlink()
    assert fake(tmp_path, CONFIG).prepare() == IDENTITY
    assert asked(tmp_path) == ["cat config", "unlock"]


def test_a_repository_that_had_backups_is_not_created_again(tmp_path):
    """An emptied claim would otherwise look well, with one backup; the same for another repository in its place."""
    with pytest.raises(BackupError, match=r"is gone, which had backups .*spec\.repository\.path") as failed:
        fake(tmp_path, "exit 10").prepare(IDENTITY)
    assert (failed.value.is_final, failed.value.reason) == (True, "RepositoryMissing")
    assert asked(tmp_path) == ["cat config"]
    with pytest.raises(BackupError, match=r"is another one \(0123abcd\) than that of the last backup \(89\)") as failed:
        fake(tmp_path, CONFIG).prepare("89")
    assert (failed.value.is_final, failed.value.reason) == (True, "RepositoryChanged")
    assert "unlock" not in asked(tmp_path)
    assert fake(tmp_path, CONFIG).prepare(IDENTITY) == IDENTITY


@pytest.mark.parametrize("config", ["{}", "[]", "", '{"id": 7}', '{"id": "' + "a" * 65 + '"}'])
def test_a_repository_whose_id_restic_has_not_made_is_refused(tmp_path, config):
    """Who knows the password can write any, and the status would have to be written with it again and again."""
    with pytest.raises(BackupError, match="has no id of restic: name another folder") as failed:
        fake(tmp_path, f"printf '%s' '{config}'").prepare()
    assert (failed.value.is_final, failed.value.reason) == (True, "RepositoryDamaged")
    assert asked(tmp_path) == ["cat config"]


RETRY = "Stat(<config/>) returned error, retrying after 1.05s: Stat: "


@pytest.mark.parametrize(
    ("cause", "reason", "is_final"),
    [
        ("The request signature we calculated does not match the signature you provided.", "StoreDenied", True),
        ("No user exists with the provided access key ID.", "StoreDenied", True),
        ("Access Denied.", "StoreDenied", True),
        ("The specified bucket does not exist.", "StoreUnreachable", False),
        ("Get https://x: dial tcp 10.0.0.1:7071: connect: connection refused", "StoreUnreachable", False),
        ("", "StoreUnreachable", False),
    ],
)
def test_a_store_that_does_not_answer_is_named_within_seconds(monkeypatch, tmp_path, cause, reason, is_final):
    """restic repeats a request for a quarter of an hour; what it says of each attempt is the cause."""
    monkeypatch.setattr("soperator.agents.backup.restic._ANSWERS", 0.5)
    monkeypatch.setenv("SOPERATOR_REPOSITORY", "https://s3.example.com/backups/restic")
    body = f"echo '{RETRY}{cause}' >&2\n" if cause else ""
    with pytest.raises(BackupError, match=r"https://s3\.example\.com/backups/restic") as failed:
        fake(tmp_path, f"{body}exec sleep 60").open()
    assert (failed.value.reason, failed.value.is_final) == (reason, is_final)
    assert cause.rstrip(".") in str(failed.value)


def test_reasons_of_the_program_are_those_of_the_operator():
    """The operator takes no other word for a reason."""
    assert set(get_args(Reason)) == REASONS
    assert ending(BackupError("it is", reason="WrongPassword")) == "soperator: WrongPassword: it is"
    assert ending(OSError("full")) == "soperator: BackupFailed: full"


def test_a_wrong_password_is_final_and_creates_nothing(tmp_path):
    """Exit code 12 names the field, and no repository is made over the present one."""
    with pytest.raises(BackupError, match=r"spec\.repository\.password") as failed:
        fake(tmp_path, "exit 12").prepare()
    assert failed.value.is_final
    assert asked(tmp_path) == ["cat config"]


def test_a_damaged_repository_is_final(tmp_path):
    """The message quotes restic check."""
    with pytest.raises(BackupError, match=r"damaged.*pack 5 is broken") as failed:
        fake(tmp_path, "echo pack 5 is broken >&2; exit 1").check("100%")
    assert failed.value.is_final


def test_a_lock_is_not_final(tmp_path):
    """Another attempt may find the repository free."""
    with pytest.raises(BackupError, match="locked") as failed:
        fake(tmp_path, "exit 11").forget(["--keep-last=7"])
    assert not failed.value.is_final


def test_only_snapshots_of_the_slurmbackup_are_forgotten(tmp_path):
    """Those of another cluster in the same repository stay, and those of another SlurmBackup of the same cluster, which may keep more."""
    fake(tmp_path, "exit 0").forget(["--keep-last=7", "--keep-daily=3"])
    tags = "--tag soperator,backup=nightly"
    words = f"forget --host slurm/demo {tags} --group-by host,tags --keep-last=7 --keep-daily=3 --prune"
    assert asked(tmp_path) == [words]
    (tmp_path / "log").unlink()
    fake(tmp_path, f"echo '{json.dumps(SUMMARY)}'").backup(tmp_path)
    assert asked(tmp_path) == [f"backup --json --host slurm/demo {tags} {tmp_path}"]


@pytest.mark.parametrize(("name", "found"), [("latest", "bbbb"), ("aa", "aaaa"), ("a", None), ("cc", None)])
def test_a_snapshot_is_named_without_doubt(tmp_path, name, found):
    """`latest` is the newest one; the beginning of an id has to be that of one snapshot."""
    known = [
        {"id": "bbbb", "time": "2026-01-03"},
        {"id": "aaaa", "time": "2026-01-02"},
        {"id": "abcd", "time": "2026-01-01"},
    ]
    restic = fake(tmp_path, f"echo '{json.dumps(known)}'")
    if found:
        assert restic.resolve(name) == found
    else:
        with pytest.raises(BackupError, match="name one of them"):
            restic.resolve(name)


def test_nothing_is_removed_from_a_repository_that_fails_the_check(tmp_path, monkeypatch):
    """Without a good check the old backups stay. Each backup waits for the jobs that slurmctld had when it began."""
    from soperator.agents.backup import state
    from soperator.agents.backup.take import BackupTask, Folders, take
    from tests.unit.agents.backup.test_state import header, save

    waits = []
    monkeypatch.setattr(state, "wait_for_save", lambda source, since: waits.append((source, time.time() - since < 60)))
    for name in ("state", "secrets", "objects", "backup", "keys"):
        (tmp_path / name).mkdir()
    save(tmp_path / "state", {"clustername": b"demo", "job_state": header(42)})
    (tmp_path / "objects/objects.json").write_text("[]")
    secret = tmp_path / "secrets/demo-auth-key"
    (secret / "..data").mkdir(parents=True)
    (secret / "..data/slurm.key").write_bytes(b"\0key")
    (secret / "slurm.key").symlink_to("..data/slurm.key")
    folders = Folders(*(tmp_path / name for name in ("state", "secrets", "objects", "backup", "keys")))
    task = BackupTask("slurm", "demo", "24.11.5", None, ["--keep-last=7"], "nightly", "folder restic of claim backups")
    backup = f"case $1 in cat) {CONFIG} ;; backup) echo '{json.dumps(SUMMARY)}' ;; check) exit $CHECK ;; esac"
    with pytest.raises(BackupError, match="damaged"):
        take(task, fake(tmp_path, backup.replace("$CHECK", "1")), folders)
    assert "forget" not in {line.split()[0] for line in asked(tmp_path)}
    said = take(task, fake(tmp_path, backup.replace("$CHECK", "0")), folders)
    assert (said["snapshot"], said["nextJobId"], said["contents"]) == ("01234567", 42, ["keys", "objects", "state"])
    assert (said["repository"], said["repositoryId"]) == ("folder restic of claim backups", IDENTITY)
    assert asked(tmp_path)[-1].startswith("forget ")
    assert (tmp_path / "keys/demo-auth-key/slurm.key").read_bytes() == b"\0key"
    manifest = json.loads((tmp_path / "backup/manifest.json").read_text())
    assert (manifest["format"], manifest["slurm"], manifest["nextJobId"]) == (1, "24.11.5", 42)
    assert waits == [(tmp_path / "state", True)] * 2


@pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root")
def test_restic_can_remove_its_lock_when_the_pod_is_deleted(tmp_path):
    """The first process of a container ignores SIGTERM unless it says otherwise; it passes it on and waits for what restic does."""
    lines = [
        "import subprocess",
        "from soperator.agents.backup.__main__ import pass_on_the_end",
        "pass_on_the_end()",
        "print('begun', flush=True)",
        "restic = 'trap \\'echo unlocked; exit 130\\' TERM; echo locked; while :; do sleep 0.1; done'",
        "print(subprocess.run(['sh', '-c', restic]).returncode)",
    ]
    words = ["unshare", "--fork", "--pid", sys.executable, "-c", "\n".join(lines)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as started:
        try:
            assert [started.stdout.readline() for _ in range(2)] == ["begun\n", "locked\n"]
            children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
            os.kill(int(children[0]), signal.SIGTERM)
            assert started.communicate(timeout=10)[0] == "unlocked\n130\n"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
