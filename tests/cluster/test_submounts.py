"""Submounts: other storage at paths of the jail, made by a plan and taken away by another."""

import json
from collections.abc import Iterator

import pytest

from local.demo import STATE
from tests.cluster.lab import Lab, condition

pytestmark = pytest.mark.cluster

SIZE = {"requests": {"cpu": "50m", "memory": "128Mi"}}


@pytest.fixture(scope="module")
def shared(lab: Lab) -> Iterator[str]:
    """A claim that all Nodes may mount, in a folder that they share; its volume is kept for the next run."""
    if lab.target.is_local:
        volume = {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": "",
            "claimRef": {"namespace": lab.namespace, "name": "shared"},
            "hostPath": {"path": f"{STATE}/storage/shared", "type": "DirectoryOrCreate"},
        }
        made = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "test-shared"}, "spec": volume}
        lab.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    spec |= {"storageClassName": "", "volumeName": "test-shared"} if lab.target.is_local else {}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared"}, "spec": spec}
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(claim))
    yield "shared"
    lab.kubectl("delete", "pvc", "shared", "--wait=false")
    if lab.target.is_local:
        lab.kubectl("delete", "pv", "test-shared", "--wait=false")


@pytest.fixture(scope="module")
def mounted(lab: Lab, shared: str) -> Iterator[None]:
    """Submounts of the cluster on every node, and further ones of a NodeSet `local`; none of their folders is in the jail before."""
    lab.ssh("root", "rm -rf /shared /fast")
    lab.patch("slurmcluster", lab.cluster, {"jail": {"submounts": [{"path": "/shared", "claimName": shared}]}})
    own = [
        {"path": "/shared/sets", "claimName": shared, "subPath": "sets", "readOnly": True},
        {"path": "/fast/ram", "tmpfs": {"size": "16Mi"}},
        {"path": "/fast/ram/disk", "volume": {"emptyDir": {"sizeLimit": "64Mi"}}},
        {"path": "/fast/node", "hostPath": {"path": "/var/tmp"}},
        {"path": "/tmp", "tmpfs": {"size": "16Mi"}},
    ]
    spec = {"clusterRef": {"name": lab.cluster}, "replicas": 1, "resources": SIZE, "submounts": own}
    assert lab.apply("NodeSet", "local", spec).returncode == 0
    lab.timings.note("submounts of a cluster and a NodeSet → all nodes have them", lab.wait_available(150))
    yield
    lab.kubectl("delete", "nodeset", "local")
    lab.patch("slurmcluster", lab.cluster, {"jail": {"submounts": None}})
    lab.until("local-0 is gone", lambda: "demo-local-0" not in lab.pods(), 60)
    lab.wait_available(150)
    lab.ssh("root", "rmdir /shared /fast/* /fast")


def test_a_claim_is_one_folder_on_login_and_every_node(lab: Lab, mounted: None, alice: str) -> None:
    """What a job of one node writes into the claim is read on login and by a job on each other node; it is not in the jail's own storage."""
    lab.ssh("root", "chmod 1777 /shared")
    lab.ssh(alice, "srun -w worker-0 sh -c 'echo step 7 > /shared/checkpoint'")
    said = lab.ssh(alice, "cat /shared/checkpoint; srun -w worker-0,worker-1,local-0 cat /shared/checkpoint")
    assert said == "step 7\n" * 4
    lab.ssh(alice, "rm /shared/checkpoint")


def test_each_kind_of_submount_is_what_it_says(lab: Lab, mounted: None, alice: str) -> None:
    """Memory has its size, a read-only folder takes no file, a folder of the Node and a volume of the pod do."""
    script = """
        df --output=size -B1 /fast/ram | tail -n 1
        findmnt -n -o FSTYPE /fast/ram
        touch /shared/sets/x 2>&1 | grep -o 'Read-only file system'
        echo here > /fast/node/plan-test && cat /fast/node/plan-test && rm /fast/node/plan-test
        dd if=/dev/zero of=/fast/ram/full bs=1M count=32 2>&1 | grep -o 'No space left on device'
        ls -d /fast/ram/disk"""
    said = lab.ssh(alice, "srun -w local-0 bash", stdin=script.encode()).split("\n")
    assert [line.strip() for line in said[:-1]] == [
        str(16 << 20),
        "tmpfs",
        "Read-only file system",
        "here",
        "No space left on device",
        "/fast/ram/disk",
    ]


def test_who_fills_tmp_harms_nobody(lab: Lab, mounted: None, alice: str) -> None:
    """Where /tmp has a size, a job that fills it can write no more there; the next job on the node can, and the node stays as it is."""
    fill = "dd if=/dev/zero of=/tmp/full bs=1M count=32 2>&1 | grep -o 'No space left on device'"
    assert lab.ssh(alice, "srun -Q -w local-0 bash", stdin=fill.encode()) == "No space left on device\n"
    look = "test ! -e /tmp/full && echo fine > /tmp/here && cat /tmp/here"
    assert lab.ssh(alice, "srun -Q -w local-0 bash", stdin=look.encode()) == "fine\n"
    assert lab.ssh("root", "sinfo -h -N -n local-0 -o %E") == "none\n"


def test_the_plan_is_what_the_cluster_explains(lab: Lab, mounted: None) -> None:
    """`soperator explain jail` of the live objects has the lines that the node was given, in their order."""
    plan = lab.kubectl("exec", "demo-local-0", "-c", "slurmd", "--", "cat", "/etc/soperator/jail/plan")
    rows = lab.soperator("explain", "jail", lab.cluster, "local", "-n", lab.namespace).splitlines()[2:]
    lines = [line.split("\t") for line in plan.splitlines()]
    assert [row.split()[1:3] for row in rows] == [[target, kind] for kind, _, target, _, _ in lines]
    assert all(row.endswith(why) for row, (*_, why) in zip(rows, lines, strict=True))


def test_other_nodes_have_an_empty_folder(lab: Lab, mounted: None, alice: str) -> None:
    """What only NodeSet local mounts is, elsewhere, the mount point and nothing in it."""
    assert lab.ssh(alice, "srun -w worker-0 find /fast").split() == ["/fast", "/fast/node", "/fast/ram"]


def test_a_path_through_a_link_is_refused_in_a_condition_and_touches_nothing(lab: Lab, mounted: None) -> None:
    """Only the jail knows that the path is a link: the Job that makes mount points says it, and both objects tell it."""
    lab.ssh("root", "ln -s /usr/share /via")
    before = {name: each["metadata"]["uid"] for name, each in lab.pods("worker").items()}
    try:
        submounts = [{"path": "/via/data", "tmpfs": {"size": "1Mi"}}]
        lab.patch("nodeset", "worker", {"submounts": submounts})
        words = "via, on the way to /via/data, is a symbolic link to /usr/share in the jail"
        lab.timed(
            "a link in a submount's path → the sentence",
            lambda: words in lab.says("nodeset", "worker"),
            60,
        )
        assert condition(lab.status("nodeset", "worker"), "Available")["reason"] == "MountPointsMissing"
        assert {name: each["metadata"]["uid"] for name, each in lab.pods("worker").items()} == before
    finally:
        lab.patch("nodeset", "worker", {"submounts": None})
        lab.ssh("root", "rm /via")
    lab.wait_available()
    assert {name: each["metadata"]["uid"] for name, each in lab.pods("worker").items()} == before


def test_a_removed_mount_point_is_told_to_the_job_and_made_again(lab: Lab, mounted: None, alice: str) -> None:
    """A step says which folder somebody took away; the Job that made it makes it again when it is deleted."""
    lab.ssh("root", "rmdir /fast/node")
    said = lab.ssh(alice, "timeout 20 srun -w local-0 true 2>&1 || true")
    assert "mount point /fast/node is missing in the jail" in said
    lab.kubectl("delete", "job", "demo-mount-points")
    again = "timeout 20 srun -w local-0 echo fine 2>/dev/null || true"
    lab.until("jobs run on local-0 again", lambda: lab.ssh(alice, again) == "fine\n", 60)
    lab.wait_available()


def test_a_running_job_keeps_its_mounts_and_the_node_its_plan(lab: Lab, mounted: None, alice: str) -> None:
    """Another submount waits for the job to end; then the node is made anew with it."""
    held = lab.hold("local-0")
    uid = lab.look("pod", "demo-local-0")["metadata"]["uid"]
    more = {"path": "/fast/more", "tmpfs": {"size": "1Mi"}}
    lab.patch("nodeset", "local", {"submounts": [*lab.look("nodeset", "local")["spec"]["submounts"], more]})
    named = "jsonpath={range .items[*]}{.metadata.name}{'\\n'}{end}"
    chosen = ("get", "configmap", "-l", "slurm.soperator.io/nodeset=local", "-o", named)
    lab.until("the plans of both pods are there", lambda: len(lab.kubectl(*chosen).split()) == 2, 60)
    look = f"srun --overlap --jobid {held.number} sh -c 'findmnt -n -o FSTYPE /fast/ram; findmnt /fast/more || echo not here'"
    assert lab.ssh(alice, look).split("\n")[:2] == ["tmpfs", "not here"]
    assert lab.look("pod", "demo-local-0")["metadata"]["uid"] == uid
    held.let_go()
    lab.wait_available()
    assert lab.ssh(alice, "srun -w local-0 findmnt -n -o FSTYPE /fast/more") == "tmpfs\n"
    assert len(lab.kubectl(*chosen).split()) == 1
