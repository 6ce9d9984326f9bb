"""What a job has for itself on a node, and what is left of it."""

import pytest

from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster

LEFT = "ls -A /mnt/tmp /run/jail/jobs; cat /proc/[0-9]*/stat | sed -n 's/.*(\\(.*\\)) Z .*/zombie \\1/p; s/.*(\\(jail-holder\\)) .*/\\1/p'"


def test_tmp_is_the_jobs_and_gone_with_it(lab: Lab, alice: str) -> None:
    """Two jobs on one node do not see each other's /tmp and /dev/shm; a job's script and steps share theirs."""
    script = "echo mine > /tmp/mine; echo too > /dev/shm/mine; srun cat /tmp/mine /dev/shm/mine; srun --overlap sleep 2"
    lab.ssh(alice, f"sbatch --parsable -w worker-0 -o spaces.out --wrap '{script}'")
    lab.until("the job has written", lambda: lab.ssh(alice, "cat spaces.out 2>/dev/null || true") == "mine\ntoo\n", 30)
    assert lab.ssh(alice, "srun -w worker-0 ls /tmp /dev/shm").split() == ["/dev/shm:", "/tmp:"]


def test_a_job_sees_its_own_processes_and_leaves_none(lab: Lab, alice: str) -> None:
    """A step beside another sees what that one runs; when jobs have ended, no process, folder or zombie of theirs is on the node."""
    lab.ssh(alice, "sbatch --job-name=spaces -w worker-0 -o /dev/null --wrap '(setsid sleep 4444 &); exec sleep 3333'")
    running = "squeue -h -t R -n spaces -o %A"
    job = str(lab.until("the job runs", lambda: lab.ssh(alice, running).strip(), 30))
    count = "cat /proc/[0-9]*/comm | grep -cx sleep"
    seen = lab.ssh(alice, f"srun --overlap --jobid={job} sh -c '{count}'; srun -w worker-0 sh -c '{count}' || true")
    assert seen.split() == ["2", "0"]
    lab.ssh(alice, f"scancel {job}")
    worker = f"{lab.cluster}-worker-0"
    empty = "/mnt/tmp:\n\n/run/jail/jobs:\n"
    lab.until(
        "nothing is left", lambda: lab.kubectl("exec", worker, "-c", "slurmd", "--", "sh", "-c", LEFT) == empty, 20
    )
