"""What a worker waits for before it gives way, with a scontrol that says what it is told to."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "images/slurm/giveway"
BUSY, DRAINING, DRAINED = (
    f"NodeName=w-0 CoresPerSocket=1 State={state}+DYNAMIC_NORM ThreadsPerCore=1"
    for state in ("MIXED", "MIXED+DRAIN", "IDLE+DRAIN")
)


class Worker:
    """A worker whose end has begun."""

    def __init__(self, root: Path, said: str, step: bool = False) -> None:
        self.root, self.step = root, root / "proc/7/comm"
        self.step.parent.mkdir(parents=True, exist_ok=True)
        self.step.write_text("slurmstepd\n" if step else "bash\n")
        scontrol = root / "scontrol"
        scontrol.write_text(f"#!/bin/sh\necho asked >> {root}/asked\ncat {root}/said\n")
        scontrol.chmod(0o755)
        self.says(said)
        env = {"SOPERATOR_NODE_NAME": "w-0", "PATH": "/usr/bin:/bin"}
        self.process = subprocess.Popen(["bash", str(SCRIPT), str(root / "proc"), str(scontrol)], env=env)

    def says(self, said: str) -> None:
        """From now on Slurm says this."""
        (self.root / "new").write_text(said + "\n")
        (self.root / "new").rename(self.root / "said")

    def waits(self) -> bool:
        """Whether it goes on after it has heard what Slurm says now: it asks again."""
        end, before = time.monotonic() + 20, self.asked()
        while self.process.poll() is None and self.asked() < before + 2:
            assert time.monotonic() < end, "it asks no more"
            time.sleep(0.02)
        return self.process.poll() is None

    def asked(self) -> int:
        """How often it has asked scontrol."""
        note = self.root / "asked"
        return len(note.read_text().splitlines()) if note.exists() else 0

    def ends(self) -> bool:
        """Whether it ends well soon."""
        return self.process.wait(20) == 0


@pytest.fixture
def made(tmp_path: Path) -> Iterator[list[Worker]]:
    """The workers of a test, which end with it."""
    found: list[Worker] = []
    yield found
    for each in found:
        each.process.kill()
        each.process.wait()


@pytest.mark.slow
def test_it_waits_for_the_drain_and_for_the_jobs(tmp_path: Path, made: list[Worker]) -> None:
    """Neither a node that can take jobs nor one that drains is left; one on which nothing runs is at once."""
    made.append(Worker(tmp_path, BUSY))
    assert made[0].waits()
    made[0].says(DRAINING)
    assert made[0].waits()
    made[0].says(DRAINED)
    assert made[0].ends()


@pytest.mark.slow
def test_a_step_that_is_there_holds_it_whatever_slurm_says(tmp_path: Path, made: list[Worker]) -> None:
    """slurmctld may have lost the job, or not answer."""
    made.append(Worker(tmp_path, DRAINED, step=True))
    assert made[0].waits()
    made[0].says("slurm_load_node error: Unable to contact slurm controller (connect failure)")
    assert made[0].waits()
    made[0].step.write_text("bash\n")
    made[0].says("Node w-0 not found")
    assert made[0].ends()


def test_a_process_of_a_job_that_calls_itself_slurmstepd_holds_nothing(tmp_path: Path, made: list[Worker]) -> None:
    """slurmstepd is in the pid namespace of slurmd; what is in another one is a user's, whatever its name."""
    for pid, space in (("self", "pid:[1]"), ("7", "pid:[2]")):
        (tmp_path / "proc" / pid / "ns").mkdir(parents=True)
        (tmp_path / "proc" / pid / "ns/pid").symlink_to(space)
    made.append(Worker(tmp_path, DRAINED, step=True))
    assert made[0].ends()
    (tmp_path / "proc/7/ns/pid").unlink()
    (tmp_path / "proc/7/ns/pid").symlink_to("pid:[1]")
    made.append(Worker(tmp_path, DRAINED, step=True))
    assert made[1].waits()
