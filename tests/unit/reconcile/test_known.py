"""What the operator knows of a namespace: read once for each change, and never older than its caches."""

import msgspec

from soperator.kube.objects import PersistentVolumeClaim
from soperator.kube.views import Custom, ObjectMeta
from soperator.reconcile.cache.informers import Stores, make_stores
from soperator.reconcile.cache.namespaces import Namespaces


def put(stores: Stores, name: str, cluster: str = "", **spec: object) -> None:
    """A SlurmCluster, or a NodeSet of one, as the API server would send it."""
    text = msgspec.json.encode({**spec, **({"clusterRef": {"name": cluster}} if cluster else {})})
    store = stores.nodesets if cluster else stores.clusters
    store.put(
        Custom(
            metadata=ObjectMeta(name=name, namespace="slurm", uid=name, resource_version=str(store.version + 1)),
            spec=msgspec.Raw(text),
        )
    )


def test_the_same_until_something_that_counts_changes() -> None:
    """Another status is no change; another spec, NodeSet or claim is."""
    stores = make_stores()
    namespaces = Namespaces(stores)
    put(stores, "demo")
    first = namespaces.view("slurm")
    assert namespaces.view("slurm") is first
    put(stores, "demo")
    assert namespaces.view("slurm") is first
    put(stores, "gpu", cluster="demo", replicas=2)
    second = namespaces.view("slurm")
    assert [each.name for each in second.members("demo")] == ["gpu"]
    assert first.members("demo") == []
    put(stores, "gpu", cluster="demo", replicas=3)
    assert [each.spec.replicas for each in namespaces.view("slurm").members("demo")] == [3]
    stores.claims.put(PersistentVolumeClaim(metadata=ObjectMeta(name="data", namespace="slurm", uid="data")))
    assert namespaces.view("slurm").world.claims == frozenset({"data"})
    assert namespaces.view("other").world.claims == frozenset()


def test_a_refused_nodeset_is_no_member() -> None:
    """A NodeSet that names a claim which is not there has a problem, and becomes a member when the claim comes."""
    stores = make_stores()
    namespaces = Namespaces(stores)
    put(stores, "demo")
    put(stores, "gpu", cluster="demo", submounts=[{"path": "/data", "claimName": "data"}])
    known = namespaces.view("slurm")
    assert [str(each.field) for each in known.refused["gpu"]] == ["spec.submounts[0].claimName"]
    assert known.members("demo") == []
    stores.claims.put(PersistentVolumeClaim(metadata=ObjectMeta(name="data", namespace="slurm", uid="data")))
    assert [each.name for each in namespaces.view("slurm").members("demo")] == ["gpu"]
