"""The jail as the operator looks after it, on a fake API server."""

import pytest

from soperator.kube import kinds
from tests.world.harness import NS, Town, operating

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
RAM = {"clusterRef": {"name": "demo"}, "replicas": 1, "submounts": [{"path": "/ram", "tmpfs": {"size": "1Gi"}}]}


@pytest.fixture
async def town():
    """A town with an operator."""
    async with operating(Town()) as town:
        yield town


def plans(town):
    """The mount plans of NodeSet worker, by the names of their ConfigMaps."""
    found = [name for name in town.names(kinds.CONFIGMAP) if name.startswith("demo-worker-jail-")]
    return {name: town.find(kinds.CONFIGMAP, name)["data"]["plan"] for name in found}


async def test_a_node_keeps_the_plan_that_its_pod_was_made_for(town):
    """While a busy node waits for its turn its plan stays beside the new one, and goes with the last pod that has it."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    (before,) = plans(town)
    town.slurm.set("worker-0", "ALLOCATED")
    town.apply(kinds.NODESET, "worker", RAM)
    await town.settle(quiet=0.3)
    point_job(town, **DONE)
    await town.settle(quiet=0.3)
    assert set(plans(town)) > {before}
    assert "\t/ram\t" not in plans(town)[before]
    town.slurm.set("worker-0", "IDLE", "DRAIN", reason="soperator: new pod template")
    await town.settle(quiet=0.3)
    town.pods_run()
    await town.settle(quiet=0.3)
    ((after, text),) = plans(town).items()
    assert after != before
    assert "\t/ram\t" in text
    volumes = town.find(kinds.POD, "demo-worker-0")["spec"]["volumes"]
    assert {"name": "plan", "configMap": {"name": after}} in volumes
    assert town.find(kinds.CONFIGMAP, after)["metadata"]["namespace"] == NS


def point_job(town, **status):
    """Give the Job of the mount points a status."""
    town.fake.world.change(kinds.JOB, (NS, "demo-mount-points"), {"status": status}, sub="status")


DONE = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}


async def test_a_new_submount_waits_for_its_folder_and_touches_nothing_before(town):
    """A Job makes the folder; until it has, pods and plans stay as they are and the condition says what is awaited."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    before = (plans(town), town.find(kinds.STATEFULSET, "demo-login")["spec"])
    town.apply(kinds.NODESET, "worker", RAM)
    await town.settle(quiet=0.3)
    job = town.find(kinds.JOB, "demo-mount-points")
    assert '"target": "/ram"' in job["spec"]["template"]["spec"]["containers"][0]["command"][-1]
    await town.told(kinds.NODESET, "worker", "/ram")
    await town.told(kinds.SLURMCLUSTER, "demo", "/ram")
    said = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}
    assert (said["JailReady"]["status"], said["JailReady"]["reason"]) == ("False", "MountPointsMissing")
    assert said["Available"]["status"] == "True"
    assert (plans(town), town.find(kinds.STATEFULSET, "demo-login")["spec"]) == before
    point_job(town, **DONE)
    await town.settle(quiet=0.3)
    assert "\t/ram\t" in "".join(plans(town).values())


async def test_a_mount_point_that_cannot_be_made_is_told_until_the_spec_is_corrected(town):
    """The failed Job's sentence stands in both objects; another path is another Job."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    town.apply(kinds.NODESET, "worker", RAM)
    await town.settle(quiet=0.3)
    point_job(town, failed=3, conditions=[{"type": "Failed", "status": "True", "message": "it is a link"}])
    await town.settle(quiet=0.3)
    for kind, name in ((kinds.NODESET, "worker"), (kinds.SLURMCLUSTER, "demo")):
        said = "demo-mount-points could not create the mount points: it is a link; fix the cause, then delete the Job"
        await town.told(kind, name, said)
    town.apply(kinds.NODESET, "worker", {**RAM, "submounts": []})
    await town.settle(quiet=0.3)
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 2})
    await town.settle()
    assert "demo-worker-1" in town.names(kinds.POD)


async def test_a_first_cluster_with_submounts_waits_for_the_job_and_then_starts(town):
    """Login and workers come after the mount points, slurmctld before."""
    mounts = {"jail": {**CLUSTER["jail"], "submounts": [{"path": "/data", "claimName": "demo-state"}]}}
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | mounts)
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1})
    await town.settle()
    assert "demo-mount-points" not in town.names(kinds.JOB)
    town.fill_jail()
    await town.settle(quiet=0.3)
    assert town.names(kinds.STATEFULSET) == ["demo-controller"]
    await town.told(kinds.SLURMCLUSTER, "demo", "/data")
    point_job(town, **DONE)
    await town.settle(quiet=0.3)
    assert town.names(kinds.STATEFULSET) == ["demo-controller", "demo-login"]
    assert "demo-worker-0" in town.names(kinds.POD)


async def test_without_a_shared_jail_every_pod_fills_its_own(town):
    """No claim and no Job of the jail is made; pods have a claim of their own, and nothing waits."""
    town.apply(kinds.SLURMCLUSTER, "demo", {**CLUSTER, "jail": {"perNode": True}})
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1})
    town.fake.world.remove(kinds.PVC, NS, "demo-jail")
    for _ in range(3):
        await town.settle()
        town.daemons_run()
        town.pods_run()
    await town.told(kinds.SLURMCLUSTER, "demo", "")
    assert town.names(kinds.JOB) == []
    assert town.names(kinds.PVC) == ["demo-state"]
    spec = town.find(kinds.POD, "demo-worker-0")["spec"]
    assert "ephemeral" in next(each for each in spec["volumes"] if each["name"] == "jail")
    assert [each["name"] for each in spec["initContainers"]] == ["jail-script", "jail-copy", "jail-seal"]


async def test_a_jail_image_that_is_not_there_is_told_at_once(town):
    """The pod of the populate Job that cannot be pulled is news, not progress: JailReady has its image as soon as the kubelet says so."""
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER)
    await town.settle(quiet=0.5)
    job = town.find(kinds.JOB, "demo-populate")["metadata"]["uid"]
    town.populate_pod("demo-populate-1", job, {"phase": "Pending"})
    await town.settle(quiet=0.5)
    waiting = {"reason": "ErrImagePull", "message": 'failed to pull "localhost/nothing:1"'}
    status = {"initContainerStatuses": [{"name": "copy", "state": {"waiting": waiting}}]}
    town.fake.world.change(kinds.POD, (NS, "demo-populate-1"), {"status": status}, sub="status")
    await town.settle(quiet=0.2)
    said = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}["JailReady"]
    assert (said["status"], said["reason"]) == ("False", "Stuck")
    assert "localhost/nothing:1" in said["message"]
    assert "spec.jail.image" in said["message"]


async def test_an_event_of_a_pull_that_failed_is_told_before_the_pods_status_says_so(town):
    """The kubelet's Event is enough for JailReady; another pod's is not; it is forgotten when the container runs after all."""
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER)
    await town.settle(quiet=0.5)
    town.machine("node-1")
    job = town.find(kinds.JOB, "demo-populate")["metadata"]["uid"]
    town.populate_pod("demo-populate-1", job, {"phase": "Pending", **copy_waits("PodInitializing")})
    town.place("demo-populate-1", "node-1")
    pod = town.find(kinds.POD, "demo-populate-1")["metadata"]["uid"]
    town.fake.world.seed(pull_failed("other", "another"))
    await town.told(kinds.SLURMCLUSTER, "demo", "it is starting")
    town.fake.world.seed(pull_failed("this", pod))
    await town.settle(quiet=1.5, longest=20)
    said = conditions_of(town)["JailReady"]
    assert (said["status"], said["reason"]) == ("False", "Stuck")
    assert "container copy waits, ErrImagePull: nothing answers; correct spec.jail.image or" in said["message"]
    asked = [each for each in town.fake.requests if "involvedObject" in each.query.get("fieldSelector", "")]
    assert 1 <= len(asked) <= 4
    running = {"initContainerStatuses": [{"name": "copy", "state": {"waiting": None, "running": {}}}]}
    town.fake.world.change(kinds.POD, (NS, "demo-populate-1"), {"status": running}, sub="status")
    await town.settle(quiet=1.5, longest=20)
    assert conditions_of(town)["JailReady"]["reason"] == "Waiting"


def copy_waits(reason):
    """The status of a pod whose container copy waits."""
    return {"initContainerStatuses": [{"name": "copy", "state": {"waiting": {"reason": reason}}}]}


def pull_failed(name, uid):
    """An Event of the kubelet's."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": NS},
        "involvedObject": {"uid": uid, "fieldPath": "spec.initContainers{copy}"},
        "type": "Warning",
        "reason": "Failed",
        "message": f'Failed to pull image "localhost/{name}:1": nothing answers',
    }


def conditions_of(town):
    """The cluster's conditions by type."""
    return {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}
