"""A cluster whose nodes have roots of their own, and share the users' files alone."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from local import demo
from local.paths import DEFAULT_STATE
from tests.cluster.lab import Lab

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

NAMESPACE = "slurm-own"
CLUSTER = "own"
FOLDER = DEFAULT_STATE / "storage" / NAMESPACE
#: Who has which volume: of class `disk` each pod takes one for its root, as it would a disk of its Node.
VOLUMES = {"homes": "", "own-state": "", "disk-0": "disk", "disk-1": "disk", "disk-2": "disk", "disk-3": "disk"}


def volume(name: str, kind: str) -> dict[str, Any]:
    """A volume in a folder of this machine; one without a class is for the claim of its name."""
    spec = {
        "accessModes": ["ReadWriteMany"] if name == "homes" else ["ReadWriteOnce"],
        "capacity": {"storage": "2Gi"},
        "storageClassName": kind,
        "hostPath": {"path": str(FOLDER / name), "type": "DirectoryOrCreate"},
    }
    spec |= {} if kind else {"claimRef": {"namespace": NAMESPACE, "name": name}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"{NAMESPACE}-{name}"}, "spec": spec}


def claim(name: str) -> dict[str, Any]:
    """The claim on the volume of its name."""
    spec = {
        "accessModes": ["ReadWriteMany"] if name == "homes" else ["ReadWriteOnce"],
        "storageClassName": "",
        "volumeName": f"{NAMESPACE}-{name}",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def own(lab: Lab) -> Iterator[Lab]:
    """The cluster, available; removed with all that it kept."""
    if not lab.target.is_local:
        pytest.skip("a foreign cluster has storage of its own")
    second = Lab(lab.target, NAMESPACE, CLUSTER, lab.timings)
    clean(second)
    second.kubectl("create", "namespace", NAMESPACE)
    made = [volume(name, kind) for name, kind in VOLUMES.items()] + [claim(name) for name in ("homes", "own-state")]
    second.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    spec = {
        "jail": {
            "perNode": True,
            "claim": {"size": "1Gi", "storageClassName": "disk"},
            "submounts": [{"path": "/home", "claimName": "homes"}, {"path": "/site/ram", "tmpfs": {"size": "1Mi"}}],
        },
        "controller": {"state": {"name": "own-state"}},
        "login": {"rootAuthorizedKeys": [demo.public_key()]},
    }
    assert second.apply("SlurmCluster", CLUSTER, spec).returncode == 0
    size = {"requests": {"cpu": "50m", "memory": "128Mi"}}
    assert (
        second.apply("NodeSet", "node", {"clusterRef": {"name": CLUSTER}, "replicas": 2, "resources": size}).returncode
        == 0
    )
    lab.timings.note("a cluster with a root for each node → available", second.wait_available(200))
    yield second
    clean(second)


def clean(lab: Lab) -> None:
    """Remove the namespace, its volumes and their files."""
    lab.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=90s")
    lab.kubectl("delete", "pv", *(f"{NAMESPACE}-{name}" for name in VOLUMES), "--ignore-not-found")
    shutil.rmtree(FOLDER, ignore_errors=True)


def test_what_root_changes_on_one_node_is_there_alone(own: Lab) -> None:
    """A file in /etc of one node is on no other and not on login; the users' files are everywhere."""
    own.ssh("root", "srun -w node-0 sh -c 'echo $(hostname) > /etc/mark; echo $(hostname) > /home/mark'")
    said = own.ssh("root", "srun -w node-0 cat /etc/mark /home/mark; srun -w node-1 cat /home/mark; cat /home/mark")
    assert said == "node-0\n" * 4
    for command in ("srun -w node-1 ls /etc/mark", "ls /etc/mark"):
        assert "No such file" in own.ssh("root", f"{command} 2>&1 || true")
    assert own.ssh("root", "srun -N2 df --output=fstype /site/ram | sort -u").split() == ["Type", "tmpfs"]


def test_each_pod_has_a_claim_of_its_own_and_no_job_filled_it(own: Lab) -> None:
    """The claims are named by the pods; users of the image may run jobs."""
    claims = own.kubectl("get", "pvc", "-o", "name").split()
    pods = ("own-login-0", "own-node-0", "own-node-1")
    assert {f"persistentvolumeclaim/{name}-jail" for name in pods} <= set(claims)
    assert own.kubectl("get", "jobs", "-o", "name") == ""
    assert own.ssh("root", "runuser -u games -- srun -N2 id -un").split() == ["games"] * 2


def test_a_node_that_is_made_anew_begins_as_its_image_says(own: Lab) -> None:
    """What root changed on it is gone with its claim, what users keep is not."""
    own.kubectl("delete", "pod", "own-node-0", "--wait=false")
    own.timed("a worker with a root of its own, deleted → it takes jobs again", lambda: _answers(own), 120)
    assert own.ssh("root", "srun -w node-0 cat /home/mark") == "node-0\n"


def _answers(lab: Lab) -> bool:
    """Whether node-0 takes a job in a root without the mark."""
    if lab.look("pod", "own-node-0").get("metadata", {}).get("deletionTimestamp") or not lab.is_whole():
        return False
    return "No such file" in lab.ssh("root", "timeout 10 srun -w node-0 ls /etc/mark 2>&1 || true")
