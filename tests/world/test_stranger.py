"""What an administrator does by mistake to pods, keys, claims and objects, while a job runs."""

import asyncio

import pytest

from soperator.kube import kinds
from soperator.render.parts import labels
from tests.unit.fake_world import Fault, Where
from tests.world.harness import NS, Town, operating
from tests.world.test_change import workers
from tests.world.test_cluster import CLUSTER, WORKERS
from tests.world.test_rotation import Pods, daemons_begin

NOT_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
#: By what a worker's pod is found.
LABELS = [labels.MANAGED_BY, labels.CLUSTER, labels.ROLE, labels.NODESET, labels.INDEX]


@pytest.fixture
async def town():
    """Two workers, and a job on the second."""
    async with operating(Town()) as made:
        await made.up(CLUSTER, WORKERS)
        made.slurm.run(7, "worker-1")
        await asyncio.sleep(2)
        yield made


def delete(town, kind, name, policy="Background"):
    """What `kubectl delete --wait=false --cascade=<policy>` does."""
    town.fake.world.delete(Where.at(kind, NS, name), policy=policy)


def release(town, kind, name):
    """Delete an object and remove its finalizers by hand."""
    delete(town, kind, name)
    town.fake.world.change(kind, (NS, name), {"metadata": {"finalizers": []}})


def unlabel(town, pod, label):
    """What `kubectl label pod <pod> <label>-` does."""
    found = town.find(kinds.POD, pod)
    kept = {key: value for key, value in found["metadata"]["labels"].items() if key != label}
    changed = {**found, "metadata": {**found["metadata"], "labels": kept}}
    town.fake.world.replace(Where.at(kinds.POD, NS, pod), changed, "kubectl")


def keeps_job(town):
    """Whether all that the job needs is there."""
    needed = [(kinds.STATEFULSET, "demo-controller"), (kinds.SECRET, "demo-auth-key"), (kinds.POD, "demo-worker-1")]
    return all(town.find(*each) for each in needed)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(("kind", "name"), [(kinds.SLURMCLUSTER, "demo"), (kinds.NODESET, "worker")], ids=str)
async def test_a_deletion_waits_for_a_job_on_a_pod_without_a_label(town, label, kind, name):
    """A label taken off a pod, as one does to debug it, hides the worker from the operator; Slurm still calls its node busy."""
    unlabel(town, "demo-worker-1", label)
    await asyncio.sleep(5)
    delete(town, kind, name)
    await asyncio.sleep(60)
    assert keeps_job(town)
    assert town.find(kind, name)


@pytest.mark.parametrize("label", LABELS)
async def test_the_labels_of_a_worker_are_put_back(town, label):
    """Without them its name is taken, and no pod comes in its place; afterwards nothing more is written."""
    before = town.find(kinds.POD, "demo-worker-0")["metadata"]
    unlabel(town, "demo-worker-0", label)
    await asyncio.sleep(30)
    after = town.find(kinds.POD, "demo-worker-0")["metadata"]
    assert (after["labels"], after["uid"]) == (before["labels"], before["uid"])
    asked = len(town.fake.asked("patch", "create"))
    town.slurm.set("worker-0", "IDLE")
    await asyncio.sleep(30)
    assert len(town.fake.asked("patch", "create")) - asked < 3


def relabel(town, pod, label, value):
    """What `kubectl label --overwrite pod <pod> <label>=<value>` does."""
    found = town.find(kinds.POD, pod)
    meta = {**found["metadata"], "labels": {**found["metadata"]["labels"], label: value}}
    town.fake.world.replace(Where.at(kinds.POD, NS, pod), {**found, "metadata": meta}, "kubectl")


@pytest.mark.parametrize("is_ending", [False, True], ids=["alive", "ending"])
@pytest.mark.parametrize("is_refused", [False, True], ids=["accepted", "refused"])
@pytest.mark.parametrize(
    ("label", "value"),
    [
        (labels.CLUSTER, "second"),
        (labels.ROLE, "login"),
        (labels.NODESET, "other"),
        (labels.INDEX, "0"),
        (labels.INDEX, "7"),
        (labels.INDEX, "x"),
    ],
)
async def test_the_labels_of_a_worker_that_somebody_edited_are_put_back(town, label, value, is_refused, is_ending):
    """Also where the spec is refused, or a deletion waits for the job: the worker is counted and protected, its job and its neighbour stay."""
    town.apply(kinds.NODESET, "other", {"clusterRef": {"name": "demo"}, "replicas": 0})
    if is_refused:
        town.apply(kinds.NODESET, "worker", WORKERS["worker"] | {"partitions": ["no such name!"]})
    await asyncio.sleep(5)
    before = {each: town.find(kinds.POD, each)["metadata"] for each in ("demo-worker-0", "demo-worker-1")}
    removed, remove = [], town.slurm.remove
    town.slurm.remove = lambda name: (removed.append(name), remove(name))
    relabel(town, "demo-worker-1", label, value)
    if is_ending:
        delete(town, kinds.NODESET, "worker")
    await asyncio.sleep(20)
    after = town.find(kinds.POD, "demo-worker-1")["metadata"]
    assert (after["labels"], after["uid"]) == (before["demo-worker-1"]["labels"], before["demo-worker-1"]["uid"])
    assert keeps_job(town)
    if not is_ending:
        assert town.find(kinds.POD, "demo-worker-0")["metadata"]["uid"] == before["demo-worker-0"]["uid"]
        assert removed == []
        assert town.status(kinds.SLURMCLUSTER, "demo")["workers"]["summary"] == "2/2"


async def test_labels_that_were_put_back_stay_when_the_operator_writes_to_the_pod(town):
    """It marks pods that may be evicted, in another write than the labels."""
    relabel(town, "demo-worker-0", labels.ROLE, "login")
    await asyncio.sleep(5)
    town.apply(kinds.NODESET, "worker", WORKERS["worker"] | {"replicas": 1})
    town.slurm.run(8, "worker-0")
    await asyncio.sleep(60)
    found = town.find(kinds.POD, "demo-worker-0")["metadata"]
    assert found["labels"].items() >= labels.worker("demo", "worker").items()


async def test_a_cluster_that_is_gone_keeps_what_its_workers_need_and_comes_back(town):
    """Its finalizer was removed by hand; whoever makes it again finds the keys, slurmctld and the job."""
    key = town.find(kinds.SECRET, "demo-auth-key")["data"]
    release(town, kinds.SLURMCLUSTER, "demo")
    await asyncio.sleep(30)
    assert town.find(kinds.SLURMCLUSTER, "demo") is None
    assert keeps_job(town)
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER)
    await asyncio.sleep(30)
    assert keeps_job(town)
    assert town.find(kinds.SECRET, "demo-auth-key")["data"] == key
    assert town.slurm.jobs[7]["job_state"] == ["RUNNING"]


async def test_a_nodeset_that_names_no_cluster_ends_no_job_of_another(town):
    """It takes over pods by its name; a typo in spec.clusterRef.name does not say that their slurmctld is gone."""
    release(town, kinds.NODESET, "worker")
    await asyncio.sleep(5)
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "dmeo"}, "replicas": 2})
    await asyncio.sleep(5)
    delete(town, kinds.NODESET, "worker")
    await asyncio.sleep(10)
    assert keeps_job(town)


@pytest.mark.parametrize("states", [("UNKNOWN", "DRAIN"), ("DRAIN",), ("LATER", "DRAIN")], ids=str)
async def test_a_state_that_nobody_knows_is_busy(town, states):
    """slurmctld that starts, or of a later version: DRAIN alone does not say that nothing runs."""
    delete(town, kinds.NODESET, "worker")
    await asyncio.sleep(3)
    town.slurm.jobs.clear()
    town.slurm.set("worker-1", *states, reason=town.slurm.nodes["worker-1"]["reason"])
    await asyncio.sleep(30)
    assert "demo-worker-1" in workers(town)


async def test_a_node_that_slurm_leaves_out_is_busy_while_its_job_is_listed(town):
    """Its pod is not ready at the same time, as where the jail hangs."""
    town.fake.world.change(kinds.POD, (NS, "demo-worker-1"), {"status": NOT_READY}, sub="status")
    del town.slurm.nodes["worker-1"]
    delete(town, kinds.NODESET, "worker")
    await asyncio.sleep(30)
    assert "demo-worker-1" in workers(town)
    town.slurm.jobs.clear()
    await asyncio.sleep(60)
    assert workers(town) == []


async def test_a_clock_that_is_put_back_holds_no_worker_up(town):
    """A pod was refused while the clock was a day ahead."""
    town.later = 86400.0
    town.fake.faults.append(Fault("create", "pods", 403, "Forbidden", "quota", times=1))
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 3})
    await asyncio.sleep(1)
    town.later = 0.0
    await asyncio.sleep(400)
    assert len(workers(town)) == 3


@pytest.mark.parametrize("claim", ["demo-state", "first-state"])
async def test_no_two_clusters_have_one_state(town, claim):
    """The second slurmctld would write over the jobs of the first, whether its claim has a name or the operator made it."""
    town.apply(kinds.SLURMCLUSTER, "first", {})
    await asyncio.sleep(5)
    town.apply(kinds.SLURMCLUSTER, "second", {"controller": {"state": {"name": claim}}})
    await asyncio.sleep(10)
    assert town.find(kinds.STATEFULSET, "second-controller") is None
    assert "has its state there" in town.says(kinds.SLURMCLUSTER, "second")


@pytest.mark.parametrize("is_away", [False, True])
async def test_keys_of_another_cluster_are_not_taken_with_their_copies(is_away):
    """A restored backup brings a Secret and its copy, which agree, but not with the daemons."""
    town = Town()
    async with operating(town, execute=Pods().execute):
        await town.up(CLUSTER, WORKERS)
        daemons_begin(town)
        town.apply(kinds.SLURMCLUSTER, "other", {})
        await asyncio.sleep(5)
        mine = town.find(kinds.SECRET, "demo-auth-key")["data"]
        if not is_away:
            _swap(town)
            await asyncio.sleep(10)
    if is_away:
        _swap(town)
    async with operating(town, execute=Pods().execute):
        await asyncio.sleep(10)
        told = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}
        assert told["KeysSettled"]["reason"] == "OtherKey"
        town.fake.world.change(kinds.SECRET, (NS, "demo-auth-key"), {"data": mine})
        await asyncio.sleep(10)
        told = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}
        assert told["KeysSettled"]["status"] == "True"
        assert town.find(kinds.SECRET, "demo-auth-key-kept")["data"] == mine


def _swap(town):
    """Put the key of `other`, and its copy, where those of `demo` are."""
    for tail in ("-kept", ""):
        theirs, here = (town.find(kinds.SECRET, f"{each}-auth-key{tail}") for each in ("other", "demo"))
        meta = {**here["metadata"], "annotations": theirs["metadata"].get("annotations", {})}
        made = {**here, "metadata": meta, "data": theirs["data"]}
        town.fake.world.replace(Where.at(kinds.SECRET, NS, f"demo-auth-key{tail}"), made, "kubectl")


@pytest.mark.parametrize(("kind", "name"), [(kinds.NODESET, "worker"), (kinds.SLURMCLUSTER, "demo")], ids=str)
async def test_an_anchor_that_is_deleted_during_a_deletion_in_the_foreground_ends_no_job(town, kind, name):
    """While the deletion waits for the job, nothing else owns the children; its finalizer keeps it."""
    delete(town, kind, name, "Foreground")
    await asyncio.sleep(5)
    delete(town, kinds.CONFIGMAP, "demo-anchor")
    await asyncio.sleep(10)
    assert keeps_job(town)


async def test_an_anchor_that_is_being_deleted_keeps_its_children_until_the_cluster_goes(town):
    """Somebody deleted it on another day. One of a former operator, without a finalizer, gets it as soon as it is seen."""
    world, key = town.fake.world, Where.at(kinds.CONFIGMAP, NS, "demo-anchor").key
    assert labels.FINALIZER in town.find(kinds.CONFIGMAP, "demo-anchor")["metadata"]["finalizers"]
    delete(town, kinds.CONFIGMAP, "demo-anchor")
    await asyncio.sleep(5)
    assert world.objects[key]["metadata"]["deletionTimestamp"]
    for kind, name in ((kinds.NODESET, "worker"), (kinds.SLURMCLUSTER, "demo")):
        delete(town, kind, name, "Foreground")
    await asyncio.sleep(30)
    assert keeps_job(town)
    town.slurm.jobs.clear()
    town.slurm.set("worker-1", "IDLE", "DRAIN", reason=town.slurm.nodes["worker-1"]["reason"])
    await asyncio.sleep(90)
    assert town.find(kinds.SLURMCLUSTER, "demo") is None
    assert key not in world.objects


NEEDED = [
    (kinds.STATEFULSET, "demo-controller"),
    (kinds.SERVICE, "demo-controller"),
    (kinds.SERVICE, "demo-nodes"),
    (kinds.CONFIGMAP, "demo-config"),
    (kinds.DEPLOYMENT, "demo-rest"),
    (kinds.STATEFULSET, "demo-login"),
    (kinds.SECRET, "demo-auth-key"),
    (kinds.PDB, "demo-workers"),
]


@pytest.mark.parametrize(("kind", "name"), NEEDED, ids=str)
@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_what_jobs_need_is_put_back_while_a_deletion_waits(town, kind, name, policy):
    """The job may run for days, and slurmctld may have to start again meanwhile; when it has ended, everything goes."""
    assert town.find(kind, name)
    delete(town, kinds.SLURMCLUSTER, "demo", policy)
    await asyncio.sleep(5)
    delete(town, kind, name, "Orphan")
    await asyncio.sleep(30)
    assert town.find(kind, name)
    assert keeps_job(town)
    town.slurm.jobs.clear()
    town.slurm.set("worker-1", "IDLE", "DRAIN", reason=town.slurm.nodes["worker-1"]["reason"])
    await asyncio.sleep(90)
    assert town.find(kinds.SLURMCLUSTER, "demo") is None
    assert town.find(kinds.CONFIGMAP, "demo-anchor") is None


async def test_a_cluster_that_cannot_be_read_keeps_its_state_to_itself(town):
    """An operator that was rolled back reads the younger of two clusters alone."""
    town.apply(kinds.SLURMCLUSTER, "second", CLUSTER)
    await asyncio.sleep(5)
    assert town.find(kinds.STATEFULSET, "second-controller") is None
    town.apply(kinds.SLURMCLUSTER, "demo", {**CLUSTER, "auth": {"type": "ofTheNextRelease"}})
    await asyncio.sleep(5)
    town.apply(kinds.SLURMCLUSTER, "second", CLUSTER | {"login": {"replicas": 2}})
    await asyncio.sleep(10)
    assert town.find(kinds.STATEFULSET, "second-controller") is None


async def test_a_claim_is_free_when_the_cluster_that_had_it_is_gone(town):
    """Whoever waited for it is told so, and goes on."""
    town.slurm.jobs.clear()
    town.slurm.set("worker-1", "IDLE")
    town.apply(kinds.SLURMCLUSTER, "second", CLUSTER)
    await asyncio.sleep(5)
    for kind, name in ((kinds.NODESET, "worker"), (kinds.SLURMCLUSTER, "demo")):
        delete(town, kind, name)
    await asyncio.sleep(60)
    assert town.find(kinds.SLURMCLUSTER, "demo") is None
    assert town.find(kinds.STATEFULSET, "second-controller")


@pytest.mark.parametrize("label", [labels.NODESET, labels.INDEX, labels.MANAGED_BY])
async def test_a_suspended_job_on_a_pod_without_a_label_keeps_its_node(town, label):
    """Slurm calls the node idle, and would remove its record under the job, as one whose pod comes anew."""
    removed, remove = [], town.slurm.remove
    town.slurm.remove = lambda name: (removed.append(name), remove(name))
    town.slurm.suspend(7)
    await asyncio.sleep(5)
    unlabel(town, "demo-worker-1", label)
    await asyncio.sleep(30)
    assert removed == []
    assert town.find(kinds.POD, "demo-worker-1")["metadata"]["labels"][label]
    assert town.slurm.jobs[7]["job_state"] == ["SUSPENDED"]
