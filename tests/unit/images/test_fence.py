"""The fence around a slurmctld that has backups, with a slurmctld that only writes the heartbeat that it is told to write."""

import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "images" / "slurm" / "fence"
#: The clock ticks ten times a second here. A leader may be silent for fifteen ticks.
TICK = 0.1
TIMEOUT = 18
PATIENCE = 15 * TICK
CLOCK = "$((${EPOCHREALTIME/[.,]/} / 100000))"
KILLED = 128 + signal.SIGKILL


@dataclass
class Pod:
    """A folder as slurmctld's container sees it, and the container."""

    root: Path
    container: "subprocess.Popen[bytes]"

    def beats(self, place: int, age: int = 0) -> None:
        """Write what a leader at this place writes, this many ticks ago."""
        made = self.root / "heartbeat.new"
        made.write_bytes(struct.pack(">QQ", int(time.time() / TICK) - age, place))
        made.rename(self.root / "heartbeat")

    def leads(self) -> bool:
        """Whether it lives while it leads, for so long that the fence has surely seen it."""
        for _ in range(20):
            self.beats(0)
            if not self.lives(TICK):
                return False
        return True

    def lives(self, seconds: float) -> bool:
        """Whether the container is still there after so long."""
        try:
            self.container.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False


def test_a_slurmctld_that_ends_by_itself_gives_its_exit_code(tmp_path: Path) -> None:
    """However soon: Kubernetes tells it, and the operator takes back a configuration by it."""
    tmp_path.joinpath("slurm.conf").touch()
    text = f". {SCRIPT}; fenced 0 {tmp_path} {tmp_path}/slurm.conf sh -c 'exit 7'"
    for _ in range(5):
        assert subprocess.run(["bash", "-euo", "pipefail", "-c", text], check=False, timeout=30).returncode == 7


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    """The container of the first slurmctld."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"SlurmctldTimeout=30\nslurmctldtimeout = {TIMEOUT}\n")
    fast = SCRIPT.read_text().replace("$EPOCHSECONDS", CLOCK).replace("EPOCHSECONDS", CLOCK)
    fence = tmp_path / "fence"
    fence.write_text(fast.replace("sleep 1", f"sleep {TICK}"))
    text = f". {fence}; fenced 0 {tmp_path} {conf} sleep 60"
    with tmp_path.joinpath("said").open("wb") as said:
        container = subprocess.Popen(["bash", "-euo", "pipefail", "-c", text], stderr=said, start_new_session=True)
    yield Pod(tmp_path, container)
    for number in (signal.SIGCONT, signal.SIGKILL):
        try:
            os.killpg(container.pid, number)
        except ProcessLookupError:
            break
    container.wait()


@pytest.mark.slow
def test_a_leader_that_slept_with_all_of_its_container_dies_on_waking(pod: Pod) -> None:
    """Whatever it writes when it wakes."""
    assert pod.lives(0.3)
    assert pod.leads()
    os.killpg(pod.container.pid, signal.SIGSTOP)
    time.sleep(PATIENCE + 0.3)
    pod.beats(0)
    os.killpg(pod.container.pid, signal.SIGCONT)
    for _ in range(100):
        if not pod.lives(TICK):
            break
        pod.beats(0)
    assert pod.container.returncode == KILLED


@pytest.mark.slow
def test_a_leader_whose_state_hangs_is_killed(pod: Pod) -> None:
    """Nobody can read the heartbeat then, and slurmctld cannot write it; the container's last words say why."""
    assert pod.leads()
    pod.root.joinpath("heartbeat").unlink()
    os.mkfifo(pod.root / "heartbeat")
    assert not pod.lives(30)
    assert pod.container.returncode == KILLED
    assert "slurmctld led, and stood still for" in pod.root.joinpath("said").read_text()


@pytest.mark.slow
def test_a_backup_is_left_alone(pod: Pod) -> None:
    """Also one that has led, and saw another follow in time; and what a former life of this pod wrote is not its own."""
    pod.beats(0, age=60)
    assert pod.lives(0.3)
    pod.beats(0)
    assert pod.lives(0.3)
    pod.beats(1)
    assert pod.lives(PATIENCE + 0.5)


def test_a_slurmctld_that_is_asked_to_end_has_its_time(pod: Pod) -> None:
    """It ends with its own exit code."""
    pod.beats(0)
    assert pod.lives(0.3)
    pod.container.send_signal(signal.SIGTERM)
    assert not pod.lives(30)
    assert pod.container.returncode == 128 + signal.SIGTERM
