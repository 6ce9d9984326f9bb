"""Applying children: few writes, right ones, and errors that name what is wrong."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from soperator.kube import kinds
from soperator.kube.errors import ApiError
from soperator.kube.kinds import CONFIGMAP, JOB, SECRET, SLURMCLUSTER, STATEFULSET, Kind
from soperator.kube.objects import Job, StatefulSet
from soperator.kube.views import Meta
from soperator.runtime.apply import KEEP, Applied, Applier, ApplyRefused, Owner
from soperator.runtime.cache.informer import Informer, InformerSource
from soperator.runtime.cache.store import Store
from tests.unit.fake_api import FakeApi, eventually
from tests.unit.fake_world import Fault, Json
from tests.unit.objects import make

pytestmark = pytest.mark.looptime
VIEWS: dict[Kind, Any] = {CONFIGMAP: Meta, SECRET: Meta, STATEFULSET: StatefulSet, JOB: Job}
KINDS = tuple(VIEWS)


class Clock:
    """The server's time, which a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return now, and move on by two seconds."""
        self.now += timedelta(seconds=2)
        return self.now


@dataclass
class Lab:
    """Caches of a fake server, an applier on them, and an owner."""

    server: FakeApi = field(default_factory=FakeApi)
    stores: dict[Kind, Store[Any]] = field(default_factory=lambda: {kind: Store() for kind in KINDS})
    applier: Applier = field(init=False)
    owner: Owner = field(init=False)

    def __post_init__(self) -> None:
        self.server.world.now = Clock()
        got = self.server.world.seed(make(SLURMCLUSTER, "c", spec={}))
        self.owner = Owner(SLURMCLUSTER, "ns", "c", got["metadata"]["uid"])
        self.restart()

    def restart(self) -> None:
        """Lose the ledger, as a restarted operator has."""
        self.applier = Applier(self.server.api(), self.stores)

    async def apply(self, *objects: Json) -> Applied:
        """Apply, and wait until the caches have seen it."""
        applied = await self.applier.apply(self.owner, objects, KINDS)
        await self.settle()
        return applied

    async def settle(self) -> None:
        """Let the caches catch up."""
        await asyncio.sleep(1)

    def live(self, kind: Kind, name: str) -> Json:
        """Return an object as the server has it."""
        found = self.server.world.find(kind, "ns", name)
        assert found is not None
        return found


@asynccontextmanager
async def lab() -> AsyncIterator[Lab]:
    """Yield a lab whose caches are running."""
    lab = Lab()
    reflectors = [Informer(lab.server.api(), InformerSource(kind, VIEWS[kind]), lab.stores[kind]) for kind in KINDS]
    tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
    await eventually(lambda: all(store.is_synced for store in lab.stores.values()))
    lab.server.requests.clear()
    try:
        yield lab
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def config(name: str = "conf", **data: str) -> Json:
    """Return a ConfigMap."""
    return make(CONFIGMAP, name, data=data or {"a": "1"})


def job(command: str) -> Json:
    """Return a Job."""
    return make(JOB, "fill", spec={"template": {"command": command}})


def immutable(kind: Kind) -> Any:
    """Return a server's rule: no spec of this kind may change."""

    def rule(old: Json | None, new: Json) -> str | None:
        if new["kind"] == kind.kind and old is not None and old["spec"] != new["spec"]:
            return "spec.template: field is immutable"
        return None

    return rule


async def test_children_are_written_once_and_owned() -> None:
    """A first apply writes each child with owner, label and digest; a second one writes nothing."""
    async with lab() as it:
        applied = await it.apply(config(), make(STATEFULSET, "sts", spec={"replicas": 1}))
        assert applied.written == ("ConfigMap/conf", "StatefulSet/sts")
        meta = it.live(CONFIGMAP, "conf")["metadata"]
        assert meta["ownerReferences"][0]["uid"] == it.owner.uid
        assert meta["labels"]["app.kubernetes.io/managed-by"] == "soperator"
        assert (await it.apply(config(), make(STATEFULSET, "sts", spec={"replicas": 1}))).unchanged == 2
        assert len(it.server.writes()) == 2


async def test_only_what_changed_is_written() -> None:
    """One changed child among many costs one request, and fields that are no longer wanted go."""
    async with lab() as it:
        await it.apply(config("one", a="1", b="2"), config("two"))
        assert (await it.apply(config("one", a="1"), config("two"))).written == ("ConfigMap/one",)
        assert it.live(CONFIGMAP, "one")["data"] == {"a": "1"}


async def test_a_pass_that_is_ahead_of_its_cache_writes_nothing() -> None:
    """Children that were just written, and that the cache does not have yet, are not written again."""
    async with lab() as it:
        it.server.world.is_silent = True
        it.server.world.cut()
        await it.settle()
        await it.applier.apply(it.owner, [config()], KINDS)
        await it.applier.apply(it.owner, [config()], KINDS)
        await it.applier.apply(it.owner, [config(a="2")], KINDS)
        await it.applier.apply(it.owner, [config(a="2")], KINDS)
        assert it.stores[CONFIGMAP].all() == ()
        assert len(it.server.writes()) == 2


async def test_a_restarted_operator_writes_nothing_to_untouched_children() -> None:
    """The digest on the child stands in for the ledger that was lost."""
    async with lab() as it:
        await it.apply(config(), make(STATEFULSET, "sts", spec={"replicas": 1}))
        it.server.world.change(STATEFULSET, ("ns", "sts"), {"status": {"readyReplicas": 1}}, sub="status")
        await it.settle()
        it.restart()
        assert (await it.apply(config(), make(STATEFULSET, "sts", spec={"replicas": 1}))).unchanged == 2


async def test_a_restarted_operator_corrects_what_was_changed_meanwhile() -> None:
    """A child that somebody wrote to after us is written once, and then left alone."""
    async with lab() as it:
        await it.apply(config())
        it.restart()
        it.server.world.change(CONFIGMAP, ("ns", "conf"), {"data": {"a": "9"}})
        await it.settle()
        assert (await it.apply(config())).written == ("ConfigMap/conf",)
        assert it.live(CONFIGMAP, "conf")["data"] == {"a": "1"}
        assert (await it.apply(config())).unchanged == 1


async def test_drift_is_corrected_and_status_is_not_drift() -> None:
    """Somebody else's change to spec or labels is undone; a status update costs nothing."""
    async with lab() as it:
        wanted = make(STATEFULSET, "sts", spec={"replicas": 1}, labels={"app": "x"})
        await it.apply(wanted)
        it.server.world.change(STATEFULSET, ("ns", "sts"), {"status": {"readyReplicas": 1}}, sub="status")
        await it.settle()
        assert (await it.apply(wanted)).written == ()
        it.server.world.change(STATEFULSET, ("ns", "sts"), {"spec": {"replicas": 5}})
        await it.settle()
        assert (await it.apply(wanted)).written == ("StatefulSet/sts",)
        it.server.world.change(STATEFULSET, ("ns", "sts"), {"metadata": {"labels": {"app": "y"}}})
        await it.settle()
        assert (await it.apply(wanted)).written == ("StatefulSet/sts",)
        assert it.live(STATEFULSET, "sts")["spec"] == {"replicas": 1}
        assert (await it.apply(wanted)).written == ()


async def test_a_deleted_child_comes_back() -> None:
    """A child that was deleted by somebody is created again, even if the cache never had it."""
    async with lab() as it:
        await it.apply(config())
        it.server.world.remove(CONFIGMAP, "ns", "conf")
        await it.settle()
        assert (await it.apply(config())).written == ("ConfigMap/conf",)
        it.server.world.remove(CONFIGMAP, "ns", "conf")
        it.server.world.compact()
        it.server.world.cut()
        await asyncio.sleep(5)
        assert (await it.apply(config())).written == ("ConfigMap/conf",)


async def test_what_is_no_longer_wanted_is_pruned() -> None:
    """Pruning takes our own children of that owner, and nothing else."""
    async with lab() as it:
        await it.apply(config("keep"), config("drop"), make(SECRET, "key", annotations={KEEP: "true"}))
        reference = it.owner.reference()
        foreign = config("foreign")
        foreign["metadata"]["ownerReferences"] = [reference]
        it.server.world.seed(foreign)
        it.server.world.seed(make(CONFIGMAP, "stranger", labels={"app.kubernetes.io/managed-by": "soperator"}))
        await it.settle()
        assert (await it.apply(config("keep"))).pruned == ("ConfigMap/drop",)
        names = {name for _, plural, _, name in it.server.world.objects if plural in ("configmaps", "secrets")}
        assert names == {"keep", "foreign", "stranger", "key"}


async def test_pruning_never_hits_a_namesake() -> None:
    """An object that was recreated by somebody since the cache saw it survives the prune."""
    async with lab() as it:
        await it.apply(config("drop"))
        it.server.world.is_silent = True
        it.server.world.cut()
        await it.settle()
        it.server.world.remove(CONFIGMAP, "ns", "drop")
        it.server.world.seed(config("drop"))
        await it.applier.apply(it.owner, [], KINDS)
        assert it.live(CONFIGMAP, "drop")


async def test_an_immutable_job_is_recreated() -> None:
    """A Job whose template changes is deleted and created anew within the same apply."""
    async with lab() as it:
        it.server.world.rules.append(immutable(JOB))
        await it.apply(job("one"))
        before = it.live(JOB, "fill")["metadata"]["uid"]
        await it.apply(job("two"))
        assert it.live(JOB, "fill")["spec"] == {"template": {"command": "two"}}
        assert it.live(JOB, "fill")["metadata"]["uid"] != before
        assert (await it.apply(job("two"))).unchanged == 1


async def test_a_job_that_is_refused_for_another_reason_is_not_deleted() -> None:
    """Only an immutable field makes a Job come anew."""
    async with lab() as it:
        await it.apply(job("one"))
        it.server.world.rules.append(lambda _, new: "spec.template: Required value" if new["kind"] == "Job" else None)
        with pytest.raises(ApplyRefused, match="Required value"):
            await it.apply(job("two"))
        assert it.live(JOB, "fill")["spec"] == {"template": {"command": "one"}}


async def test_what_somebody_asks_to_keep_is_not_pruned() -> None:
    """The annotation on the live object protects it, whoever put it there."""
    async with lab() as it:
        await it.apply(config("precious"))
        it.server.world.change(CONFIGMAP, ("ns", "precious"), {"metadata": {"annotations": {KEEP: "true"}}})
        await it.settle()
        assert (await it.apply()).pruned == ()
        assert it.live(CONFIGMAP, "precious")


async def test_a_refused_object_is_named_with_its_field() -> None:
    """An immutable field of any other kind is an error that waits for a change of the owner."""
    async with lab() as it:
        it.server.world.rules.append(immutable(STATEFULSET))
        await it.apply(make(STATEFULSET, "sts", spec={"replicas": 1}))
        with pytest.raises(ApplyRefused, match=r"^StatefulSet/sts is refused: spec.template: field is immutable$"):
            await it.apply(make(STATEFULSET, "sts", spec={"replicas": 2}))
        assert it.live(STATEFULSET, "sts")["spec"] == {"replicas": 1}


async def test_a_refused_object_stops_what_comes_after_it() -> None:
    """Its neighbours are written, workloads and pruning are not."""
    async with lab() as it:
        await it.apply(config("old"))
        it.server.world.rules.append(lambda _, new: "data: bad" if new["metadata"]["name"] == "bad" else None)
        with pytest.raises(ApplyRefused, match="ConfigMap/bad is refused: data: bad"):
            await it.apply(config("bad"), config("good"), make(STATEFULSET, "sts", spec={}))
        assert it.live(CONFIGMAP, "good")
        assert it.live(CONFIGMAP, "old")
        assert it.server.world.find(STATEFULSET, "ns", "sts") is None


async def test_a_failed_write_is_repeated_by_the_next_pass() -> None:
    """An error that may pass is raised as it is, and the child counts as not written."""
    async with lab() as it:
        it.server.faults.append(Fault(verb="patch", status=500))
        with pytest.raises(ApiError, match="injected"):
            await it.apply(config())
        assert (await it.apply(config())).written == ("ConfigMap/conf",)


async def test_429_is_waited_out() -> None:
    """A write that is throttled goes through after the time that the server asked for."""
    async with lab() as it:
        it.server.faults.append(Fault(verb="patch", status=429, reason="TooManyRequests", retry_after=3.0))
        began = asyncio.get_running_loop().time()
        await it.applier.apply(it.owner, [config()], KINDS)
        assert 3.0 <= asyncio.get_running_loop().time() - began < 4.0


async def test_a_terminating_child_is_waited_for() -> None:
    """A child on its way out is not written to, and comes anew when it is gone."""
    async with lab() as it:
        await it.apply(config())
        it.server.world.change(CONFIGMAP, ("ns", "conf"), {"metadata": {"finalizers": ["test/hold"]}})
        it.server.world.remove(CONFIGMAP, "ns", "conf")
        await it.settle()
        assert (await it.apply(config(a="2"))).waiting == ("ConfigMap/conf",)
        it.server.world.change(CONFIGMAP, ("ns", "conf"), {"metadata": {"finalizers": []}})
        await it.settle()
        assert (await it.apply(config(a="2"))).written == ("ConfigMap/conf",)


async def test_configuration_is_written_before_workloads() -> None:
    """Pods never start before what they mount, and writes of a wave are in flight together, each after a look whether its name is free."""
    async with lab() as it:
        it.server.latency = 1.0
        began = asyncio.get_running_loop().time()
        await it.applier.apply(it.owner, [make(STATEFULSET, "sts", spec={}), *map(config, "abcdefgh")], KINDS)
        assert it.server.writes()[-1] == "patch statefulsets ns/sts"
        assert asyncio.get_running_loop().time() - began == pytest.approx(4.0)


async def test_the_same_object_twice_is_a_mistake_of_ours() -> None:
    """Two desired objects of one name are refused before anything is written."""
    async with lab() as it:
        with pytest.raises(ValueError, match="rendered twice"):
            await it.apply(config(), config(a="2"))
        assert it.server.writes() == []


def test_every_workload_kind_is_known() -> None:
    """Kinds that run Pods are applied last."""
    from soperator.runtime.apply import WORKLOADS

    assert {str(kind) for kind in WORKLOADS} <= {str(kind) for kind in kinds.ALL}
