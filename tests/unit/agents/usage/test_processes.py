"""Which job a process belongs to, on a made-up /proc."""

import os
from pathlib import Path

import pytest

from soperator.agents.usage.processes import UsagePaths, measure

PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
POD, JOB, INNER = "pid:[1]", "pid:[42]", "pid:[43]"


class Proc:
    """A made-up node."""

    def __init__(self, root: Path) -> None:
        self.place = UsagePaths(root / "proc", root / "jobs", root / "cgroup")
        self.root = root

    def process(self, pid, parent, space, title="python", seconds=(0, 0), pages=(0, 0), cgroup="", gpus=()):
        """One process, that began at tick 100 + pid."""
        folder = self.place.proc / str(pid)
        (folder / "ns").mkdir(parents=True)
        own, children = (int(each * TICKS) for each in seconds)
        rest = ["S", parent, *[0] * 9, own, 0, children, 0, *[0] * 4, 100 + pid]
        (folder / "stat").write_text(f"{pid} ({title[:15]}) " + " ".join(map(str, rest)))
        (folder / "statm").write_text(f"9999 {pages[0]} {pages[1]} 0 0 0 0")
        (folder / "cmdline").write_bytes(title.encode() + b"\0")
        (folder / "cgroup").write_text(f"0::{cgroup or '/'}\n")
        (folder / "ns/pid").symlink_to(space)
        (folder / "ns/mnt").symlink_to(f"mnt:[{space}]")
        lines = [f"1 2 0:1 / /dev/{each} rw - devtmpfs none rw" for each in ("null", *gpus)]
        (folder / "mountinfo").write_text("\n".join(lines))

    def job(self, number, holder):
        """The plugin's record of a job."""
        (self.place.jobs / str(number)).mkdir(parents=True)
        (self.place.jobs / str(number) / "pid").write_text(f"{holder} {100 + holder}\n")


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    """slurmd, and job 42: its holder, slurmstepd, a task, an orphan of it, and a process in a container of the task's."""
    made = Proc(tmp_path)
    made.process(1, 0, POD, "slurmd", (99, 99))
    made.process(20, 1, JOB, "jail-holder", (0, 1), gpus=("nvidia3",))
    made.process(30, 1, POD, "slurmstepd: [42.batch]", (77, 2), (500, 0))
    made.process(31, 30, JOB, "bash", (4, 8), (110, 10), gpus=("nvidia3", "nvidiactl", "dri/renderD128"))
    made.process(32, 20, JOB, "orphan", (16, 0), (100, 0))
    made.process(33, 31, INNER, "inner", (32, 0), (100, 0))
    made.job(42, 20)
    return made


def test_a_job_is_its_namespace_and_what_is_below_it(proc):
    """slurmstepd's own time and memory are not the job's, those of the tasks that it has waited for are."""
    (number, job), *others = measure(proc.place).items()
    assert (number, others) == (42, [])
    assert sum(each.seconds for each in job.spent.values()) == 1 + 2 + 4 + 8 + 16 + 32
    assert job.memory == 300 * PAGE
    assert job.processes == 4
    assert job.gpus == {"nvidia3", "renderD128"}
    assert job.exact is None


def test_a_process_that_calls_itself_slurmstepd_belongs_to_its_namespace(proc):
    """A user may take any title; the namespace is not his to choose."""
    proc.process(34, 31, JOB, "slurmstepd: [7.0]", (1, 0))
    proc.process(35, 33, INNER, "slurmstepd: [7.0]", (1, 0))
    found = measure(proc.place)
    assert list(found) == [42]
    assert found[42].processes == 6


def test_a_record_of_another_process_is_not_believed(proc):
    """The holder's number may be another process's by now: without the namespace a task is known by its slurmstepd."""
    (proc.place.jobs / "42" / "pid").write_text("20 7\n")
    (proc.place.jobs / "43").mkdir()
    (proc.place.jobs / "43" / "pid").write_text("torn")
    (job,) = measure(proc.place).values()
    assert job.processes == 2


def test_a_job_with_a_cgroup_has_the_kernels_sums(proc):
    """The folder of the job is above that of the step."""
    folder = proc.place.cgroups / "system.slice/worker-0_slurmstepd.scope/job_9"
    folder.mkdir(parents=True)
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 2000000\n")
    (folder / "memory.current").write_text("4096\n")
    proc.process(50, 1, POD, "slurmstepd: [9.0]")
    proc.process(51, 50, POD, "bash", cgroup="/system.slice/worker-0_slurmstepd.scope/job_9/step_0/user/task_0")
    job = measure(proc.place)[9]
    assert (job.exact, job.memory, job.processes) == (2.5, 4096, 1)


def test_a_process_that_ends_meanwhile_is_left_out(proc):
    """Its files go one after the other."""
    (proc.place.proc / "31" / "statm").unlink()
    assert measure(proc.place)[42].processes == 2
