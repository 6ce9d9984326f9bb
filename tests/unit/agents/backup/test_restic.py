"""restic's output and exit codes, with a program that plays restic."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from soperator.agents.backup.errors import BackupError
from soperator.agents.backup.restic import Restic, snapshot_of

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


def test_a_repository_is_created_only_where_there_is_none(tmp_path):
    """Exit code 10 of `cat config` leads to `init`, success does not."""
    fake(tmp_path, "case $1 in cat) exit 10 ;; esac").prepare()
    assert asked(tmp_path) == ["cat config", "init", "unlock"]
    (tmp_path / "log").unlink()
    fake(tmp_path, "exit 0").prepare()
    assert asked(tmp_path) == ["cat config", "unlock"]


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


def test_nothing_is_removed_from_a_repository_that_fails_the_check(tmp_path):
    """Without a good check the old backups stay."""
    from soperator.agents.backup.take import BackupTask, Folders, take
    from tests.unit.agents.backup.test_state import header, save

    for name in ("state", "secrets", "objects", "backup", "keys"):
        (tmp_path / name).mkdir()
    save(tmp_path / "state", {"clustername": b"demo", "job_state": header(42)})
    (tmp_path / "objects/objects.json").write_text("[]")
    secret = tmp_path / "secrets/demo-auth-key"
    (secret / "..data").mkdir(parents=True)
    (secret / "..data/slurm.key").write_bytes(b"\0key")
    (secret / "slurm.key").symlink_to("..data/slurm.key")
    folders = Folders(*(tmp_path / name for name in ("state", "secrets", "objects", "backup", "keys")))
    task = BackupTask("slurm", "demo", "24.11.5", None, ["--keep-last=7"])
    backup = f"case $1 in backup) echo '{json.dumps(SUMMARY)}' ;; check) exit $CHECK ;; esac"
    with pytest.raises(BackupError, match="damaged"):
        take(task, fake(tmp_path, backup.replace("$CHECK", "1")), folders)
    assert "forget" not in {line.split()[0] for line in asked(tmp_path)}
    said = take(task, fake(tmp_path, backup.replace("$CHECK", "0")), folders)
    assert (said["snapshot"], said["nextJobId"], said["contents"]) == ("01234567", 42, ["keys", "objects", "state"])
    assert asked(tmp_path)[-1].startswith("forget ")
    assert (tmp_path / "keys/demo-auth-key/slurm.key").read_bytes() == b"\0key"
    manifest = json.loads((tmp_path / "backup/manifest.json").read_text())
    assert (manifest["format"], manifest["slurm"], manifest["nextJobId"]) == (1, "24.11.5", 42)


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
