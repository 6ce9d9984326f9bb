"""What goes wrong while nodes wake, over real pods and a real slurmctld: an image that is not there, a slurmd that never begins, a job that is
taken back, and an operator that is away meanwhile.
"""

import os
from collections.abc import Iterator

import pytest

from tests.cluster.lab import OPERATOR, Lab
from tests.soak.sleepers import Sleepers

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("SOPERATOR_LONG"), reason="make soak-power plays it"),
]

HASTY = {"maxNodes": 2, "resumeTimeout": "30s", "suspendTimeout": "3s", "retryAfter": "1h"}
NOWHERE = "localhost/soperator/nowhere:1"


@pytest.fixture(scope="module")
def owls(lab: Lab, alice: str) -> Iterator[Sleepers]:
    """Four nodes that sleep, and two sets that cannot wake, each with a job that wants it to; at the end all are gone."""
    owls, others = Sleepers(lab, "owl", 4, alice), [Sleepers(lab, name, 2, alice) for name in ("lost", "mute")]
    owls.apply(idle="5s")
    others[0].apply(power=HASTY, image=NOWHERE)
    image = lab.kubectl("get", "pod", f"{lab.cluster}-worker-0", "-o", "jsonpath={.spec.containers[0].image}")
    waits = {"name": "forever", "image": image, "command": ["sleep", "3600"]}
    others[1].apply(power=HASTY, podTemplate={"spec": {"initContainers": [waits]}})
    lab.until("all of them sleep", lambda: all(each.sleep() for each in [owls, *others]), 120)
    lab.ssh(alice, "rm -f owl-*; for set in lost mute; do sbatch -J $set -C $set -o /dev/null --wrap true; done")
    yield owls
    lab.ssh("root", f"scancel -u {alice}")
    lab.kubectl("delete", "nodeset", "owl", "lost", "mute", "--ignore-not-found", "--timeout=90s")
    assert not owls.states()
    lab.wait_available()


def test_a_job_that_is_cancelled_while_its_node_wakes_leaves_nothing(lab: Lab, owls: Sleepers) -> None:
    """It is gone at once; the node comes up, idles, and sleeps again."""
    owls.submit("-w owl-1", "echo ran >>$HOME/owl-1")
    lab.until("the node wakes", lambda: owls.states()["owl-1"] == "alloc#", 30)
    lab.ssh(owls.user, "scancel -n wrap")
    lab.until("the job is gone", lambda: not lab.ssh(owls.user, "squeue -h -n wrap").strip(), 10)
    lab.until("all sleep", owls.sleep, 120)
    assert owls.ran() == 0


def test_an_operator_that_was_away_catches_up(lab: Lab, owls: Sleepers) -> None:
    """What woke meanwhile comes up once, what fell asleep goes, also where a job wants it again, and no job ran twice or was lost."""
    lab.ssh("root", "scontrol power up owl-[2-3]")
    lab.until("two are up", lambda: [owls.states()[f"owl-{each}"] for each in (2, 3)] == ["idle"] * 2, 90)
    lab.kubectl("scale", "-n", OPERATOR, "deployment/soperator", "--replicas=0")
    try:
        chosen = ["-n", OPERATOR, "-l", "app.kubernetes.io/name=soperator", "-o", "name"]
        lab.until("the operator is away", lambda: not lab.kubectl("get", "pods", *chosen).strip(), 60)
        lab.ssh("root", "scontrol power down owl-[2-3]")
        asleep = ["idle~"] * 2
        lab.until("two sleep", lambda: [owls.states()[f"owl-{each}"] for each in (2, 3)] == asleep, 60)
        for number in (0, 3):
            owls.submit(f"-w owl-{number}", f"echo $SLURMD_NODENAME >>$HOME/owl-{number}")
        awake = {"owl-0": "alloc#", "owl-1": "idle~", "owl-2": "idle~", "owl-3": "alloc#"}
        lab.until("two are asked for", lambda: owls.states() == awake, 60)
        assert owls.pods() == ["demo-owl-2", "demo-owl-3"]
    finally:
        lab.kubectl("scale", "-n", OPERATOR, "deployment/soperator", "--replicas=1")
    lab.until("both jobs have run", lambda: owls.ran() == 2, 150)
    owls.check(2)
    lab.until("all sleep", owls.sleep, 120)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("lost", "soperator: no capacity: pod demo-lost-"), ("mute", "soperator: did not wake: ")],
)
def test_nodes_that_do_not_come_up_are_given_up_with_the_reason(
    lab: Lab, owls: Sleepers, name: str, reason: str
) -> None:
    """Slurm and the NodeSet say why, the job waits, and no pod is left."""
    others = Sleepers(lab, name, 2, owls.user)
    lab.until("Slurm is told", lambda: "down~" in others.states().values() and not others.pods(), 120)
    assert reason in lab.ssh("root", "sinfo -h -R -o %200E")
    assert "not wake" in lab.until("the NodeSet says it", lambda: lab.status("nodeset", name).get("why"))
    assert lab.ssh(owls.user, f"squeue -h -n {name} -o %T").strip() in ("PENDING", "CONFIGURING")
    lab.ssh(owls.user, f"scancel -n {name}")
