"""Deletions on a real garbage collector: it takes no child that has an anchor, whoever deletes that, and all of them when the anchor goes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from soperator.api.common import ClusterReference
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.kube.api import Api, Deletion
from soperator.kube.errors import Conflict, NotFound
from soperator.kube.kinds import CONFIGMAP, CRD, NODESET, POD, PVC, SECRET, SLURMCLUSTER, Kind
from soperator.kube.views import Custom, Meta, ObjectMeta
from soperator.render.parts import labels, names
from soperator.render.parts.anchor import anchor_marks, render_anchor
from soperator.render.parts.model import Cluster, NodeSet, anchor_owner
from soperator.render.worker import pod as worker_pod
from soperator.runtime.apply import Owner
from soperator.runtime.apply_ledger import ANCHORER
from tests.golden.cases import DEFAULTS
from tests.runtime.server import ControlPlane
from tests.unit.objects import make

#: The first is a NodeSet's, the others are their cluster's.
CHILDREN = ((POD, "demo-worker-0"), (SECRET, "demo-auth-key"), (PVC, "demo-state"))
OWNERS = {SLURMCLUSTER: "demo", NODESET: "worker"}
#: The collector begins with a graph of all kinds that are there then, and looks for new ones every 30 s.
STARTS, TAKES = 60.0, 10.0


@pytest.fixture(scope="module")
def collector(plane: ControlPlane) -> Iterator[None]:
    """A kube-controller-manager that collects garbage, beside an API server that knows our kinds."""

    async def install() -> None:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        shape = {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": schema}}}
        version = {"name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": shape}
        async with plane.api() as api:
            for kind in (SLURMCLUSTER, NODESET):
                called = {"plural": kind.plural, "singular": kind.kind.lower(), "kind": kind.kind}
                spec = {"group": kind.group, "names": called, "scope": "Namespaced", "versions": [version]}
                await api.apply(CRD, make(CRD, f"{kind.plural}.{kind.group}", spec=spec))
                async with asyncio.timeout(10):
                    while True:
                        try:
                            await api.list(kind, Meta)
                            break
                        except NotFound:
                            await asyncio.sleep(0.1)

    asyncio.run(install())
    plane.start_collector()
    yield
    plane.stop_process("kube-controller-manager")


@dataclass(frozen=True)
class Site:
    """A cluster and a NodeSet with a finalizer of ours, and a child of each sort with an anchor or without one."""

    api: Api
    namespace: str
    anchor: str = ""

    async def child(self, kind: Kind, name: str) -> Meta | None:
        """A child that is there and is not being deleted."""
        try:
            found = await self.api.get(kind, Meta, self.namespace, name)
        except NotFound:
            return None
        return found if found.metadata.deletion_timestamp is None else None

    async def missing(self) -> list[str]:
        """The children that are gone, or on their way out."""
        return [name for kind, name in CHILDREN if await self.child(kind, name) is None]

    async def missed(self, seconds: float) -> list[str]:
        """The same, as soon as any is missing, or after so many seconds."""
        for _ in range(int(seconds * 4)):
            if gone := await self.missing():
                return gone
            await asyncio.sleep(0.25)
        return []

    async def delete(self, kind: Kind, name: str, by: str = "Foreground") -> None:
        """Delete by a policy, of itself in the foreground."""
        await self.api.delete(kind, self.namespace, name, Deletion(propagation=by))

    async def collected(self) -> None:
        """Wait until the collector has gone through the dependents of what is being deleted, so that our finalizers alone are left."""
        for kind, name in (*OWNERS.items(), (CONFIGMAP, names.anchor("demo"))):
            async with asyncio.timeout(TAKES):
                while set((await self.meta(kind, name)).finalizers) - {labels.FINALIZER}:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)

    async def meta(self, kind: Kind, name: str) -> ObjectMeta:
        """The metadata of an object that is there."""
        return (await self.api.get(kind, Meta, self.namespace, name)).metadata

    async def give_back(self) -> None:
        """Name the first owner on every child again, as the operator does (reconcile/anchor.py)."""
        for kind, name in CHILDREN:
            of = NODESET if kind == POD else SLURMCLUSTER
            owner = Owner.from_metadata(of, await self.meta(of, OWNERS[of]))
            owners = [owner.reference(), anchor_owner("demo", self.anchor)]
            body = make(kind, name, self.namespace)
            body["metadata"]["ownerReferences"] = owners
            await self.api.apply(kind, body, manager=ANCHORER)

    async def release(self) -> None:
        """Let the anchor go, as the operator does."""
        found = await self.meta(CONFIGMAP, names.anchor("demo"))
        await self.api.release(CONFIGMAP, found, labels.FINALIZER)
        await self.api.delete(CONFIGMAP, self.namespace, names.anchor("demo"), Deletion(uid=self.anchor))


async def _site(api: Api, namespace: str, is_anchored: bool) -> Site:
    uids = {}
    for kind, name in OWNERS.items():
        made = make(kind, name, namespace, spec={})
        made["metadata"]["finalizers"] = [labels.FINALIZER]
        uids[kind] = (await api.create(kind, made)).metadata.uid
    anchor = (await api.apply(CONFIGMAP, render_anchor(namespace, "demo"))).metadata.uid if is_anchored else ""
    cluster = Cluster(namespace, "demo", uids[SLURMCLUSTER], SlurmClusterSpec(), anchor=anchor)
    nodeset = NodeSet(
        namespace, "worker", uids[NODESET], NodeSetSpec(cluster_ref=ClusterReference(name="demo"), replicas=1)
    )
    pod = worker_pod.render_worker(cluster, nodeset, 0, DEFAULTS)
    pod["spec"]["nodeName"] = (
        "nowhere"  # placed, as one in which a job runs: it stays until a kubelet says that it has ended
    )
    await api.create(POD, pod)
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    for kind, name, more in ((SECRET, "demo-auth-key", {}), (PVC, "demo-state", {"spec": size})):
        child = make(kind, name, namespace, **more)
        child["metadata"]["ownerReferences"] = cluster.owners
        await api.create(kind, child)
    return Site(api, namespace, anchor)


@pytest.fixture
async def site(api: Api, namespace: str, collector: None) -> AsyncIterator[Site]:
    """A site with an anchor, whose children the collector knows."""
    made = await _site(api, namespace, is_anchored=True)
    yield made
    await _end(made)


async def _end(site: Site) -> None:
    held = {**OWNERS, CONFIGMAP: names.anchor("demo")}
    for kind, name in held.items():
        with contextlib.suppress(NotFound):
            await site.api.release(kind, await site.meta(kind, name), labels.FINALIZER)


async def test_without_an_anchor_the_collector_takes_the_children(api: Api, namespace: str, collector: None) -> None:
    """Our finalizer holds an object, and not its children; so the anchor is needed."""
    site = await _site(api, namespace, is_anchored=False)
    await site.delete(NODESET, "worker")
    assert await site.missed(STARTS) == ["demo-worker-0"]
    assert labels.FINALIZER in (await api.get(NODESET, Custom, namespace, "worker")).metadata.finalizers


@pytest.mark.parametrize("which", [[NODESET], [SLURMCLUSTER], [NODESET, SLURMCLUSTER]], ids=str)
async def test_with_an_anchor_every_child_outlives_a_foreground_deletion(site: Site, which: list[Kind]) -> None:
    """Whichever of the two is deleted, and also when both are; and all goes when the anchor does, and the objects after it."""
    for kind in which:
        await site.delete(kind, OWNERS[kind])
    assert await site.missed(TAKES) == []
    if SLURMCLUSTER not in which:
        return
    await site.release()
    taken = [name for kind, name in CHILDREN if kind != POD or NODESET in which]
    for _ in range(int(TAKES * 12)):
        if await site.missing() == taken:
            return
        await asyncio.sleep(0.25)
    raise AssertionError(await site.missing())


@pytest.mark.parametrize("by", ["Background", "Foreground", "Orphan"])
async def test_an_anchor_that_is_deleted_keeps_every_child_by_its_finalizer(site: Site, by: str) -> None:
    """After both objects were deleted in the foreground; in Terminating it is an owner still, and so are they once the collector is done."""
    for kind, name in OWNERS.items():
        await site.delete(kind, name)
    await site.collected()
    await site.give_back()
    await site.delete(CONFIGMAP, names.anchor("demo"), by)
    assert await site.missed(TAKES) == []
    await site.collected()
    assert (await site.meta(CONFIGMAP, names.anchor("demo"))).deletion_timestamp
    await site.release()
    with pytest.raises(NotFound):
        await site.meta(CONFIGMAP, names.anchor("demo"))


async def test_an_anchor_that_waits_for_nobody_else_needs_its_finalizer(site: Site) -> None:
    """While the references to both objects are off, it alone keeps the children; without the finalizer they would go with it."""
    for kind, name in OWNERS.items():
        await site.delete(kind, name)
    await site.collected()
    await site.delete(CONFIGMAP, names.anchor("demo"), "Background")
    assert await site.missed(TAKES) == []


async def test_the_anchor_of_a_former_release_gets_the_finalizer_and_whoever_set_it_it_comes_off(
    api: Api, namespace: str
) -> None:
    """The content of a ConfigMap that is immutable cannot be applied again; and a tool that restores objects owns their finalizers too."""
    former = render_anchor(namespace, "demo") | {"data": {"README": "as it was"}}
    del former["metadata"]["finalizers"]
    uid = (await api.apply(CONFIGMAP, former)).metadata.uid
    marks = anchor_marks(namespace, "demo")
    marks["metadata"]["uid"] = uid
    await api.apply(CONFIGMAP, marks, manager=ANCHORER)
    held = await api.apply(CONFIGMAP, marks, manager="velero")
    assert held.metadata.finalizers == (labels.FINALIZER,)
    assert await api.delete(CONFIGMAP, namespace, names.anchor("demo"), Deletion(uid=uid))
    with pytest.raises(Conflict):
        await api.release(CONFIGMAP, held.metadata, labels.FINALIZER)
    found = await api.get(CONFIGMAP, Meta, namespace, names.anchor("demo"))
    await api.release(CONFIGMAP, found.metadata, labels.FINALIZER)
    with pytest.raises(NotFound):
        await api.get(CONFIGMAP, Meta, namespace, names.anchor("demo"))
