"""The script that brings a daemon to new keys, with a daemon that executes itself anew on SIGHUP as Slurm's do."""

import hashlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "images" / "slurm" / "keys"
FILE = "slurm.jwks"


@dataclass
class Pod:
    """A folder as a container sees it: what the kubelet brings, what the daemon reads, and the daemon."""

    root: Path
    name: str
    daemon: "subprocess.Popen[bytes]"
    said: str = ""

    def bring(self, content: bytes) -> str:
        """What the kubelet does; return the word by which the file is asked for."""
        self.root.joinpath("given", FILE).write_bytes(content)
        return f"{FILE}:{hashlib.sha256(content).hexdigest()}"

    def keys(self, verb: str, word: str) -> int:
        """The exit code of the script."""
        done = subprocess.run([self.root / "keys", verb, self.name, word], capture_output=True, text=True, check=False)
        self.said = done.stdout.strip()
        return done.returncode

    def read(self) -> list[str]:
        """What the daemon has read at each of its starts."""
        return self.root.joinpath("read").read_text().split()

    def has_read(self, *files: str) -> bool:
        """Whether it has read these; it moves first, and writes that down a moment later."""
        end = time.monotonic() + 10
        while self.read() != [*files] and time.monotonic() < end:
            time.sleep(0.01)
        return self.read() == [*files]


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    """A daemon that runs with its first key, as the entry script has copied it."""
    for folder in ("given", "own"):
        tmp_path.joinpath(folder).mkdir()
        tmp_path.joinpath(folder, FILE).write_bytes(b"one")
    text = (
        SCRIPT.read_text()
        .replace("/etc/soperator/keys", f"{tmp_path}/given")
        .replace("/run/soperator/keys", f"{tmp_path}/own")
    )
    made = tmp_path / "keys"
    made.write_text(text.replace("/run/soperator/taken", f"{tmp_path}/taken"))
    made.chmod(0o755)
    name = f"d{time.time_ns() % 10**12}"  # its own, for other tests run beside this one
    program = tmp_path / name
    shutil.copy("/bin/bash", program)
    body = f'trap "exec {program} $0" HUP\necho $(cat {tmp_path}/own/{FILE}) >> {tmp_path}/read\nwhile :; do sleep 0.05; done\n'
    tmp_path.joinpath("body").write_text(body)
    daemon = subprocess.Popen(
        ["env", "--default-signal=HUP", program, tmp_path / "body"]
    )  # also where nohup ignores it
    while not tmp_path.joinpath("read").exists():
        time.sleep(0.01)
    yield Pod(tmp_path, name, daemon)
    daemon.send_signal(signal.SIGCONT)
    daemon.kill()
    daemon.wait()


def test_a_file_that_is_not_there_yet_is_waited_for(pod: Pod) -> None:
    """Nothing is done with another one than was asked for."""
    assert pod.keys("take", f"{FILE}:{'0' * 64}") == 3
    assert pod.read() == ["one"]


def test_a_daemon_that_began_with_the_file_is_left_alone(pod: Pod) -> None:
    """A new pod has read what there was."""
    assert pod.keys("take", pod.bring(b"one")) == 0
    assert pod.read() == ["one"]


def test_a_new_file_is_looked_at_without_being_taken(pod: Pod) -> None:
    """munge's key lies ready so, before anybody uses it."""
    assert pod.keys("look", pod.bring(b"two")) == 0
    assert pod.read() == ["one"]


def test_a_daemon_reads_a_new_file_once(pod: Pod) -> None:
    """It is signalled, and the answer comes when it has executed itself anew; to ask again does nothing."""
    word = pod.bring(b"two")
    assert [pod.keys("take", word), pod.keys("take", word)] == [0, 0]
    assert pod.said.isdecimal(), "since when"
    assert pod.has_read("one", "two")
    assert pod.root.joinpath("own", FILE).stat().st_mode & 0o777 == 0o600


def test_a_daemon_that_does_not_move_has_not_taken_it(pod: Pod) -> None:
    """The signal alone is no answer."""
    word = pod.bring(b"two")
    pod.daemon.send_signal(signal.SIGSTOP)
    assert pod.keys("take", word) == 3
    pod.daemon.send_signal(signal.SIGCONT)
    assert pod.has_read("one", "two")
    assert pod.keys("take", word) == 0


def test_what_was_interrupted_half_way_is_done_again(pod: Pod) -> None:
    """A file in its place says nothing of a daemon that was never signalled."""
    word = pod.bring(b"two")
    pod.root.joinpath("own", FILE).write_bytes(b"two")
    pod.root.joinpath("taken").write_text(f"{word} half-way\n")
    assert pod.keys("take", word) == 0
    assert pod.has_read("one", "two")
