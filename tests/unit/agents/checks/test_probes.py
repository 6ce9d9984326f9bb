import os
import re
from pathlib import Path

import pytest

from soperator.agents.checks.probes import PROBES, clock, infiniband, kernel, memory, processes, storage
from soperator.agents.checks.probes.place import ProbeError, ProbePaths
from soperator.checks import catalog, check
from soperator.checks.evaluate import judge

CHECKS = {each.name: each for each in catalog.shipped()}
HERE = ProbePaths()


def says(check, readings, before=None):
    """What a shipped check says of readings; empty where they pass."""
    verdict = judge(CHECKS[check], readings, {}, before)
    assert verdict.outcome != "broken", verdict.message
    return verdict.message


class Machine:
    """Folders in the shape of /proc and /sys, with an uptime of 1000 s."""

    def __init__(self, folder):
        self.proc, self.sys = folder / "proc", folder / "sys"
        self.place = ProbePaths(self.proc, self.sys, folder / "dev")
        self.write("proc/uptime", "1000.00 900.00\n")
        self.write("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 500000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n")

    def write(self, path, text):
        file = self.proc.parent / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def process(self, pid, name, state="S", title="", age=500, **environment):
        ticks = int((1000 - age) * os.sysconf("SC_CLK_TCK"))
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) {state} {' '.join(['0'] * 18)} {ticks} 0")
        self.write(f"proc/{pid}/cmdline", title)
        self.write(f"proc/{pid}/environ", "".join(f"{key}={value}\0" for key, value in environment.items()))
        (self.proc / str(pid) / "fd").mkdir(exist_ok=True)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_a_file_system_is_measured_as_df_measures_it(tmp_path):
    """The numbers are those that an administrator sees."""
    [reading] = storage.filesystem({"paths": {"here": str(tmp_path)}}, HERE)
    used = int(os.popen(f"df --output=pcent {tmp_path}").read().split()[1].rstrip("%"))
    assert abs(reading["used"] - used) <= 1.5
    assert reading["readonly"] is False


def test_a_full_file_system_and_one_without_inodes_fail():
    """The sentence says which and how full."""
    assert says("disk-full", [{"of": "/tmp", "used": 97.2, "free": 12}]) == "/tmp is 97 % full, 12 MiB are left"
    assert says("disk-full", [{"of": "/tmp", "used": 95.0, "free": 12}]) == ""
    assert says("inodes-full", [{"of": "/tmp", "inodes": 99.9}]) == "100 % of the inodes of /tmp are used"


def test_a_read_only_file_system_and_one_that_does_not_answer_fail(tmp_path):
    """Both make each job fail."""
    assert says("disk-readonly", [{"of": "/", "readonly": True}]) == "/ cannot be written: it is mounted read-only"
    [gone] = storage.filesystem({"paths": {"the jail": str(tmp_path / "gone")}}, HERE)
    assert says("jail-stale", [gone]) == "the jail does not answer: No such file or directory"


def test_the_latency_of_the_jail_is_that_of_a_look_up_of_a_new_name(tmp_path):
    """It leaves nothing behind, and a slow one fails."""
    [reading] = storage.latency({"paths": {"the jail": str(tmp_path)}}, HERE)
    assert 0 <= reading["ms"] < 5000
    assert list(tmp_path.iterdir()) == []
    assert says("jail-latency", [{"of": "the jail", "ms": 250.4}]) == "a look-up in the jail takes 250 ms"


def test_memory_that_is_held_while_no_job_runs_is_somebody_elses(machine):
    """What the page cache could give back does not count, and neither does what a job holds."""
    machine.write("sys/fs/cgroup/memory.current", f"{700 * 2**20}")
    machine.write("sys/fs/cgroup/memory.max", f"{900 * 2**20}")
    machine.write("sys/fs/cgroup/memory.stat", f"anon 1\ninactive_file {100 * 2**20}\n")
    assert "600 MiB" in says("memory-held", memory.memory({}, machine.place))
    machine.process(9, "slurmstepd", title="slurmstepd: [12.batch]")
    assert says("memory-held", memory.memory({}, machine.place)) == ""


def test_the_first_version_of_cgroups_is_read_too(machine):
    """The same question, other names."""
    for name, value in (("usage_in_bytes", 800), ("limit_in_bytes", 900)):
        machine.write(f"sys/fs/cgroup/memory/memory.{name}", f"{value * 2**20}")
    machine.write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 0\n")
    machine.write("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n")
    assert "800 MiB" in says("memory-held", memory.memory({}, machine.place))
    assert memory.oom({}, machine.place) == [{"of": "the pod", "kills": 4}]


def test_a_machine_without_memory_is_told(machine):
    """So is one that lives on its swap."""
    machine.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 10 kB\nSwapTotal: 100 kB\nSwapFree: 20 kB\n")
    assert says("memory-low", memory.memory({}, machine.place)) == "1.0 % of the machine's memory are left"


def test_what_the_kernel_killed_since_the_last_look_fails(machine):
    """Kills from before are remembered and no failure."""
    machine.write("sys/fs/cgroup/memory.events", "low 0\noom 3\noom_kill 3\n")
    readings = memory.oom({}, machine.place)
    assert says("oom-kills", readings) == ""
    assert says("oom-kills", readings, {"the pod.kills": 2.0}).startswith("the kernel killed a process of the pod")
    (machine.sys / "fs/cgroup/memory.events").unlink()
    with pytest.raises(ProbeError):
        memory.oom({}, machine.place)


def test_processes_that_hang_are_named(machine):
    """With their number, for whoever looks after them."""
    machine.process(5, "cp (1)", "D")
    machine.process(6, "sh", "Z")
    assert (
        says("processes-hanging", processes.processes({}, machine.place))
        == "1 processes hang in the kernel: cp (1) (5)"
    )


def test_a_process_of_a_job_that_is_over_is_a_stray(machine, tmp_path):
    """One of a running job is none, nor one that has only just lost its job; one on a GPU is told as such."""
    machine.process(2, "slurmstepd", title="slurmstepd: [12.extern]")
    machine.process(3, "python", SLURM_JOB_ID=12)
    machine.process(4, "python", age=5, SLURM_JOB_ID=11)
    given = {"scratch": str(tmp_path / "scratch")}
    assert says("job-leftovers", processes.leftovers(given, machine.place)) == ""
    machine.process(5, "train", SLURM_JOB_ID=11)
    assert says("job-leftovers", processes.leftovers(given, machine.place)).endswith("still run: train (5) of job 11")
    (machine.proc / "5/fd/7").symlink_to("/dev/nvidia3")
    assert "still hold a GPU" in says("job-leftovers", processes.leftovers(given, machine.place))


def test_a_users_process_gets_nothing_by_slurms_names(machine, tmp_path):
    """In a job's pid namespace no title makes a job run, and no environment makes its processes those of another job or of none."""
    machine.process(5, "train", SLURM_JOB_ID=11)
    machine.process(6, "slurmstepd", title="slurmstepd: [11.0]", SLURM_JOB_ID=11)
    machine.process(7, "nvidia-smi")
    (machine.proc / "7/fd/7").symlink_to("/dev/nvidia0")
    machine.process(8, "slurmstepd", title="slurmstepd: [12.0]")
    machine.process(9, "prolog", SLURM_JOB_ID=13)
    for pid, space in ((5, 2), (6, 2), (7, 2), (8, 1), (9, 1), ("self", 1)):
        (machine.proc / str(pid) / "ns").mkdir(parents=True)
        (machine.proc / str(pid) / "ns/pid").symlink_to(f"pid:[{space}]")
    assert processes.jobs(machine.place) == {12}
    [reading] = processes.leftovers({"scratch": str(tmp_path)}, machine.place)
    assert (reading["processes"], reading["names"]) == (1, "prolog (9) of job 13")
    assert processes.holders({}, machine.place)[0]["foreign"] == 0
    (machine.proc / "5/ns/pid").unlink()
    (machine.proc / "5/ns/pid").symlink_to("pid:[1]")
    assert processes.leftovers({"scratch": str(tmp_path)}, machine.place)[0]["processes"] == 2


def test_a_process_of_no_job_that_holds_a_gpu_is_foreign(machine):
    """A job's own is none, nor Slurm's, nor one that has only just begun."""
    for pid, name, said in (
        (3, "python", {"SLURM_JOB_ID": 12}),
        (4, "slurmstepd", {}),
        (5, "nvidia-persiste", {}),
        (6, "bash", {"age": 5}),
        (7, "shell", {}),
    ):
        machine.process(pid, name, **said)
        if pid != 7:
            (machine.proc / f"{pid}/fd/7").symlink_to("/dev/nvidia3")
    assert says("gpu-foreign", processes.holders({}, machine.place)) == ""
    machine.process(8, "miner")
    (machine.proc / "8/fd/7").symlink_to("/dev/nvidia0")
    assert says("gpu-foreign", processes.holders({}, machine.place)) == "1 processes of no job hold a GPU: miner (8)"


def test_folders_of_jobs_that_are_over_are_told(machine, tmp_path):
    """Those of a running job, and what is no job's, are not."""
    machine.process(2, "slurmstepd", title="slurmstepd: [12.0]")
    for name in ("job-12", "job-11", "job-x", "containers"):
        (tmp_path / "scratch" / name).mkdir(parents=True)
    readings = processes.leftovers({"scratch": str(tmp_path / "scratch")}, machine.place)
    assert says("tmp-leftovers", readings) == "1 folders of jobs that are over lie in /mnt/tmp: 11"


def test_real_processes_are_read():
    """The probe reads what any Linux has in /proc."""
    assert os.getpid() in {each.pid for each in processes.everything(HERE)}
    assert processes.processes({}, HERE)[0]["of"] == "the pod"


@pytest.mark.parametrize(
    ("line", "check", "said"),
    [
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.", "gpu-xid", "GPU 0000:3b:00: XID 79"),
        ("NVRM: Xid (PCI:0000:ae:00): 48, pid=77, name=python, DBE (double bit error)", "gpu-xid", "XID 48"),
        ("NVRM: fallen off the bus and is not responding to commands.", "gpu-xid", "XID 79"),
        ("mce: [Hardware Error]: Machine check events logged", "kernel-errors", "Hardware Error"),
        ("blk_update_request: I/O error, dev nvme0n1, sector 5", "kernel-errors", "I/O error"),
    ],
)
def test_the_kernels_errors_are_found_in_its_messages(line, check, said):
    """Each by the words that the kernel or the driver writes."""
    assert said in says(check, kernel.parse(["usb 1-1: new device", line]))


def test_an_xid_of_a_program_is_not_the_gpus():
    """XID 31 is a bad address of a program, and XID 43 its end."""
    lines = [f"NVRM: Xid (PCI:0000:3b:00): {number}, pid=1, name=a.out" for number in (13, 31, 43, 45)]
    assert says("gpu-xid", kernel.parse(lines)) == ""


def test_a_kernel_that_may_not_be_heard_gives_no_answer(machine):
    """Silence is not taken for health."""
    with pytest.raises(ProbeError, match="kmsg"):
        kernel.kernel({"seconds": 60}, machine.place)


def port(machine, name, **said):
    values = {
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "link_layer": "InfiniBand",
        "rate": "400 Gb/sec (4X NDR)",
    }
    for key, value in (values | said).items():
        machine.write(f"sys/class/infiniband/{name}/ports/1/{key}", f"{value}\n")


def test_an_infiniband_port_that_is_down_fails(machine):
    """By its device's name and the kernel's words."""
    port(machine, "mlx5_0")
    assert infiniband.infiniband({}, machine.place)[1]["rate"] == 400.0
    assert says("infiniband-link", infiniband.infiniband({}, machine.place)) == ""
    port(machine, "mlx5_1", state="1: DOWN", phys_state="3: Disabled")
    assert says("infiniband-link", infiniband.infiniband({}, machine.place)) == "mlx5_1 port 1 is DOWN (Disabled)"


def test_an_ethernet_port_that_is_down_is_no_infiniband(machine):
    """Machines have RoCE-capable cards that nobody has plugged in."""
    port(machine, "mlx5_0", state="1: DOWN", link_layer="Ethernet")
    assert says("infiniband-link", infiniband.infiniband({}, machine.place)) == ""


def test_a_port_that_went_down_and_came_back_is_told(machine):
    """By the kernel's counter."""
    port(machine, "mlx5_0")
    machine.write("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "3\n")
    readings = infiniband.infiniband({}, machine.place)
    assert "went down" in says("infiniband-flaps", readings, {"mlx5_0 port 1.link_downed": 2.0})


def test_a_node_that_was_promised_infiniband_and_has_none_is_told(machine):
    """No driver is no answer; a driver without a port fails."""
    with pytest.raises(ProbeError):
        infiniband.infiniband({}, machine.place)
    Path(machine.sys / "class/infiniband").mkdir(parents=True)
    assert says("infiniband-link", infiniband.infiniband({}, machine.place)) == "the node has no InfiniBand port"


def test_the_probes_are_those_that_a_check_may_name():
    """A check that the operator takes is one that the runner can run."""
    assert {*PROBES, "command"} == set(check.PROBES)


def sdiag(folder, answer):
    program = folder / "sdiag"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o755)
    return ProbePaths(sdiag=program)


@pytest.mark.parametrize(
    ("began", "ended", "theirs", "offset"),
    [
        (100.2, 100.3, 100, 0),
        (100.9, 101.4, 100, 0),
        (99.9, 100.1, 100, 0),
        (109.5, 109.6, 100, 8.5),
        (90, 90.5, 100, -9.5),
    ],
)
def test_a_clock_is_wrong_by_at_least_what_whole_seconds_and_the_way_leave_open(began, ended, theirs, offset):
    """slurmctld tells whole seconds, and the answer takes its time."""
    assert clock.compare(began, ended, theirs) == offset


def test_a_wrong_clock_is_told_with_its_side(tmp_path):
    """Ten seconds ahead, and ten behind; slurmctld's own time passes."""
    for shift, said in (
        (-10, r"(8|9|10) s ahead of that of slurmctld"),
        (10, r"(9|10) s behind that of slurmctld"),
        (0, "^$"),
    ):
        place = sdiag(tmp_path, f'echo "sdiag output at now ($(($(date +%s) + {shift})))"')
        assert re.search(said, says("clock", clock.clock({}, place)))


def test_a_slurmctld_that_does_not_tell_its_time_is_no_pass(tmp_path):
    """The probe says what sdiag said."""
    with pytest.raises(ProbeError, match="Unable to contact"):
        clock.clock({}, sdiag(tmp_path, "echo Unable to contact slurm controller >&2; exit 1"))
