"""A restoration takes nothing away, can be repeated, and refuses what it does not understand."""

import contextlib
import json
import os

import pytest

from soperator.agents.backup import restore
from soperator.agents.backup.errors import BackupError
from soperator.agents.backup.restore import STATE_UID, checked, place_state, secrets

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="files get other owners")
MANIFEST = {"format": 1, "operator": "0.1.0", "namespace": "slurm", "cluster": "demo", "nextJobId": 7}


def state(folder, number):
    (folder / "hash.1/job.1").mkdir(parents=True)
    (folder / "job_state").write_text(number)
    (folder / "hash.1/job.1/script").write_text(number)


@needs_root
def test_the_former_state_is_moved_aside(tmp_path):
    """Every file of it is kept, the new one belongs to slurmctld, and a second run finds both."""
    claim, new = tmp_path / "claim", tmp_path / "new"
    state(claim, "old")
    (claim / "lost+found").mkdir()
    state(new, "new")
    place_state(new, claim, "first")
    place_state(new, claim, "second")
    assert (claim / "job_state").read_text() == (claim / "hash.1/job.1/script").read_text() == "new"
    assert (claim / "before-restore-first/job_state").read_text() == "old"
    assert (claim / "before-restore-first/hash.1/job.1/script").read_text() == "old"
    assert (claim / "job_state").stat().st_uid == (claim / "hash.1/job.1").stat().st_uid == STATE_UID
    names = {"before-restore-first", "before-restore-second", "hash.1", "job_state", "lost+found"}
    assert {each.name for each in claim.iterdir()} == names


@needs_root
@pytest.mark.parametrize("left", range(1, 6))
def test_a_restoration_that_was_killed_is_run_again(tmp_path, left, monkeypatch):
    """Killed after any rename, the next run ends with the state of the backup, and nothing of the old one is lost."""
    claim, new = tmp_path / "claim", tmp_path / "new"
    state(claim, "old")
    state(new, "new")
    renamed, rename = [], type(claim).rename

    def killed(path, target):
        renamed.append(path)
        if len(renamed) > left:
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(type(claim), "rename", killed)
        with contextlib.suppress(KeyboardInterrupt):
            place_state(new, claim, "first")
    place_state(new, claim, "second")
    assert (claim / "job_state").read_text() == (claim / "hash.1/job.1/script").read_text() == "new"
    kept = {each.read_text() for each in claim.rglob("before-restore-*/job_state")}
    assert "old" in kept


def test_a_backup_of_a_newer_operator_or_of_another_cluster_is_refused():
    """Its format may mean something else."""
    assert checked(MANIFEST, "slurm/demo") == MANIFEST
    with pytest.raises(BackupError, match=r"newer operator \(0\.1\.0\)"):
        checked(MANIFEST | {"format": 2}, "slurm/demo")
    with pytest.raises(BackupError, match="not of slurm/other"):
        checked(MANIFEST, "slurm/other")


class FakeRestic:
    """A repository with one snapshot; `is_damaged` lets the second folder fail."""

    host = "slurm/demo"

    def __init__(self, is_damaged=False):
        self.is_damaged = is_damaged

    def open(self):
        """There is one."""

    def resolve(self, snapshot):
        """The only one."""
        return "0123456789abcdef"

    def restore(self, snapshot, folder, to):
        """What the snapshot has."""
        to.mkdir(parents=True)
        if folder == restore.KEYS:
            (to / "demo-auth-key").mkdir()
            (to / "demo-auth-key/slurm.key").write_bytes(b"\0\1")
            return
        if self.is_damaged:
            raise BackupError("restic restore ended with 1: ciphertext verification failed")
        state(to / "state", "new")
        (to / "manifest.json").write_text(json.dumps(MANIFEST))
        (to / "objects.json").write_text("[]")


def places(tmp_path):
    made = restore.Places(*(tmp_path / name for name in ("scratch", "private", "state", "database", "sockets")))
    for each in (made.scratch, made.private, made.state):
        each.mkdir()
    return made


def test_nothing_is_shown_of_a_damaged_snapshot(tmp_path):
    """`soperator restore` gets keys and objects only after the whole snapshot was read."""
    with pytest.raises(BackupError, match="verification failed"):
        restore.read(FakeRestic(is_damaged=True), "latest", places(tmp_path))
    assert not (tmp_path / "private/found.json").exists()


def test_a_snapshot_is_shown_with_its_keys(tmp_path):
    """In base64, as Kubernetes takes them."""
    restore.read(FakeRestic(), "latest", places(tmp_path))
    found = json.loads((tmp_path / "private/found.json").read_text())
    assert found == {
        "snapshot": "01234567",
        "manifest": MANIFEST,
        "objects": [],
        "secrets": {"demo-auth-key": {"slurm.key": "AAE="}},
    }
    assert secrets(tmp_path / "private/keys") == found["secrets"]


def test_a_damaged_snapshot_touches_no_claim(tmp_path):
    """The state stays as it was."""
    made = places(tmp_path)
    state(made.state, "old")
    with pytest.raises(BackupError):
        restore.write(FakeRestic(is_damaged=True), "latest", made)
    assert (made.state / "job_state").read_text() == "old"
    assert sorted(each.name for each in made.state.iterdir()) == ["hash.1", "job_state"]


def planted(kind, to):
    """Put a link or a pipe where a backup has a file."""
    if kind == "pipe":
        os.mkfifo(to)
    else:
        to.symlink_to({"link": "/etc/hostname", "folder": "/etc"}[kind])


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
@pytest.mark.parametrize("name", ["private/keys/demo-auth-key/more", "scratch/backup/state/hash.1/more"])
def test_a_snapshot_with_a_link_is_not_read_through_it(tmp_path, kind, name):
    """It would show a file of the pod, such as the password of the repository, or wait for ever."""

    class Planted(FakeRestic):
        def restore(self, snapshot, folder, to):
            super().restore(snapshot, folder, to)
            if (tmp_path / name).is_relative_to(to):
                planted(kind, tmp_path / name)

    with pytest.raises(BackupError, match=r"has .*more, which is neither a file nor a folder") as refused:
        restore.read(Planted(), "latest", places(tmp_path))
    assert refused.value.is_final
    assert not (tmp_path / "private/found.json").exists()


def test_a_state_with_a_link_is_not_written(tmp_path):
    """The claim stays as it was."""

    class Planted(FakeRestic):
        def restore(self, snapshot, folder, to):
            super().restore(snapshot, folder, to)
            (to / "state/job_state.old").symlink_to("/etc/hostname")

    made = places(tmp_path)
    with pytest.raises(BackupError, match="neither a file nor a folder"):
        restore.write(Planted(), "latest", made)
    assert list(made.state.iterdir()) == []
