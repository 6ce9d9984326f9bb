"""Applying, status, Events and errors against a real API server: what only it can judge."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from soperator.kube.api import Api
from soperator.kube.errors import Conflict, NotFound
from soperator.kube.kinds import (
    CONFIGMAP,
    CRD,
    DEPLOYMENT,
    EVENT,
    JOB,
    SLURMCLUSTER,
    STATEFULSET,
    Kind,
)
from soperator.kube.objects import ConfigMap
from soperator.kube.views import Custom, Meta
from soperator.runtime.apply import Applied, Applier, ApplyRefused, Owner
from soperator.runtime.cache.informer import Informer, InformerSource
from soperator.runtime.cache.store import Store
from soperator.runtime.events import EventNote, Recorder, Regarding
from soperator.runtime.status import ReportedCondition, StatusWriter
from tests.runtime.children import VIEWS, children, job, workload
from tests.runtime.server import ControlPlane
from tests.unit.fake_api import eventually
from tests.unit.objects import make


@pytest.fixture(scope="module")
def kinds_of_ours(plane: ControlPlane) -> None:
    """Our own kind, without a schema to speak of."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": schema}}},
    }
    names = {"plural": "slurmclusters", "singular": "slurmcluster", "kind": "SlurmCluster"}
    spec = {"group": SLURMCLUSTER.group, "names": names, "scope": "Namespaced", "versions": [version]}
    crd = make(CRD, f"slurmclusters.{SLURMCLUSTER.group}", spec=spec)

    async def install() -> None:
        async with plane.api() as api:
            await api.apply(CRD, crd)
            async with asyncio.timeout(10):
                while True:
                    try:
                        await api.list(SLURMCLUSTER, Meta)
                        return
                    except NotFound:
                        await asyncio.sleep(0.1)

    asyncio.run(install())


@dataclass
class Lab:
    """Caches of one namespace, an applier on them, and an owner."""

    api: Api
    namespace: str
    stores: dict[Kind, Store[Any]] = field(default_factory=lambda: {kind: Store() for kind in VIEWS})
    applier: Applier = field(init=False)
    owner: Owner = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Lose the ledger."""
        self.applier = Applier(self.api, self.stores)

    async def apply(self, objects: Sequence[dict[str, Any]], prune: bool = True) -> Applied:
        """Apply, and wait until the caches are still."""
        applied = await self.applier.apply(self.owner, objects, [*VIEWS] if prune else [])
        await asyncio.sleep(0.3)
        return applied

    def live(self, kind: Kind, name: str) -> Any:
        """Return an object as the cache has it."""
        found = self.stores[kind].get(self.namespace, name)
        assert found is not None
        return found

    def patches(self) -> int:
        """Return how many PATCH requests were sent."""
        return sum(count for (verb, _, _), count in self.api.requests.items() if verb == "patch")


@asynccontextmanager
async def lab(plane: ControlPlane, namespace: str) -> AsyncIterator[Lab]:
    """Yield a lab whose caches run."""
    async with plane.api() as api:
        lab = Lab(api, namespace)
        meta = (await api.create(SLURMCLUSTER, make(SLURMCLUSTER, "c", namespace, spec={}))).metadata
        lab.owner = Owner.from_metadata(SLURMCLUSTER, meta)
        sources = [InformerSource(kind, view, namespace) for kind, view in VIEWS.items()]
        tasks = [asyncio.create_task(Informer(api, each, lab.stores[each.kind]).run()) for each in sources]
        await eventually(lambda: all(store.is_synced for store in lab.stores.values()))
        try:
            yield lab
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


pytestmark = pytest.mark.usefixtures("kinds_of_ours")


async def test_twenty_five_children_take_twenty_five_writes_and_a_second(plane: ControlPlane, namespace: str) -> None:
    """All children are there within a second, at one write each, and a second pass and a restart write nothing."""
    async with lab(plane, namespace) as it:
        wanted = children()
        began = time.perf_counter()
        applied = await it.applier.apply(it.owner, wanted, [*VIEWS])
        seconds = time.perf_counter() - began
        print(f"{len(wanted)} children: {seconds:.3f} s")
        assert len(applied.written) == len(wanted) == it.patches() == 25
        assert seconds < 1.0
        assert (await it.apply(wanted)).written == ()
        it.restart()
        assert (await it.apply(wanted)).written == ()
        assert it.patches() == 25


async def test_the_server_s_defaults_and_quantities_are_not_drift(plane: ControlPlane, namespace: str) -> None:
    """Fields that the server fills in or spells differently cause no second write; real drift does, once."""
    async with lab(plane, namespace) as it:
        wanted = [workload(STATEFULSET, "sts", serviceName="s")]
        del wanted[0]["metadata"]["namespace"]
        await it.apply(wanted)
        assert (await it.apply(wanted)).written == ()
        await _patch(it.api, STATEFULSET, it.namespace, "sts", {"spec": {"replicas": 7}})
        await asyncio.sleep(0.3)
        assert (await it.apply(wanted)).written == ("StatefulSet/sts",)
        assert it.live(STATEFULSET, "sts").spec.replicas == 1
        await _patch(it.api, STATEFULSET, it.namespace, "sts", {"status": {"replicas": 1}}, "status")
        await asyncio.sleep(0.3)
        assert it.live(STATEFULSET, "sts").status.replicas == 1
        assert (await it.apply(wanted)).written == ()


async def test_a_change_during_a_downtime_is_corrected_once(plane: ControlPlane, namespace: str) -> None:
    """After a restart, only the child that somebody wrote to is written."""
    async with lab(plane, namespace) as it:
        wanted = children()
        await it.apply(wanted)
        await asyncio.sleep(1.0)
        await _patch(it.api, CONFIGMAP, it.namespace, "conf-0", {"data": {"slurm.conf": "broken"}})
        await asyncio.sleep(0.3)
        it.restart()
        assert (await it.apply(wanted)).written == ("ConfigMap/conf-0",)
        assert (await it.api.get(CONFIGMAP, ConfigMap, namespace, "conf-0")).data["slurm.conf"].startswith("xx")
        assert (await it.apply(wanted)).written == ()


@pytest.mark.parametrize("kind", [STATEFULSET, DEPLOYMENT])
@pytest.mark.parametrize("restarted", [True, False])
async def test_a_scaled_child_gets_its_replicas_back(
    plane: ControlPlane, namespace: str, kind: Kind, restarted: bool
) -> None:
    """What `kubectl scale` did is undone, also by an operator that has just started and whom no other manager's entry tells of it."""
    async with lab(plane, namespace) as it:
        named = {"serviceName": "s"} if kind == STATEFULSET else {}
        wanted = [workload(kind, "w", replicas=2, **named)]
        del wanted[0]["metadata"]["namespace"]
        await it.apply(wanted)
        await asyncio.sleep(1.0)
        await _patch(it.api, kind, it.namespace, "w", {"spec": {"replicas": 0}}, "scale")
        await asyncio.sleep(0.3)
        if restarted:
            it.restart()
        print([(each.manager, each.operation, each.subresource) for each in it.live(kind, "w").metadata.managed_fields])
        assert (await it.apply(wanted)).written == (f"{kind}/w",)
        assert it.live(kind, "w").spec.replicas == 2
        assert (await it.apply(wanted)).written == ()


async def test_pruning_removes_what_is_ours_and_unwanted(plane: ControlPlane, namespace: str) -> None:
    """A child that is not rendered any more is deleted, a stranger's is not."""
    async with lab(plane, namespace) as it:
        await it.api.create(CONFIGMAP, make(CONFIGMAP, "stranger", namespace))
        wanted = children()
        await it.apply(wanted)
        assert (await it.apply(wanted[1:])).pruned == ("ConfigMap/conf-0",)
        names = [each.metadata.name for each in it.stores[CONFIGMAP].all()]
        assert "conf-0" not in names
        assert "stranger" in names


async def test_an_immutable_job_is_recreated_and_a_statefulset_is_refused(plane: ControlPlane, namespace: str) -> None:
    """The server's own words decide: a Job comes anew, a StatefulSet's field is named."""
    async with lab(plane, namespace) as it:
        first, second = job("one"), job("two")
        sts, other = workload(STATEFULSET, "sts", serviceName="a"), workload(STATEFULSET, "sts", serviceName="b")
        for each in (first, second, sts, other):
            del each["metadata"]["namespace"]
        await it.apply([first, sts])
        uid = it.live(JOB, "fill").metadata.uid
        await it.apply([second, sts])
        assert it.live(JOB, "fill").metadata.uid != uid
        with pytest.raises(
            ApplyRefused, match=r"StatefulSet/sts is refused: spec: Forbidden: updates to statefulset spec"
        ):
            await it.apply([second, other])


async def test_conflicts_are_conflicts(plane: ControlPlane, namespace: str) -> None:
    """409 comes from a field that another manager owns, and from a uid that is another object's by now."""
    async with plane.api() as ours, plane.api() as theirs:
        theirs.field_manager = "somebody"
        await theirs.apply(CONFIGMAP, make(CONFIGMAP, "a", namespace, data={"x": "1"}))
        with pytest.raises(Conflict, match="somebody"):
            await ours.apply(CONFIGMAP, make(CONFIGMAP, "a", namespace, data={"x": "2"}), force=False)
        namesake = make(CONFIGMAP, "a", namespace)
        namesake["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
        with pytest.raises(Conflict):
            await ours.apply(CONFIGMAP, namesake)


async def test_a_status_is_written_once(plane: ControlPlane, namespace: str) -> None:
    """The server stores a status as it was sent, so that the next pass finds nothing to write."""
    async with plane.api() as api:
        await api.create(SLURMCLUSTER, make(SLURMCLUSTER, "c", namespace, spec={"a": 1}))
        writer = StatusWriter(api)
        ready = ReportedCondition("Available", "True", "AllReady", "2 of 2 workers are ready")
        obj = await api.get(SLURMCLUSTER, Custom, namespace, "c")
        fields = {"workers": {"ready": 2, "wanted": 2}, "phase": "Available"}
        assert await writer.write(SLURMCLUSTER, obj, fields, [ready])
        assert not await writer.write(SLURMCLUSTER, obj, fields, [ready])
        obj = await api.get(SLURMCLUSTER, Custom, namespace, "c")
        assert not await writer.write(SLURMCLUSTER, obj, fields, [ready])
        assert not await StatusWriter(api).write(SLURMCLUSTER, obj, fields, [ready])
        assert bytes(obj.spec) == b'{"a":1}'
        await writer.write(SLURMCLUSTER, obj, {}, [ready])
        assert set((await api.get(SLURMCLUSTER, Custom, namespace, "c")).status) == {"conditions", "observedGeneration"}


async def test_events_are_accepted(plane: ControlPlane, namespace: str) -> None:
    """An Event has all that events.k8s.io/v1 demands."""
    async with plane.api() as api:
        meta = (await api.create(SLURMCLUSTER, make(SLURMCLUSTER, "c", namespace, spec={}))).metadata
        recorder = Recorder(api, time.monotonic)
        task = asyncio.create_task(recorder.run())
        recorder.emit(Regarding(SLURMCLUSTER, meta), EventNote("Warning", "JailMissing", "claim jail does not exist"))
        await eventually(lambda: api.requests["create", "Event", 201] == 1, 5)
        assert len((await api.list(EVENT, Meta, namespace)).items) == 1
        task.cancel()
        await asyncio.wait({task})


async def _patch(api: Api, kind: Kind, namespace: str, name: str, body: dict[str, Any], sub: str | None = None) -> None:
    """Write to an object as kubectl edit would."""
    response = await api.transport.client.patch(
        kind.path(namespace, name, sub),
        json=body,
        params={"fieldManager": "kubectl-edit"},
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert response.is_success, response.text
