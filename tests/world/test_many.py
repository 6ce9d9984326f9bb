"""Several clusters under one operator: two in one namespace, and one of the same name in another."""

from soperator.api.base import GROUP
from soperator.kube import kinds
from tests.world.harness import NS, Town, operating

OTHER = "team-b"
PLACES = ((NS, "demo"), (NS, "second"), (OTHER, "demo"))


def seed(town, kind, namespace, name, spec):
    """What `kubectl apply` does, in any namespace."""
    meta = {"name": name, "namespace": namespace}
    town.fake.world.seed({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec})


def children(town, namespace, cluster):
    """The objects of one cluster, by kind and name, each with its content."""
    found = [each for each in town.fake.world.objects.values() if each["metadata"].get("namespace") == namespace]
    ours = [each for each in found if each["metadata"].get("labels", {}).get(f"{GROUP}/cluster") == cluster]
    return {(each["kind"], each["metadata"]["name"]): each for each in ours}


async def begin(town):
    """Apply the three clusters and wait for what the operator makes of them."""
    for namespace, name in PLACES:
        seed(town, kinds.SLURMCLUSTER, namespace, name, {})
        seed(town, kinds.NODESET, namespace, f"{name}-set", {"clusterRef": {"name": name}, "replicas": 1})
    await town.settle(quiet=0.5)


async def test_each_cluster_has_objects_and_keys_of_its_own():
    """All three have the same kinds of children, each owned by its own cluster, and no two keys are equal. Claims of `demo` were there first."""
    async with operating(Town()) as town:
        await begin(town)
        kinds_of, keys = [], []
        for namespace, name in PLACES:
            found = children(town, namespace, name)
            uid = town.fake.world.find(kinds.SLURMCLUSTER, namespace, name)["metadata"]["uid"]
            anchor = found["ConfigMap", f"{name}-anchor"]["metadata"]["uid"]
            owners = {owner["uid"] for each in found.values() for owner in each["metadata"].get("ownerReferences", ())}
            assert owners == {uid, anchor}
            claims = {each for kind, each in found if kind == "PersistentVolumeClaim"}
            assert claims == (set() if (namespace, name) == (NS, "demo") else {f"{name}-jail", f"{name}-state"})
            kinds_of.append(sorted(kind for kind, _ in found if kind != "PersistentVolumeClaim"))
            secrets = {each: obj["data"] for (kind, each), obj in found.items() if kind == "Secret"}
            assert all(secrets[f"{each}-kept"] == secrets[each] for each in secrets if not each.endswith("-kept"))
            keys += [value for each, data in secrets.items() if not each.endswith("-kept") for value in data.values()]
        assert kinds_of[0] == kinds_of[1] == kinds_of[2]
        assert {"StatefulSet", "Deployment", "NetworkPolicy"} <= set(kinds_of[0])
        assert len(keys) == len(set(keys)) == 12


async def test_what_happens_to_one_leaves_the_others_alone():
    """An edit, a refused edit and the deletion of one cluster write nothing to a child of another."""
    async with operating(Town()) as town:
        await begin(town)
        before = {place: children(town, *place) for place in PLACES[1:]}
        for spec in ({"login": {"replicas": 2}}, {"config": {"extraLines": {"slurm": "ClusterName=mine"}}}):
            town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), {"spec": spec})
            await town.settle(quiet=0.3)
        await town.fake.api().delete(kinds.SLURMCLUSTER, NS, "demo")
        await town.settle(quiet=0.5)
        assert {place: children(town, *place) for place in PLACES[1:]} == before
