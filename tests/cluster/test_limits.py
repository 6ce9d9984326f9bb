"""Jobs and what they were given: memory is shared out like CPUs, a step above its own is ended, and what nobody holds is told."""

from collections.abc import Iterator

import pytest

from tests.cluster.lab import Lab, condition

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

EATER = "import time; kept = bytearray(b'x') * (200 << 20); print('has it', flush=True); time.sleep(60)"


@pytest.fixture(scope="module")
def pair(lab: Lab, alice: str) -> Iterator[str]:
    """A node with two CPUs and 2 GiB."""
    with lab.pair_nodes("pair", 1, patience=60) as (name,):
        yield name


def test_jobs_that_ask_for_no_memory_share_a_node(lab: Lab, pair: str) -> None:
    """Two jobs of one CPU each run on a node at once, each with its share; a third one waits for resources."""
    numbers = [
        lab.ssh("alice", f"sbatch --parsable -w {pair} -o /dev/null --wrap 'sleep 60'").strip() for _ in range(3)
    ]
    states = "squeue -h -o '%i %T %m' -j " + ",".join(numbers)
    wanted = [f"{numbers[0]} RUNNING 1G", f"{numbers[1]} RUNNING 1G", f"{numbers[2]} PENDING 1G"]
    lab.until("two run and one waits", lambda: sorted(lab.ssh("alice", states).splitlines()) == wanted, 15)
    assert "AllocMem=2048" in lab.ssh("alice", f"scontrol show node {pair}")
    lab.ssh("alice", f"scancel {' '.join(numbers)}")
    lab.until("the node is empty", lambda: lab.ssh("alice", f"squeue -h -w {pair}") == "", 15)


def test_memory_that_no_node_has_is_refused(lab: Lab, pair: str) -> None:
    """A job that asks for more than the node has is told so when it is submitted."""
    said = lab.ssh("alice", f"sbatch -w {pair} --mem=3000 --wrap true 2>&1 || true")
    assert "Memory specification can not be satisfied" in said


def test_a_step_above_its_memory_is_ended_and_says_why(lab: Lab, pair: str) -> None:
    """It ends within the time between two looks, its neighbour goes on, and the node stays."""
    neighbour = lab.hold(pair)
    said = lab.ssh("alice", f'srun -w {pair} --mem=100 python3 -c "{EATER}" 2>&1; echo ended with $?')
    assert "has it" in said
    assert "exceeded memory limit" in said
    assert "ended with 0" not in said
    neighbour.let_go()
    lab.until("the node is idle", lambda: lab.ssh("alice", f"sinfo -h -n {pair} -o %T").strip() == "idle", 15)


def test_a_step_may_have_the_memory_that_it_asked_for(lab: Lab, pair: str) -> None:
    """Shared memory of several processes is counted once at most, so what fits is left alone."""
    quick = EATER.replace("sleep(60)", "sleep(12)")
    assert lab.ssh("alice", f'srun -w {pair} --mem=300 python3 -c "{quick}"') == "has it\n"


def test_the_cluster_tells_who_holds_its_jobs(lab: Lab) -> None:
    """The condition says that memory is sampled and that CPUs are not held, and what to do about it."""
    said = condition(lab.status(), "LimitsEnforced")
    assert (said["status"], said["reason"]) == ("False", "Sampled")
    assert "cgroup" in said["message"]
