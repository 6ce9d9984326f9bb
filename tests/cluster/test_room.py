"""A shared root that is almost full is a condition until there is room again: on a small claim of its own."""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import demo
from local.paths import DEFAULT_STATE
from tests.cluster.fills import small_image
from tests.cluster.lab import Lab, condition, local

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

NAME, MACHINE = "small", "node-1"
FOLDER = DEFAULT_STATE / "storage" / NAME
JAIL = FOLDER / f"{NAME}-jail"


@pytest.fixture
def small(lab: Lab) -> Iterator[Lab]:
    """A cluster on one Node, whose jail has 400 MiB of memory there."""
    if not lab.target.is_local:
        pytest.skip("a foreign cluster has storage of its own")
    on_node(f"mkdir -p {JAIL} && mount -t tmpfs -o size=400m {NAME} {JAIL}")
    demo.helm(lab.target, "slurm-cluster-storage", NAME, f"cluster={NAME}", f"hostPath.path={FOLDER}", name="storage")
    there = Lab(lab.target, NAME, NAME, lab.timings)
    here = {"nodeSelector": {"kubernetes.io/hostname": MACHINE}}
    spec = {
        "jail": {"claim": {"name": f"{NAME}-jail"}, "image": small_image(lab)},
        "controller": {"state": {"name": f"{NAME}-state"}, "scheduling": here},
        "login": {"replicas": 0, "scheduling": here},
    }
    try:
        assert there.apply("SlurmCluster", NAME, spec).returncode == 0
        there.until("the jail is filled", lambda: condition(there.status(), "JailReady")["reason"] == "Filled", 90)
        yield there
    finally:
        there.tried("delete", "nodeset", NAME, "--ignore-not-found", "--timeout=60s")
        there.tried("delete", "slurmcluster", NAME, "--wait=false")
        there.tried("delete", "namespace", NAME, "--timeout=60s")
        there.tried("delete", "pv", f"{NAME}-{NAME}-jail", f"{NAME}-{NAME}-state", "--ignore-not-found")
        on_node(f"umount -l {JAIL}")
        shutil.rmtree(FOLDER, ignore_errors=True)


def on_node(script: str) -> str:
    """What a script printed on the Node of this cluster."""
    return local("node", "exec", MACHINE, "--", "sh", "-c", script)


def has_room(lab: Lab) -> str:
    """The status of the condition; empty where nobody has said anything yet."""
    said = {each["type"]: each["status"] for each in lab.status().get("conditions", ())}
    return str(said.get("JailHasRoom", ""))


def test_a_jail_that_is_almost_full_is_told_and_drains_nobody(small: Lab) -> None:
    """JailHasRoom says how much is left, of which claim, and what to do, while jobs may run; it is true again when files are gone."""
    big = Path(JAIL, "root/var/tmp/big")
    on_node(f"head -c $(($(df -k --output=avail {JAIL} | tail -n 1) * 1024 - 9000000)) /dev/zero > {big}")
    spec = {"clusterRef": {"name": NAME}, "replicas": 1, "resources": {"requests": {"cpu": "50m", "memory": "512Mi"}}}
    where = {"scheduling": {"nodeSelector": {"kubernetes.io/hostname": MACHINE}}}
    assert small.apply("NodeSet", NAME, spec | where).returncode == 0
    small.until("the condition is false", lambda: has_room(small) == "False", 120)
    said = condition(small.status(), "JailHasRoom")
    assert said["reason"] == "AlmostFull"
    wanted = r"the shared root is 9[78] % full, \d MiB are left: enlarge claim small-jail, or remove unneeded files"
    assert re.fullmatch(wanted, said["message"]), said["message"]
    small.wait_available()
    assert small.status("nodeset", NAME)["readyReplicas"] == 1
    on_node(f"rm {big}")
    began = time.monotonic()
    small.until("the condition is true again", lambda: has_room(small) == "True", 120)
    small.timings.note("a jail that was almost full has room again → JailHasRoom", time.monotonic() - began)
    assert condition(small.status(), "JailHasRoom")["reason"] == "Enough"
