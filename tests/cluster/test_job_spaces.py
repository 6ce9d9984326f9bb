"""What a job has for itself on a node, and what is left of it."""

from collections.abc import Iterator

import pytest

from tests.cluster.lab import Lab

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

LEFT = "ls -A /mnt/tmp /run/jail/jobs; cat /proc/[0-9]*/stat | sed -n 's/.*(\\(.*\\)) Z .*/zombie \\1/p; s/.*(\\(jail-holder\\)) .*/\\1/p'"


@pytest.fixture(scope="module")
def node(lab: Lab, alice: str) -> Iterator[str]:
    """A node on which two jobs fit."""
    with lab.pair_nodes("pair", 1, patience=90) as (name,):
        yield name


def test_two_jobs_on_a_node_have_each_their_own_tmp(lab: Lab, alice: str, node: str) -> None:
    """A job's script and steps share /tmp and /dev/shm; another job beside it sees nothing of them."""
    script = "echo mine > /tmp/mine; echo too > /dev/shm/mine; srun cat /tmp/mine /dev/shm/mine; sleep 3333"
    job = lab.ssh(alice, f"sbatch --parsable -n1 -w {node} -o spaces.out --wrap '{script}'").strip()
    lab.until("the job has written", lambda: lab.ssh(alice, "cat spaces.out 2>/dev/null || true") == "mine\ntoo\n", 30)
    look = "sh -c 'cat /tmp/mine /dev/shm/mine || echo none'"
    assert lab.ssh(alice, f"srun -n1 -w {node} {look} 2>/dev/null") == "none\n"
    assert lab.ssh(alice, f"squeue -h -j {job} -o %T") == "RUNNING\n"
    assert lab.ssh(alice, f"srun --overlap --jobid={job} {look}") == "mine\ntoo\n"
    lab.ssh(alice, f"scancel {job}; rm spaces.out")


def test_a_job_sees_its_own_processes_and_leaves_none(lab: Lab, alice: str, node: str) -> None:
    """A step beside another sees what that one runs; when jobs have ended, no process, folder or zombie of theirs is on the node."""
    asked = f"sbatch --parsable -n1 -w {node} -o /dev/null --wrap '(setsid sleep 4444 &); exec sleep 3333'"
    job = lab.ssh(alice, asked).strip()
    lab.until("the job runs", lambda: lab.ssh(alice, f"squeue -h -j {job} -o %T") == "RUNNING\n", 30)
    count = "sh -c 'cat /proc/[0-9]*/comm | grep -cx sleep || true'"
    lab.until("its own step sees both", lambda: lab.ssh(alice, f"srun --overlap --jobid={job} {count}") == "2\n", 10)
    assert lab.ssh(alice, f"srun -n1 -w {node} {count}") == "0\n"
    lab.ssh(alice, f"scancel {job}")
    pod = f"{lab.cluster}-{node}"

    def left() -> str:
        found = lab.kubectl("exec", pod, "-c", "slurmd", "--", "sh", "-c", LEFT).split()
        return " ".join(each for each in found if each not in ("/mnt/tmp:", "/run/jail/jobs:", "containers"))

    lab.until("nothing is left", lambda: left() == "", 20)
