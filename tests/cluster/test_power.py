"""Nodes that sleep until a job needs them, over real pods and a real slurmctld.

Who has no machine waits beside the others. 200 jobs and five kills are `make soak-power`.
"""

from collections.abc import Iterator

import pytest

from tests.cluster.lab import Lab, condition
from tests.soak.sleepers import Sleepers, kill_operator

pytestmark = pytest.mark.cluster

TASKS = 16
#: No longer than the first set's resumeTimeout, so that slurm.conf is the same with and without this one.
STRAY = {
    "powerSaving": {"maxNodes": 2, "resumeTimeout": "30s", "suspendTimeout": "3s", "retryAfter": "1h"},
    "scheduling": {"nodeSelector": {"nowhere": "yes"}},
}


@pytest.fixture(scope="module")
def owls(lab: Lab, alice: str) -> Iterator[Sleepers]:
    """Four nodes that sleep, and two for which there is no machine; at the end all are gone, with their records."""
    owls, strays = Sleepers(lab, "owl", 4, alice), Sleepers(lab, "stray", 2, alice)
    owls.apply(idle="1h")
    strays.apply(**STRAY)
    lab.until("all of them sleep", lambda: owls.sleep() and strays.sleep(), 120)
    lab.ssh(alice, "rm -f owl-*; sbatch -J stray -C stray -o /dev/null --wrap true")
    yield owls
    lab.ssh("root", f"scancel -u {alice}")
    lab.kubectl("delete", "nodeset", "owl", "stray", "--ignore-not-found", "--timeout=90s")
    assert not owls.states()
    assert not strays.states()
    lab.wait_available()


def test_a_job_wakes_the_node_that_it_needs_and_an_administrator_another(lab: Lab, owls: Sleepers) -> None:
    """Nobody else wakes; and the one that the administrator puts to sleep goes, while the other stays for as long as it may idle."""
    assert condition(lab.status("nodeset", "owl"), "Available")["status"] == "True"
    lab.ssh("root", "scontrol power up owl-2")
    began = owls.submit("-w owl-0", "date +%s.%N >$HOME/owl-began")
    lab.until("owl-2 is up", lambda: owls.states()["owl-2"] == "idle", 90)
    lab.ssh("root", "scontrol power down owl-2")
    ran = float(lab.until("the job has run", lambda: owls.read("owl-began"), 120))
    lab.timings.note("on demand: sbatch → the job runs on a node that slept", ran - began)
    left = {"owl-0": "idle", "owl-1": "idle~", "owl-2": "idle~", "owl-3": "idle~"}
    lab.until("owl-2 sleeps", lambda: owls.pods() == ["demo-owl-0"] and owls.states() == left, 60)
    lab.until("one is wanted", lambda: lab.status("nodeset", "owl").get("desiredReplicas") == 1, 30)


def test_an_array_of_jobs_runs_and_all_sleep_in_the_end(lab: Lab, owls: Sleepers) -> None:
    """Every task runs once, on no more than four nodes, although the operator is killed while nodes wake; who idles is put to sleep."""
    owls.submit(f"--array=1-{TASKS}", "echo $SLURMD_NODENAME >>$HOME/owl-$SLURM_ARRAY_TASK_ID; sleep 1")
    lab.until("a task has run", owls.ran, 60)
    kill_operator(lab)
    lab.until("all tasks have run", lambda: owls.ran() == TASKS, 150)
    owls.check(TASKS)
    owls.apply(idle="5s")
    lab.timed("on demand: suspendTime is set to 5 s → all nodes sleep and no pod is left", owls.sleep, 120)


def test_where_there_is_no_machine_slurm_gives_the_job_back_and_says_why(lab: Lab, owls: Sleepers) -> None:
    """The nodes are DOWN with Kubernetes' words, the NodeSet says so, and no pod is left; a person may resume them before their time."""
    strays = Sleepers(lab, "stray", 2, owls.user)
    lab.until("Slurm is told", lambda: set(strays.states().values()) == {"down~"} and not strays.pods(), 90)
    assert "soperator: no capacity: pod demo-stray-" in lab.ssh("root", "sinfo -h -R -o %80E")
    said = lab.until("the NodeSet says it", lambda: lab.status("nodeset", "stray").get("why"))
    assert "do not wake: no capacity" in said
    assert lab.ssh(owls.user, "squeue -h -n stray -o %T").strip() == "PENDING"
    lab.ssh(owls.user, "scancel -n stray")
    lab.ssh("root", "scontrol update NodeName=stray-[0-1] State=RESUME")
    lab.until("all may be used again", strays.sleep, 60)
