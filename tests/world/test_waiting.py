"""A deletion that waits for a job: whatever of ours the job needs, and somebody deletes meanwhile, stays or is put back."""

import asyncio
from dataclasses import replace

import pytest

from soperator.kube import kinds
from soperator.render.parts import labels, names
from tests.golden.cases import DEFAULTS
from tests.unit.fake_world import Fault, Where
from tests.world.harness import NS, Town, operating
from tests.world.test_change import workers
from tests.world.test_cluster import CLUSTER, WORKERS
from tests.world.test_ending import gone

POLICIES = ("Foreground", "Background", "Orphan")
#: What is deleted while the job runs.
DELETED = {
    "NodeSet": ((kinds.NODESET, "worker"),),
    "SlurmCluster": ((kinds.SLURMCLUSTER, "demo"),),
    "both": ((kinds.SLURMCLUSTER, "demo"), (kinds.NODESET, "worker")),
}
#: The kinds of what a person may delete of a cluster's objects. A worker's pod goes with its job, and a claim stays while a pod has it.
PARTS = (
    kinds.CONFIGMAP,
    kinds.SECRET,
    kinds.SERVICE,
    kinds.STATEFULSET,
    kinds.DEPLOYMENT,
    kinds.PDB,
    kinds.NETWORKPOLICY,
)
ANCHOR = names.anchor("demo")


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


def begin(town, what, policy="Background"):
    """Delete a NodeSet, its cluster, or both."""
    for kind, name in DELETED[what]:
        delete(town, kind, name, policy)


def parts(town):
    """Every object that the operator made for the cluster, but for pods, claims and Jobs."""
    wanted = {kind.kind: kind for kind in PARTS}
    found = [each for each in town.fake.world.objects.values() if each["kind"] in wanted]
    mine = [each["metadata"] for each in found if each["metadata"].get("labels", {}).get(labels.CLUSTER) == "demo"]
    of = {each["metadata"]["uid"]: wanted[each["kind"]] for each in found}
    return {(of[each["uid"]], each["name"]): each for each in mine}


def missing(town, before):
    """Which of the parts that there were are gone, or on their way out; the anchor may be that, as long as it is there."""
    now = parts(town)
    there = {each for each, meta in now.items() if "deletionTimestamp" not in meta or each[1] == ANCHOR}
    return sorted(name for _, name in before.keys() - there)


async def ends(town):
    """Delete what is not deleted yet, let the job end, and wait until both objects are gone."""
    begin(town, "both")
    town.slurm.jobs.clear()
    town.slurm.nodes["worker-1"]["state"] = ["IDLE", "DRAIN"]
    await gone(town, kinds.SLURMCLUSTER, "demo", seconds=60)
    await gone(town, kinds.NODESET, "worker", seconds=60)
    await town.settle(quiet=0.5)


def keeps_job(town):
    """Whether the job's pod, its slurmctld and the key of both are there."""
    needed = [(kinds.STATEFULSET, "demo-controller"), (kinds.SECRET, "demo-auth-key"), (kinds.POD, "demo-worker-1")]
    found = [town.find(*each) for each in needed]
    return all(each and "deletionTimestamp" not in each["metadata"] for each in found)


@pytest.mark.parametrize("by", POLICIES)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("what", DELETED)
async def test_an_anchor_that_is_deleted_while_a_deletion_waits_stays(town, what, policy, by):
    """Whoever deletes it, and how; when the job has ended it goes with all the rest."""
    before = parts(town)
    begin(town, what, policy)
    await asyncio.sleep(5)
    for _ in range(2):
        delete(town, kinds.CONFIGMAP, ANCHOR, by)
        await asyncio.sleep(10)
    assert keeps_job(town)
    assert missing(town, before) == []
    await ends(town)
    assert town.find(kinds.CONFIGMAP, ANCHOR) is None
    assert parts(town) == {}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("by", POLICIES)
async def test_an_anchor_that_was_deleted_before_holds_a_deletion_all_the_same(town, policy, by):
    """It is Terminating for as long as the cluster lives, and nothing is written about that."""
    delete(town, kinds.CONFIGMAP, ANCHOR, by)
    await asyncio.sleep(10)
    assert "deletionTimestamp" in town.find(kinds.CONFIGMAP, ANCHOR)["metadata"]
    asked = len(town.fake.writes())
    await asyncio.sleep(30)
    assert town.fake.writes()[asked:] == []
    before = parts(town)
    begin(town, "both", policy)
    await asyncio.sleep(30)
    assert keeps_job(town)
    assert missing(town, before) == []
    await ends(town)
    assert parts(town) == {}


def strip(town):
    """Take the anchor's finalizer off: so a former operator made it, or somebody did."""
    town.fake.world.change(kinds.CONFIGMAP, (NS, ANCHOR), {"metadata": {"finalizers": []}})


@pytest.mark.parametrize("when", ["before", "while it waits", "when the cluster was removed by force"])
async def test_the_anchor_of_a_former_operator_gets_the_finalizer(when):
    """An operator is upgraded whatever goes on at that time."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        town.slurm.run(7, "worker-1")
        await asyncio.sleep(2)
        if when != "before":
            begin(town, "SlurmCluster")
            await asyncio.sleep(5)
    if "force" in when:
        town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), {"metadata": {"finalizers": []}})
    strip(town)
    async with operating(town):
        await asyncio.sleep(10)
        delete(town, kinds.CONFIGMAP, ANCHOR)
        await asyncio.sleep(10)
        assert town.find(kinds.CONFIGMAP, ANCHOR)
        assert keeps_job(town)


async def test_the_finalizer_of_an_anchor_is_put_back(town):
    """Somebody edited it away; one write, and then nothing more."""
    strip(town)
    await asyncio.sleep(10)
    assert town.find(kinds.CONFIGMAP, ANCHOR)["metadata"]["finalizers"] == [labels.FINALIZER]
    asked = len(town.fake.writes())
    await asyncio.sleep(30)
    assert town.fake.writes()[asked:] == []


async def test_an_anchor_whose_labels_were_taken_off_is_found_again(town):
    """Caches find it by its labels, and its content cannot be written again."""
    found = town.find(kinds.CONFIGMAP, ANCHOR)
    bare = {**found, "metadata": {**found["metadata"], "labels": {}, "finalizers": []}}
    town.fake.world.replace(Where.at(kinds.CONFIGMAP, NS, ANCHOR), bare, "kubectl")
    await town.settle(quiet=0.5)
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"login": {"replicas": 2}})
    await asyncio.sleep(10)
    meta = town.find(kinds.CONFIGMAP, ANCHOR)["metadata"]
    assert meta["uid"] == found["metadata"]["uid"]
    assert (meta["labels"], meta["finalizers"]) == (found["metadata"]["labels"], found["metadata"]["finalizers"])


async def test_the_anchor_of_a_cluster_that_was_removed_by_force_goes_with_the_last_worker(town):
    """Nobody has to remove its finalizer, whether or not somebody has deleted it already."""
    begin(town, "both")
    town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), {"metadata": {"finalizers": []}})
    delete(town, kinds.CONFIGMAP, ANCHOR)
    await asyncio.sleep(30)
    assert keeps_job(town)
    town.fake.world.change(kinds.NODESET, (NS, "worker"), {"metadata": {"annotations": {labels.ABANDON: "true"}}})
    await gone(town, kinds.CONFIGMAP, ANCHOR, seconds=30)
    await town.settle(quiet=0.5)
    assert workers(town) == []
    assert parts(town) == {}


async def test_a_namespace_that_terminates_takes_the_anchor_along(town):
    """Kubernetes deletes everything in it and lets nothing be made there; what waits for us goes when the pods have gone."""
    town.slurm.down = True

    def terminating(old, new):
        return None if old else "metadata.namespace: it is being terminated"

    town.fake.world.rules.append(terminating)
    for key in [*town.fake.world.objects]:
        if key[2] == NS and key in town.fake.world.objects and key[1] != "pods":
            town.fake.world.delete_key(key)
    await asyncio.sleep(5)
    for name in town.names(kinds.POD):
        town.fake.world.remove(kinds.POD, NS, name)
    await asyncio.sleep(60)
    assert [key for key in town.fake.world.objects if key[2] == NS] == []


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("what", DELETED)
async def test_whatever_a_person_deletes_while_a_deletion_waits_is_put_back(town, what, policy):
    """One after the other, and then all at once; each comes back, and with the job all of it goes."""
    before = parts(town)
    assert len(before) > 15
    begin(town, what, policy)
    await asyncio.sleep(5)
    for each in before:
        delete(town, *each)
        await asyncio.sleep(5)
        assert missing(town, before) == []
    for each in before:
        delete(town, *each) if each[0] != kinds.SECRET else None  # a key that is lost with its copy is lost
    await asyncio.sleep(20)
    assert missing(town, before) == []
    assert keeps_job(town)
    await ends(town)
    assert parts(town) == {}


@pytest.mark.parametrize("what", DELETED)
async def test_a_slurmctld_that_is_deleted_with_its_pod_comes_back_before_the_deletion_ends(town, what):
    """`kubectl delete statefulset --cascade=foreground`: it goes after its pod, and at that moment nobody answers for the job."""
    begin(town, what)
    await asyncio.sleep(5)
    town.slurm.down = True
    town.fake.faults.append(Fault("patch", "statefulsets", times=3))
    town.fake.world.remove(kinds.POD, NS, "demo-controller-0")
    delete(town, kinds.STATEFULSET, "demo-controller")
    await asyncio.sleep(60)
    assert keeps_job(town)
    town.slurm.down = False
    town.daemons_run()
    town.pods_run()
    await asyncio.sleep(10)
    assert keeps_job(town)


@pytest.mark.parametrize("what", DELETED)
async def test_a_slurmctld_that_is_scaled_to_none_while_a_deletion_waits_is_scaled_back(town, what):
    """It is gone as it would be by a deletion."""
    begin(town, what)
    await asyncio.sleep(5)
    town.fake.world.change(kinds.STATEFULSET, (NS, "demo-controller"), {"spec": {"replicas": 0}})
    await asyncio.sleep(10)
    assert town.find(kinds.STATEFULSET, "demo-controller")["spec"]["replicas"] == 1


async def test_a_deletion_that_waits_begins_no_change(town):
    """What the spec says otherwise by now is not taken over, and what it says no more is not removed; what is missing is made."""
    begin(town, "SlurmCluster")
    await asyncio.sleep(5)
    before = parts(town)
    changed = {
        "controller": {"state": {"name": "demo-state"}, "scheduling": {"nodeSelector": {"moved": "yes"}}},
        "metrics": {},
        "config": {"extraLines": {"slurm": "MaxJobCount=20000"}},
    }
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | changed)
    delete(town, kinds.SERVICE, "demo-controller")
    await asyncio.sleep(30)
    after = parts(town)
    assert after.keys() == before.keys()
    kept = [each for each in before if each != (kinds.SERVICE, "demo-controller")]
    assert [after[each]["resourceVersion"] for each in kept] == [before[each]["resourceVersion"] for each in kept]


async def test_a_claim_that_is_gone_is_not_made_again_while_a_deletion_waits():
    """slurmctld would begin with an empty one, and end the jobs that it does not know."""
    async with operating(Town()) as town:
        await town.up({"jail": {"claim": {"name": "demo-jail"}}}, WORKERS)
        town.slurm.run(7, "worker-1")
        await asyncio.sleep(2)
        begin(town, "SlurmCluster")
        await asyncio.sleep(5)
        town.fake.world.remove(kinds.PVC, NS, "demo-state")
        delete(town, kinds.SERVICE, "demo-controller")
        await asyncio.sleep(20)
        assert town.find(kinds.SERVICE, "demo-controller")
        assert town.find(kinds.PVC, "demo-state") is None


async def test_an_operator_that_is_upgraded_while_a_deletion_waits_changes_nothing():
    """It renders otherwise; what is there stays as it is, and what somebody deletes is put back all the same."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        town.slurm.run(7, "worker-1")
        await asyncio.sleep(2)
        begin(town, "both")
        await asyncio.sleep(5)
        before = parts(town)
    later = replace(DEFAULTS, slurm="other/slurm:2", login="other/login:2", cluster_domain="other.local")
    async with operating(town, defaults=later, renderer="2"):
        await asyncio.sleep(10)
        delete(town, kinds.SERVICE, "demo-controller")
        await asyncio.sleep(20)
        after = parts(town)
        assert after.keys() == before.keys()
        kept = [each for each in before if each != (kinds.SERVICE, "demo-controller")]
        assert [after[each].get("generation") for each in kept] == [before[each].get("generation") for each in kept]
        assert workers(town) == ["demo-worker-1"]
        await ends(town)
        assert parts(town) == {}


async def test_a_deletion_that_waits_writes_nothing(town):
    """Jobs may run for days."""
    begin(town, "both", "Foreground")
    await asyncio.sleep(60)
    asked = len(town.fake.writes())
    await asyncio.sleep(120)
    assert town.fake.writes()[asked:] == []


async def test_what_cannot_be_put_back_is_told_and_holds_no_deletion_up(town):
    """A quota, or a policy of the cluster: the words of Kubernetes, beside what is waited for."""
    begin(town, "both")
    await asyncio.sleep(5)
    town.fake.faults.append(Fault("patch", "services", 403, "Forbidden", "quota of services", times=10**6))
    delete(town, kinds.SERVICE, "demo-controller")
    await town.told(kinds.SLURMCLUSTER, "demo", "quota of services", longest=20)
    assert "workers left: 1" in town.says(kinds.SLURMCLUSTER, "demo")
    await ends(town)


async def test_a_spec_that_is_refused_has_nothing_put_back_and_says_so(town):
    """What it would make was never accepted; the job and what is there stay."""
    begin(town, "SlurmCluster")
    await asyncio.sleep(5)
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"jail": {"claim": {"name": "nowhere"}}})
    delete(town, kinds.SERVICE, "demo-controller")
    await town.told(kinds.SLURMCLUSTER, "demo", "nowhere", longest=20)
    assert town.find(kinds.SERVICE, "demo-controller") is None
    assert keeps_job(town)
