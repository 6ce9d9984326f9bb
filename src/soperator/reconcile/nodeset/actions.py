"""Carries out the decisions of the policy for workers: in Kubernetes by the API, in Slurm by slurmrestd.

An action that could affect a job was decided on an answer of Slurm from this pass (`decision.py`). That answer is valid for some seconds. An action
that has not started by then, because the API server or slurmrestd is slow, is decided again. So no action on an existing worker waits for the
creation of pods. A pod is deleted, or loses its protection, only in the resourceVersion of the decision, so an action on an older or newer pod has no
effect. Records are deleted before pods are created, a pod is protected before its node is resumed, and one refused action does not delay the others.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from soperator.kube import kinds
from soperator.kube.api import Deletion
from soperator.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    NotFound,
    TooBusy,
    explain,
)
from soperator.kube.views import Custom, Pod
from soperator.policy.workers.pod_condition import IN_SERVICE
from soperator.policy.workers.types import (
    Action,
    AnnotatePod,
    Create,
    Delete,
    DeleteNodeRecord,
    DrainNode,
    EndJobs,
    Register,
    Resume,
    SetPodCondition,
    SignalJobs,
    UpdateNodes,
    Verb,
    WorkerPlan,
    WorkerSnapshot,
)
from soperator.reconcile import inputs, pod_status
from soperator.reconcile.cache.per_object import Slot, per_object
from soperator.reconcile.context import Operator
from soperator.reconcile.nodeset import record_updates, worker_labels
from soperator.reconcile.nodeset.decision import choose, indexes_of
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster, NodeSet, Object
from soperator.render.slurm_conf.node_conf import hosts, record
from soperator.render.worker import pod as worker_pod
from soperator.runtime.controller import TransientError
from soperator.runtime.events import EventNote, Regarding
from soperator.runtime.status import timestamp
from soperator.slurmrest.client import SlurmError, SlurmRest

_AT_ONCE = 16
#: The most pods created in a pass, so that a lower number of replicas is noticed in between.
_IN_A_PASS = 1000
#: Seconds after which a pod is looked at again that had changed before it could be deleted.
_CHANGED = 1.0
#: Seconds after an answer of Slurm in which a decision based on it may still be carried out.
_HOLDS = 5.0
#: How many suspended jobs an Event names.
_SHOWN = 3
#: The longest wait in seconds before refused pods are tried again.
_LONGEST = 300.0
UNMADE: Slot[str, "RefusedCreations"] = per_object("refused pods of a NodeSet")
#: The action and the reason of the Event about each action.
_EVENTS: Mapping[type, tuple[str, str]] = {
    Create: ("Create", "PodCreated"),
    Delete: ("Delete", "PodDeleted"),
    DrainNode: ("Drain", "Draining"),
    Resume: ("Resume", "Resumed"),
    DeleteNodeRecord: ("Delete", "NodeRecordDeleted"),
    AnnotatePod: ("Annotate", "PodAnnotated"),
    SignalJobs: ("Signal", "JobsSignalled"),
    EndJobs: ("End", "JobsEnded"),
    SetPodCondition: ("SetCondition", "PodConditionSet"),
    Register: ("Register", "Registering"),
}
_UPDATES: Mapping[Verb, tuple[str, str]] = {
    Verb.RECORD: ("Create", "NodeRecordCreated"),
    Verb.ERASE: ("Delete", "NodeRecordDeleted"),
    Verb.SET_FIELDS: ("Update", "NodeRecordUpdated"),
    Verb.SLEEP: ("PowerDown", "PowerDown"),
    Verb.WAKE: ("PowerUp", "PowerUp"),
    Verb.DENY: ("Down", "PowerUpDenied"),
    Verb.ALLOW: ("Idle", "PowerUpAllowed"),
}


@dataclass(frozen=True)
class RefusedCreations:
    """A refused creation of a NodeSet's pods.

    It has the cause, the generation of the spec, the number of refusals in a row, and when the next attempt is due (seconds since 1970).
    """

    why: str
    generation: int
    times: int
    until: float


@dataclass(frozen=True)
class Workers:
    """The workers of one NodeSet, and the actions on them in one pass."""

    operator: Operator
    obj: Custom
    cluster: Cluster
    nodeset: NodeSet
    #: The nodes of which something has changed since it was decided upon, or that was long ago.
    changed: list[str] = field(default_factory=list)
    #: Whether workers must not change now because their jail is being replaced: a pass may have waited for long since its look.
    is_held: Callable[[], bool] = lambda: False

    @property
    def client(self) -> SlurmRest | None:
        """The client of the cluster's Slurm; None until it is connected."""
        return self.operator.slurm.client((self.cluster.namespace, self.cluster.name))

    async def act(self, seen: WorkerSnapshot) -> tuple[WorkerPlan, str]:
        """Decide and carry out the actions; return the plan, and what Slurm refused, as one sentence."""
        plan, failed = await choose(seen, self.client)
        decided = DecidedSnapshot(seen, asyncio.get_running_loop().time() + _HOLDS)
        if plan.actions and self.is_held():
            return replace(plan, actions=(), again=_CHANGED), failed
        actions = plan.actions
        created = [each for each in actions if isinstance(each, Create)]
        done = await asyncio.gather(
            self._refill(actions, decided), self._touch(actions, decided), return_exceptions=True
        )
        refusals = [_value(each) for each in done]
        await self._at_once(map(self._set_condition, [each for each in actions if isinstance(each, SetPodCondition)]))
        return replace(plan, again=0.0 if created[_IN_A_PASS:] else plan.again), refusals[1] or failed or refusals[0]

    async def _refill(self, actions: Sequence[Action], decided: "DecidedSnapshot") -> str:
        """Delete the records of removed nodes, then create the missing pods."""
        forgotten = await self._take_all([each for each in actions if isinstance(each, DeleteNodeRecord)], decided)
        created = [each for each in actions if isinstance(each, Create)][:_IN_A_PASS]
        return await self._make(created, decided.seen.template) or forgotten

    async def _touch(self, actions: Sequence[Action], decided: "DecidedSnapshot") -> str:
        """Carry out the actions that are due on existing workers, the changes of their labels and annotations first."""
        marked = await self._take_all([each for each in actions if isinstance(each, AnnotatePod)], decided)
        others = Create | DeleteNodeRecord | AnnotatePod | SetPodCondition
        return await self._take_all([each for each in actions if not isinstance(each, others)], decided) or marked

    async def take(self, actions: Sequence[Action], seen: WorkerSnapshot) -> str:
        """Carry out actions that another module has just decided; return what Slurm refused."""
        decided = DecidedSnapshot(seen, asyncio.get_running_loop().time() + _HOLDS)
        return "" if actions and self.is_held() else await self._take_all(actions, decided)

    async def _make(self, created: Sequence[Create], template: str) -> str:
        """Create pods; return why they are refused. After a refusal by a quota, a policy or a webhook, the delay before the next attempt grows."""
        meta, now, refusals = self.obj.metadata, self.operator.wall(), self.operator.memory(UNMADE)
        last = refusals.get(meta.uid)
        if last and created and last.generation == meta.generation and now < last.until <= now + _LONGEST:
            return last.why
        refusals.pop(meta.uid, None)
        try:
            await self._at_once(self._create(each, template) for each in created)
        except (Conflict, TooBusy):
            raise
        except ApiError as error:
            times = last.times + 1 if last else 1
            why = explain(error, f"a pod of NodeSet {meta.name}")
            refusals[meta.uid] = RefusedCreations(why, meta.generation, times, now + min(2.0**times, _LONGEST))
            return why
        return ""

    @property
    def again(self) -> float | None:
        """The seconds until the next pass has to retry actions: those on workers that changed in the meantime, and refused creations."""
        last = self.operator.memory(UNMADE).get(self.obj.metadata.uid)
        refused = min(_LONGEST, max(0.1, last.until - self.operator.wall())) if last else None
        return min(_CHANGED, refused or _CHANGED) if self.changed else refused

    async def _take_all(self, actions: Sequence[Action], decided: "DecidedSnapshot") -> str:
        """Carry out actions in parallel; return the first refusal."""
        refusals: list[str] = []

        async def take(each: Action) -> None:
            if decided.is_over and not (isinstance(each, AnnotatePod) and each.protected):
                self.changed.append(names.slurm_node(self.nodeset.name, each.index))
                return
            try:
                await (self._update_nodes(each) if isinstance(each, UpdateNodes) else self._take(each, decided.seen))
            except Conflict:
                self.changed.append(names.slurm_node(self.nodeset.name, each.index))
            except SlurmError as error:
                refusals.append(f"{hosts(self.nodeset.name, indexes_of(each))}: {error}")
            else:
                self._emit_event(each)

        await self._at_once(map(take, actions))
        return refusals[0] if refusals else ""

    async def _at_once(self, tasks: Iterable[Awaitable[None]]) -> None:
        """Await the coroutines, a bounded number at once. Each is created only when it starts, because five thousand waiting ones take 20 MiB."""
        left = iter(tasks)

        async def run() -> None:
            for task in left:
                await task

        results = await asyncio.gather(*(run() for _ in range(_AT_ONCE)), return_exceptions=True)
        if error := next((each for each in results if each is not None), None):
            raise error

    async def _create(self, each: Create, template: str) -> None:
        made = worker_pod.render_worker(self.cluster, self.nodeset, each.index, self.operator.defaults, template)
        try:
            self.operator.stores.pods.learn(await self.operator.api.create_as(kinds.POD, Pod, made))
        except AlreadyExists as error:
            if await self._relabel(made):
                return
            pod = self._pod(each.index)
            if pod is not None and pod.metadata.labels.get(labels.NODESET) != self.nodeset.name:
                raise TransientError(f"another NodeSet already has a pod with the name {pod.metadata.name}") from error

    async def _relabel(self, made: Object) -> bool:
        """Restore the labels that identify one of our pods, if one was removed. The cache does not have such a pod, so this reads the API server.

        Raises ApiError for a foreign pod, which stays.
        """
        with contextlib.suppress(NotFound, Conflict):
            pod = await self.operator.api.get(kinds.POD, Pod, self.nodeset.namespace, made["metadata"]["name"])
            found, marks = pod.metadata, worker_labels.wanted(self.obj, pod)
            is_ours = any(each.uid == self.obj.metadata.uid for each in found.owner_references)
            if is_ours and found.deletion_timestamp is None and not marks.items() <= found.labels.items():
                await worker_labels.write(self.operator, found, marks)
                return True
            if not is_ours and found.labels.get(labels.MANAGED_BY) != labels.MANAGER:
                said = f"{found.name} exists and is not of NodeSet {self.nodeset.name}: delete it"
                raise ApiError(409, "AlreadyExists", said)
        return False

    async def _take(self, action: Action, seen: WorkerSnapshot) -> None:
        node, client = names.slurm_node(self.nodeset.name, action.index), self.client
        match action:
            case Delete(index):
                await self._delete(index, seen)
            case AnnotatePod():
                await self._annotate(action, seen)
            case Register(index):
                await self._register(index)
            case DrainNode(_, why) if client:
                await client.drain(node, why)
            case Resume() if client:
                await client.resume(node)
            case DeleteNodeRecord() if client:
                await client.delete(node)
            case SignalJobs(_, why, jobs, signal) if client:
                for words in dict.fromkeys(job.words for job in jobs if signal):
                    await client.signal(words, signal)
                await client.drain(node, why)
            case EndJobs() if client:
                await self._end_jobs(action, node, client)

    async def _end_jobs(self, end: EndJobs, node: str, client: SlurmRest) -> None:
        """End jobs. A job that Slurm cannot end does not delay the others. Raises SlurmError with the first refusal."""
        refused: list[SlurmError] = []
        for job in {each.words: each for each in end.jobs}.values():
            try:
                if end.requeue and job.may_requeue:
                    await self.operator.pod_exec.requeue(self.cluster, job.words, node)
                else:
                    await client.cancel(job.words)
            except SlurmError as error:
                refused.append(error)
        if refused:
            raise refused[0]

    async def _update_nodes(self, said: UpdateNodes) -> None:
        inside, nodes = self.operator.pod_exec, hosts(self.nodeset.name, said.indexes)
        match said.verb:
            case Verb.RECORD:
                await inside.record(self.cluster, record(self.nodeset, said.indexes))
            case Verb.ERASE:
                await inside.scontrol(self.cluster, "delete", f"NodeName={nodes}")
            case Verb.DENY:
                await inside.deny(self.cluster, nodes, said.why)
            case Verb.SET_FIELDS:
                if self.client:
                    await record_updates.set_fields(self.operator, self.cluster, self.nodeset, nodes, self.client)
            case verb:
                await inside.scontrol(self.cluster, "update", f"NodeName={nodes}", f"State={verb}")

    async def _delete(self, index: int, seen: WorkerSnapshot) -> None:
        pod = seen.pods.get(index)
        if pod is not None and self._pod(index) is not None:
            where = Deletion(uid=pod.uid, version=pod.version)
            name = names.worker_pod(self.cluster.name, self.nodeset.name, index)
            await self.operator.api.delete(kinds.POD, self.nodeset.namespace, name, where)
            self.operator.memory(inputs.DELETED)[pod.uid] = True

    async def _register(self, index: int) -> None:
        pod = self._pod(index)
        if pod is not None:
            self.operator.memory(inputs.REGISTERED)[pod.metadata.uid] = self.operator.wall()
            await self.operator.pod_exec.register(pod.metadata.namespace, pod.metadata.name)

    async def _annotate(self, mark: AnnotatePod, seen: WorkerSnapshot) -> None:
        """Write the metadata of a pod that the operator owns after the pod's creation; a new pod of the same name is not changed.

        The label that allows an eviction is written only to the resourceVersion that was observed.
        """
        pod = seen.pods.get(mark.index)
        if pod is None or self._pod(mark.index) is None:
            return
        meta = {
            "name": names.worker_pod(self.cluster.name, self.nodeset.name, mark.index),
            "namespace": self.nodeset.namespace,
            "uid": pod.uid,
            **({} if mark.protected else {"resourceVersion": pod.version}),
            "labels": {labels.PROTECTED: "true" if mark.protected else "false"},
            "annotations": {
                labels.SAFE_TO_EVICT: "false" if mark.protected else "true",
                **({labels.DRAINED: mark.noted} if mark.noted else {}),
            },
        }
        with contextlib.suppress(Conflict, NotFound):
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
            await self.operator.api.apply(kinds.POD, body, at_once=not mark.protected)

    async def _set_condition(self, tell: SetPodCondition) -> None:
        """Write the state of its Slurm node as a condition of a pod."""
        pod = self._pod(tell.index)
        if pod is None:
            return
        was, status = pod_status.in_service(pod), "True" if tell.reason == IN_SERVICE else "False"
        now = datetime.fromtimestamp(self.operator.wall(), UTC)
        since = was.last_transition_time if was and was.status == status and was.last_transition_time else now
        condition = {
            "type": labels.IN_SERVICE,
            "status": status,
            "reason": tell.reason,
            "message": tell.why,
            "lastTransitionTime": timestamp(since),
        }
        meta = {"name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.metadata.uid}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": {"conditions": [condition]}}
        with contextlib.suppress(Conflict, NotFound):
            await self.operator.api.apply_status(kinds.POD, body)

    def _pod(self, index: int) -> Pod | None:
        name = names.worker_pod(self.cluster.name, self.nodeset.name, index)
        return self.operator.stores.pods.get(self.nodeset.namespace, name)

    def _emit_event(self, action: Action) -> None:
        node = hosts(self.nodeset.name, indexes_of(action))
        verb, reason = event_of(action)
        is_warning = isinstance(action, SignalJobs | EndJobs) or reason == "PowerUpDenied"
        text = f"{node}: {action.why}{_unreached(action) if isinstance(action, SignalJobs) else ''}"
        note = EventNote("Warning" if is_warning else "Normal", reason, text, verb)
        self.operator.recorder.emit(Regarding(kinds.NODESET, self.obj.metadata), note)


@dataclass(frozen=True)
class DecidedSnapshot:
    """The answer on which actions were decided, and the deadline for their start, by the clock of the event loop."""

    seen: WorkerSnapshot
    until: float

    @property
    def is_over(self) -> bool:
        """Return whether Slurm's answer is too old to start another action."""
        return asyncio.get_running_loop().time() >= self.until


def _value(result: str | BaseException) -> str:
    if isinstance(result, BaseException):
        raise result
    return result


def _unreached(signalled: SignalJobs) -> str:
    """Return which jobs a signal does not reach, because they are suspended; empty if there are none."""
    found = list(dict.fromkeys(each.label for each in signalled.jobs if each.is_suspended)) if signalled.signal else []
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"; the signal does not reach suspended {', '.join(found[:_SHOWN])}{more}" if found else ""


def event_of(action: Action) -> tuple[str, str]:
    """Return the fields `action` and `reason` of the Event about a worker's action."""
    if isinstance(action, UpdateNodes):
        return _UPDATES[action.verb]
    return _EVENTS[type(action)]
