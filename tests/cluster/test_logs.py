"""What daemons say is on the output of their containers, slurmstepd's lines too."""

import json

import pytest

from tests.cluster.lab import Lab

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


def lines(lab: Lab, pod: str, container: str, last: int = 200) -> list[str]:
    """The last lines of a container."""
    return lab.kubectl("logs", pod, "-c", container, f"--tail={last}").splitlines()


def test_what_went_wrong_with_a_step_is_in_the_log_of_its_node(lab: Lab, alice: str) -> None:
    """Under the number of its job and step; slurmd and slurmctld speak of the same job, each line once."""
    missing = "/nothing-is-here"
    job = lab.ssh(alice, f"sbatch --parsable -w worker-0 -o /dev/null --wrap 'srun {missing}'").strip()
    said = f"slurmstepd: [{job}.0] error: execve(): {missing}: No such file or directory"
    log = lab.until(said, lambda: found if said in (found := lines(lab, "demo-worker-0", "slurmd")) else [], 30)
    (launched,) = [line for line in log if f"Launching batch job {job} " in line]
    assert launched.startswith("slurmd: ")
    done = f"slurmctld: _job_complete: JobId={job} done"
    lab.until(done, lambda: done in lines(lab, "demo-controller-0", "slurmctld"), 30)


def test_the_operator_writes_an_object_a_line(lab: Lab) -> None:
    """When, how grave, what."""
    name = json.loads(lab.kubectl("get", "lease", "soperator", "-n", "soperator-system", "-o", "json"))
    pod = name["spec"]["holderIdentity"].split("_")[0]
    log = lab.kubectl("logs", pod, "-n", "soperator-system", "--tail=50").splitlines()
    assert log
    assert all(list(json.loads(line))[:3] == ["time", "level", "message"] for line in log)
