"""Backups into a store with the API of S3 and what goes wrong with one: restic of the image, and versitygw over TLS; no cluster.

`make test-backup` builds both.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from local import images, s3
from tests.unit.agents.backup.test_state import header, save, script

pytestmark = pytest.mark.skipif(s3.find() is None, reason="make test-backup builds the store")

PATH = "slurm/one/restic"


@pytest.fixture(scope="module")
def restic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The restic of the image for backups; it needs nothing but libc."""
    folder = tmp_path_factory.mktemp("restic")
    (image,) = images.built(["backup"])
    with tarfile.open(image.tar) as outer:
        for layer in (each for each in outer.getmembers() if each.name.endswith(".tar") and each.isfile()):
            with tarfile.open(fileobj=outer.extractfile(layer)) as inner:
                if "usr/bin/restic" in inner.getnames():
                    inner.extract("usr/bin/restic", folder)
                    return folder / "usr/bin/restic"
    raise AssertionError(f"{image.tar} has no restic")


@dataclass(frozen=True)
class Pods:
    """The pods of backups of one cluster into a bucket of a store; `env` is the environment of the next one."""

    folder: Path
    store: s3.Store
    env: dict[str, str] = field(default_factory=dict)

    @property
    def repository(self) -> Path:
        """The folder that the server shows as the repository."""
        return self.store.folder / "backups" / PATH

    def start(self, verb: str, **more: str) -> "subprocess.Popen[str]":
        """Start a pod, with folders of its own for what it writes."""
        own = Path(self.folder, f"pod-{time.monotonic_ns()}")
        for name in ("backup", "keys", "scratch", "private"):
            (own / name).mkdir(parents=True)
        for name in ("state", "secrets", "objects"):
            (own / name).symlink_to(self.folder / name)
        words = [sys.executable, "-m", "tests.backup.pod", str(own), verb]
        env = os.environ | self.env | more
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env, start_new_session=True)

    def run(self, verb: str, **more: str) -> str:
        """Run a pod to its end, and return its last message."""
        with self.start(verb, **more) as pod:
            return pod.communicate(timeout=100)[0].strip()

    def restored(self) -> Path:
        """Restore the newest backup, and return the folder with its content."""
        assert self.run("read") == ""
        return max(self.folder.glob("pod-*/scratch"), key=lambda each: each.stat().st_mtime)

    def snapshots(self) -> int:
        """How many backups the repository has."""
        return sum(each.is_file() for each in (self.repository / "snapshots").iterdir())


@pytest.fixture
def pods(restic: Path, tmp_path: Path) -> Iterator[Pods]:
    """A cluster with a state of 20 MB that no compression makes smaller, and a bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("state", "secrets/demo-auth-key", "objects"):
        (tmp_path / name).mkdir(parents=True)
    save(tmp_path / "state", {"clustername": b"demo", "job_state": header(42) + os.urandom(20_000_000)})
    script(tmp_path / "state", 41)
    (tmp_path / "secrets/demo-auth-key/slurm.key").write_bytes(b"\0key")
    (tmp_path / "objects/objects.json").write_text("[]")
    (tmp_path / "password").write_text("a long one")
    with s3.serve(s3.build(), tmp_path / "server", "127.0.0.1", port) as store:
        (store.folder / "backups").mkdir()
        env = {
            "RESTIC": str(restic),
            "RESTIC_REPOSITORY": f"s3:{store.endpoint}/backups/{PATH}",
            "RESTIC_PASSWORD_FILE": str(tmp_path / "password"),
            "RESTIC_CACERT": str(store.certificate),
            "AWS_ACCESS_KEY_ID": store.access_key,
            "AWS_SECRET_ACCESS_KEY": store.secret_key,
        }
        yield Pods(tmp_path, store, env)


def test_a_backup_comes_back_from_a_store(pods: Pods) -> None:
    """Byte for byte; a second one of the same state adds less than a tenth, and goes into the same repository."""
    first = json.loads(pods.run("take"))
    assert (first["nextJobId"], first["size"] > 20_000_000, len(first["repositoryId"])) == (42, True, 64)
    second = json.loads(pods.run("take", SOPERATOR_REPOSITORY_ID=first["repositoryId"]))
    assert second["added"] < first["added"] / 10
    state = pods.restored() / "backup/state"
    for name in ("job_state", "clustername", "hash.1/job.41/script"):
        assert (state / name).read_bytes() == (pods.folder / "state" / name).read_bytes()


def test_only_so_many_backups_stay(pods: Pods) -> None:
    """As the retention says; the store deletes for it."""
    for _ in range(5):
        json.loads(pods.run("take"))
    assert pods.snapshots() == 3


def test_a_wrong_password_is_named(pods: Pods) -> None:
    """At once, and nothing is written."""
    json.loads(pods.run("take"))
    (pods.folder / "password").write_text("another one")
    assert pods.run("take").startswith("soperator: WrongPassword: The password in the Secret is not that")
    assert pods.run("read").startswith("soperator: WrongPassword: ")
    assert pods.snapshots() == 1


def test_keys_that_the_store_refuses_are_named(pods: Pods) -> None:
    """A secret key with a typing error, and a user whom the store does not know."""
    for more in ({"AWS_SECRET_ACCESS_KEY": "wrong"}, {"AWS_ACCESS_KEY_ID": "nobody"}):
        said = pods.run("take", **more)
        assert said.startswith("soperator: StoreDenied: "), said
        assert "credentialsSecretName" in said


def test_a_store_that_gives_no_repository_is_named(pods: Pods) -> None:
    """A port where nobody listens, a certificate of an unknown authority, a bucket that does not exist, and a name without an address."""
    here = pods.store.endpoint.rpartition(":")[0]
    cases = {
        "connection refused": {"RESTIC_REPOSITORY": f"s3:{here}:9/backups/restic"},
        "certificate": {"RESTIC_CACERT": ""},
        "bucket does not exist": {"RESTIC_REPOSITORY": f"s3:{pods.store.endpoint}/other/restic"},
        "nowhere.invalid": {"RESTIC_REPOSITORY": "s3:https://nowhere.invalid/backups/restic"},
    }
    for words, more in cases.items():
        said = pods.run("take", **more)
        assert said.startswith("soperator: StoreUnreachable: "), said
        assert words in said, said


def test_an_emptied_repository_is_not_made_again(pods: Pods) -> None:
    """It is named, nothing is written, and a new one in its place is named too."""
    first = json.loads(pods.run("take"))["repositoryId"]
    shutil.rmtree(pods.repository)
    said = pods.run("take", SOPERATOR_REPOSITORY_ID=first)
    assert said.startswith("soperator: RepositoryMissing: "), said
    assert pods.run("read").startswith("soperator: RepositoryMissing: ")
    assert not pods.repository.exists()
    other = json.loads(pods.run("take"))["repositoryId"]
    assert other != first
    said = pods.run("take", SOPERATOR_REPOSITORY_ID=first)
    assert said.startswith("soperator: RepositoryChanged: "), said
    assert pods.snapshots() == 1


def test_a_flipped_byte_is_found(pods: Pods) -> None:
    """By the next backup, which then removes no old one, and by a restoration before it has written anything of it."""
    for _ in range(3):
        json.loads(pods.run("take"))
    pack = max(
        (each for each in (pods.repository / "data").rglob("*") if each.is_file()), key=lambda each: each.stat().st_size
    )
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 1
    pack.write_bytes(bytes(content))
    said = pods.run("take")
    assert said.startswith("soperator: RepositoryDamaged: "), said
    assert pods.snapshots() == 4, "the one that was just made beside three of before"
    assert pods.run("read").startswith("soperator: ")
    assert not list(pods.folder.glob("pod-*/private/found.json"))


@pytest.mark.parametrize("moment", ["locks", "data", "index", "snapshots"])
def test_a_killed_backup_leaves_a_repository_that_works(pods: Pods, moment: str) -> None:
    """Wherever it was killed: the next one succeeds, or names the lock that is left, and a restoration finds no damage."""
    identity = json.loads(pods.run("take"))["repositoryId"]
    save(pods.folder / "state", {"job_state": header(43) + os.urandom(20_000_000)})
    before = entries(pods.repository / moment)
    with pods.start("take") as pod:
        until = time.monotonic() + 60
        while entries(pods.repository / moment) <= before and pod.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        was_running = pod.poll() is None
        os.killpg(pod.pid, signal.SIGKILL)
    assert was_running, "the backup had ended before it was killed"
    again = {"SOPERATOR_REPOSITORY_ID": identity, "PATIENCE": "3s"}
    said = pods.run("take", **again)
    if said.startswith(
        "soperator: RepositoryLocked: "
    ):  # on another host, and where nobody has waited for the process, the lock is valid
        subprocess.run([pods.env["RESTIC"], "unlock", "--remove-all"], env=os.environ | pods.env, check=True)
        said = pods.run("take", **again)
    assert json.loads(said)["nextJobId"] == 43
    assert (pods.restored() / "backup/state/job_state").read_bytes()[: len(header(43))] == header(43)


def entries(folder: Path) -> set[str]:
    """The files of a part of a repository."""
    return {each.name for each in folder.rglob("*") if each.is_file()} if folder.exists() else set()


def test_two_backups_at_once_both_succeed(pods: Pods) -> None:
    """One waits for the other where it must."""
    json.loads(pods.run("take"))
    with pods.start("take") as first, pods.start("take") as second:
        said = [each.communicate(timeout=100)[0] for each in (first, second)]
    assert {json.loads(each)["nextJobId"] for each in said} == {42}
    assert pods.snapshots() == 3
    assert pods.restored()


def test_a_repository_that_comes_back_is_accepted(pods: Pods) -> None:
    """As after a volume that was not mounted: the backup fails meanwhile, and the next one succeeds."""
    identity = json.loads(pods.run("take"))["repositoryId"]
    hidden = pods.store.folder / "gone"
    pods.repository.rename(hidden)
    assert pods.run("take", SOPERATOR_REPOSITORY_ID=identity).startswith("soperator: RepositoryMissing: ")
    hidden.rename(pods.repository)
    assert json.loads(pods.run("take", SOPERATOR_REPOSITORY_ID=identity))["nextJobId"] == 42
