"""No user keeps access to a node without a job: slurmd creates namespaces for a user only for a job that runs on the node."""

from collections.abc import Iterator

import pytest
from test_slurm import RESTART
from test_ssh import SSH, sshd
from trixie import HOOK, KIND, NEEDS, Slurm, wait_idle

__all__ = ["sshd"]

pytestmark = NEEDS

#: `allocate` prints the number of a new allocation without any step, `gone JOB` waits for its end.
ALLOCATE = "allocate() { salloc --no-shell $* 2>&1 | sed -n 's/.*Granted job allocation //p'; }; "
ALLOCATE += 'gone() { until_true "[ -z \\"\\$(squeue -h -j $1 2>/dev/null)\\" ]"; }; '

#: What slurmd's child does for a file of `sbcast` with the number of a job: it calls the plugin, and here prints where it is.
JOIN = """
import ctypes, os, struct, sys
ctypes.CDLL("/usr/lib/x86_64-linux-gnu/slurm-wlm/libslurmfull.so", ctypes.RTLD_GLOBAL)
plugin = ctypes.CDLL("/opt/soperator/lib/slurm/%KIND%_jail.so")
step = ctypes.create_string_buffer(struct.pack("QIII", 2**64 - 2, int(sys.argv[1]), 2**32 - 2, 2**32 - 2))
code = plugin.%HOOK%_p_join(step, ctypes.c_uint32(int(sys.argv[2])), ctypes.c_bool(False))
print(code, "in" if os.path.exists("/in-the-jail") else "out")
""".replace("%KIND%", KIND).replace("%HOOK%", HOOK)
ALICE = 1000
#: 26.05 demands PrologFlags=Contain: each allocation has an extern step from its beginning, whose namespaces the plugin finds, and asks nobody.
ASKS = pytest.mark.skipif(
    KIND == "namespace", reason="every job of this release has an extern step, and so namespaces before anybody asks"
)
REAL = "/usr/bin/squeue"
HELPER = "/opt/soperator/lib/slurm/jail"


@pytest.fixture
def joining(slurm: Slurm) -> Iterator[Slurm]:
    """Start Slurm without jobs; /root/join.py in its pod calls the plugin. A squeue that a test installs is removed after the test."""
    slurm.sh(f"cat >/root/join.py <<'END'\n{JOIN}\nEND")
    assert wait_idle(slurm) == "idle none"
    assert left(slurm) == []
    yield slurm
    slurm.sh(f"[ ! -e {REAL}.real ] || mv {REAL}.real {REAL}; scancel -u alice")
    assert wait_idle(slurm) == "idle none"
    found = left(slurm)
    slurm.sh(f"for job in $(ls /run/jail/jobs); do {HELPER} release --job $job; done")
    assert found == []


def left(slurm: Slurm) -> list[str]:
    """Return the remains of jobs on the node: records, folders and processes."""
    return slurm.sh("ls -A /run/jail/jobs 2>/dev/null; ls -A /mnt/tmp").stdout.split() + holders(slurm)


def holders(slurm: Slurm) -> list[str]:
    """Return the process ids of holders, by the kernel's process name, because slurmd's title is too short for the whole name."""
    return slurm.sh("pgrep -x jail-holder").stdout.split()


def allocate(slurm: Slurm, words: str = "") -> int:
    return int(slurm.sh(f"{ALLOCATE} allocate {words}", user="alice").stdout)


def join(slurm: Slurm, job: int, uid: int = ALICE) -> str:
    return slurm.sh(f"python3 /root/join.py {job} {uid}").stdout.strip()


def bring(slurm: Slurm, job: int) -> None:
    """Broadcast a file to /tmp/g of a job."""
    done = slurm.sh(f"echo brought >/tmp/f; sbcast --jobid={job} -f /tmp/f /tmp/g", user="alice")
    assert done.returncode == 0, done.stderr


def replace_squeue(slurm: Slurm, script: str) -> None:
    """Replace squeue by a script; the real program is beside it."""
    made = f"mv {REAL} {REAL}.real; printf '%s\\n' '#!/bin/sh' '{script}' >{REAL}; chmod +x {REAL}"
    assert slurm.sh(made).returncode == 0


def test_sbcast_against_scancel_leaves_no_way_in(joining: Slurm, sshd: Slurm) -> None:
    """An allocation is cancelled repeatedly while files are broadcast to it: nothing of it remains, and SSH refuses the user."""
    script = f"{ALLOCATE} echo brought >/tmp/f; for i in $(seq 30); do job=$(allocate); "
    script += "for n in 1 2 3; do sbcast --jobid=$job -f /tmp/f /tmp/$n & done; sleep 0.00$((i % 10)); scancel $job; wait; gone $job; done"
    done = joining.sh(script, user="alice", timeout=120)
    assert done.returncode == 0, done.stderr
    assert wait_idle(joining) == "idle none"
    assert left(joining) == []
    entered = sshd.sh(f"{SSH} alice@10.99.0.1 cat /proc/1/comm")
    assert (entered.returncode, entered.stdout) == (255, "")


def test_a_job_that_has_ended_or_never_was_gets_no_namespaces(joining: Slurm) -> None:
    """A user who names such a job is refused and stays outside; no namespace is created."""
    job = allocate(joining)
    assert joining.sh(f"scancel {job}; {ALLOCATE} gone {job}").returncode == 0
    assert join(joining, job) == "-1 out"
    assert join(joining, 999999) == "-1 out"
    assert left(joining) == []


@ASKS
def test_a_job_of_another_user_gets_no_namespaces(joining: Slurm) -> None:
    """Only the owner of an allocation without a step can enter it."""
    job = allocate(joining)
    assert join(joining, job, uid=ALICE + 1) == "-1 out"
    assert left(joining) == []
    assert join(joining, job) == "0 in"


@ASKS
def test_a_job_on_other_nodes_gets_no_namespaces(joining: Slurm) -> None:
    """slurmctld's list of nodes decides, and the whole name must match."""
    job = allocate(joining)
    replace_squeue(joining, f"echo {job} {ALICE} RUNNING {job} one[0-9],two,someone")
    assert join(joining, job) == "-1 out"
    replace_squeue_again = f"echo {job} {ALICE} RUNNING {job} one[0-9],two,one"
    joining.sh(f"printf '%s\\n' '#!/bin/sh' '{replace_squeue_again}' >{REAL}")
    assert join(joining, job) == "0 in"


@ASKS
def test_without_an_answer_nothing_is_made(joining: Slurm) -> None:
    """A squeue that fails or hangs does not prove that a job exists, and callers wait for a limited time."""
    job = allocate(joining)
    replace_squeue(joining, f"echo {job} {ALICE} RUNNING {job} one; exit 1")
    assert join(joining, job) == "-1 out"
    joining.sh(f"printf '%s\\n' '#!/bin/sh' 'exec sleep 77' >{REAL}")
    assert join(joining, job) == "-1 out"
    assert left(joining) == []


@ASKS
def test_the_number_of_a_heterogeneous_job_stands_for_its_part_on_this_node(joining: Slurm) -> None:
    """sbcast names the leader; on another node the file is where the steps of that node's component see it."""
    leader, part = allocate(joining), allocate(joining)
    replace_squeue(
        joining, f'case $* in *{leader}*) echo {part} {ALICE} RUNNING {leader}+1 one;; *) exec {REAL}.real "$@";; esac'
    )
    bring(joining, leader)
    assert joining.sh("ls /run/jail/jobs").stdout.split() == [str(part)]
    assert joining.sh(f"srun -Q --jobid={part} cat /tmp/g", user="alice").stdout == "brought\n"


@ASKS
def test_an_array_task_does_not_stand_for_another(joining: Slurm) -> None:
    """squeue lists all tasks of an array under the number of one task; only that task can be entered."""
    job, other = allocate(joining), allocate(joining)
    replace_squeue(joining, f"echo {other} {ALICE} RUNNING {job}_2 one")
    assert join(joining, job) == "-1 out"


@ASKS
def test_the_epilog_waits_for_who_asks(joining: Slurm) -> None:
    """If a job ends after slurmctld's answer and before its namespaces exist, the epilog runs later and removes them."""
    job = allocate(joining)
    replace_squeue(joining, f'{REAL}.real "$@"; touch /run/asked; sleep 3')
    script = f"python3 /root/join.py {job} {ALICE} >/dev/null & until_true '[ -e /run/asked ]'; rm /run/asked; "
    script += f"scancel {job}; sleep 1; {REAL}.real -h -o %t; wait"
    assert joining.sh(script).stdout == "CG\n"
    joining.sh(f"mv {REAL}.real {REAL}; {ALLOCATE} gone {job}")
    assert wait_idle(joining) == "idle none"
    assert left(joining) == []


def test_a_requeued_job_is_a_job_again(joining: Slurm) -> None:
    """A requeued job has the same number on the same node: files are broadcast to it, also before its first step, and its end removes all."""
    bring = "echo brought >/tmp/f; sbcast -f /tmp/f /tmp/g && srun cat /tmp/g; sleep 60"
    job = joining.sh(
        f"sbatch --parsable --requeue --open-mode=append -o again --wrap '{bring}'; until_true 'grep -q brought /mnt/jail/root/home/alice/again'",
        user="alice",
    ).stdout.strip()
    wait = "until_true '[ $(grep -c brought {}/home/alice/again) = {} ]'"
    root = "/mnt/jail/root"
    assert joining.sh(wait.format(root, 1)).returncode == 0
    begin = f"scontrol requeue {job}; until_true 'squeue -h -t PD -j {job} | grep -q .'; "
    # In the second of its requeue slurmd still takes the new credential for the revoked one, and time() may lag behind the clock of the log.
    begin += f"scontrol update jobid={job} starttime=now+3; "
    done = joining.sh(begin + wait.format(root, 2), timeout=180)
    assert done.returncode == 0, done.stderr
    assert joining.sh("ls /run/jail/jobs").stdout.split() == [job]


def test_a_file_stays_in_an_allocation_without_steps(joining: Slurm) -> None:
    """Broadcast files exist as long as the allocation, also when other jobs end or slurmd is killed."""
    job = allocate(joining)
    bring(joining, job)
    before = holders(joining)
    assert len(before) == 1
    assert joining.sh("srun true", user="alice").returncode == 0
    joining.until(f'[ "$(squeue -h -o %A)" = {job} ]')
    assert joining.sh(RESTART, timeout=60).returncode == 0
    joining.until("sinfo -h -N -o %T | grep -qE 'mixed|allocated'")
    assert holders(joining) == before
    assert joining.sh(f"srun -Q --jobid={job} cat /tmp/g", user="alice").stdout == "brought\n"


def test_a_session_survives_a_killed_slurmd(joining: Slurm, sshd: Slurm) -> None:
    """An SSH session in an allocation with a broadcast file survives the kill and restart of slurmd."""
    job = allocate(joining)
    bring(joining, job)
    script = f"{SSH} alice@10.99.0.1 'touch /tmp/on; until [ -e /tmp/off ]; do sleep 0.1; done; cat /tmp/g' & "
    script += f"until_true '[ -e /mnt/tmp/job-{job}/on ]'; {RESTART} touch /mnt/tmp/job-{job}/off; wait $!"
    assert sshd.sh(script, timeout=60).stdout == "brought\n"
