"""Carrying out what the policy over workers decided: in Kubernetes by the API, in Slurm by slurmrestd.

Whatever could touch a job is decided anew on a fresh answer of Slurm's, given in this very pass; without one only missing pods are made.
Records go before pods come, a mark that protects a pod goes before its node is resumed, and what one refuses holds up no other.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from soperator.control import pods
from soperator.control.operator import Operator
from soperator.decide import power, rollout
from soperator.decide.service import IN_SERVICE
from soperator.decide.workers import (
    Action,
    Create,
    Delete,
    Drain,
    End,
    Forget,
    Mark,
    Plan,
    Register,
    Resume,
    Say,
    Seen,
    Tell,
    Verb,
    Warn,
)
from soperator.kube import kinds
from soperator.kube.api import Deletion
from soperator.kube.errors import AlreadyExists, Conflict, NotFound
from soperator.kube.views import Custom, Pod
from soperator.render import labels, names, worker
from soperator.render.model import Cluster, NodeSet
from soperator.render.records import hosts, record
from soperator.runtime.controller import Retry
from soperator.runtime.events import Note, Regarding
from soperator.runtime.status import timestamp
from soperator.slurmrest.client import SlurmError, SlurmRest

_AT_ONCE = 16
#: So many pods are made in a pass, so that it is seen in between when fewer are wanted.
_IN_A_PASS = 1000
#: Up to so many Slurm nodes are asked for one by one before something is done to them.
_ONE_BY_ONE = 8


@dataclass(frozen=True)
class Workers:
    """The workers of one NodeSet, in one pass."""

    operator: Operator
    obj: Custom
    cluster: Cluster
    nodeset: NodeSet

    @property
    def client(self) -> SlurmRest | None:
        """Who speaks to the cluster's Slurm, once it is connected."""
        return self.operator.slurm.client((self.cluster.namespace, self.cluster.name))

    async def act(self, seen: Seen) -> tuple[Plan, str]:
        """Decide and take the actions; return the plan, and what Slurm refused in one sentence."""
        plan, failed = await choose(seen, self.client)
        actions = plan.actions
        forgotten = await self._take_all([each for each in actions if isinstance(each, Forget)])
        created = [each for each in actions if isinstance(each, Create)]
        await self._at_once(self._create(each, seen.template) for each in created[:_IN_A_PASS])
        marked = await self._take_all([each for each in actions if isinstance(each, Mark)])
        others = [each for each in actions if not isinstance(each, Create | Forget | Mark | Tell)]
        refused = await self._take_all(others) or marked or forgotten or failed
        await self._at_once(map(self._condition, [each for each in actions if isinstance(each, Tell)]))
        return replace(plan, again=0.0) if created[_IN_A_PASS:] else plan, refused

    async def take(self, actions: Sequence[Action]) -> str:
        """Take actions that were decided elsewhere; return what Slurm refused."""
        return await self._take_all(actions)

    async def _take_all(self, actions: Sequence[Action]) -> str:
        """Take actions side by side; return the first refusal."""
        refusals: list[str] = []

        async def take(each: Action) -> None:
            try:
                await (self._say(each) if isinstance(each, Say) else self._take(each))
            except SlurmError as error:
                refusals.append(f"{hosts(self.nodeset.name, indexes_of(each))}: {error}")
            else:
                self._tell(each)

        await self._at_once(map(take, actions))
        return refusals[0] if refusals else ""

    async def _at_once(self, tasks: Iterable[Awaitable[None]]) -> None:
        """Await them, so many side by side; one is begun only when its turn comes, for five thousand that wait would take 20 MiB."""
        left = iter(tasks)

        async def run() -> None:
            for task in left:
                await task

        results = await asyncio.gather(*(run() for _ in range(_AT_ONCE)), return_exceptions=True)
        if error := next((each for each in results if each is not None), None):
            raise error

    async def _create(self, each: Create, template: str) -> None:
        made = worker.render_worker(self.cluster, self.nodeset, each.index, self.operator.defaults, template)
        try:
            self.operator.stores.pods.learn(await self.operator.api.create_as(kinds.POD, Pod, made))
        except AlreadyExists as error:
            pod = self._pod(each.index)
            if pod is not None and pod.metadata.labels.get(labels.NODESET) != self.nodeset.name:
                raise Retry(f"the name of pod {pod.metadata.name} is taken by another NodeSet") from error

    async def _take(self, action: Action) -> None:
        node, client = names.slurm_node(self.nodeset.name, action.index), self.client
        match action:
            case Delete(index):
                await self._delete(index)
            case Mark():
                await self._mark(action)
            case Register(index):
                await self._register(index)
            case Drain(_, why) if client:
                await client.drain(node, why)
            case Resume() if client:
                await client.resume(node)
            case Forget() if client:
                await client.delete(node)
            case Warn(_, why, jobs, signal) if client:
                for job in jobs if signal else ():
                    await client.signal(job.number, signal)
                await client.drain(node, why)
            case End(_, _, jobs, requeue) if client:
                for job in jobs:
                    if requeue and job.may_requeue:
                        await self.operator.inside.requeue(self.cluster, job.number)
                    else:
                        await client.cancel(job.number)

    async def _say(self, said: Say) -> None:
        inside, nodes = self.operator.inside, hosts(self.nodeset.name, said.indexes)
        match said.verb:
            case Verb.RECORD:
                await inside.record(self.cluster, nodes, record(self.nodeset, said.indexes))
            case Verb.ERASE:
                await inside.scontrol(self.cluster, "delete", f"NodeName={nodes}")
            case Verb.DENY:
                await inside.scontrol(self.cluster, "update", f"NodeName={nodes}", "State=DOWN", f"Reason={said.why}")
            case verb:
                await inside.scontrol(self.cluster, "update", f"NodeName={nodes}", f"State={verb}")

    async def _delete(self, index: int) -> None:
        pod = self._pod(index)
        if pod is not None:
            where = Deletion(uid=pod.metadata.uid)
            await self.operator.api.delete(kinds.POD, pod.metadata.namespace, pod.metadata.name, where)
            self.operator.deleted.add(pod.metadata.uid)

    async def _register(self, index: int) -> None:
        pod = self._pod(index)
        if pod is not None:
            self.operator.asked[pod.metadata.uid] = self.operator.wall()
            await self.operator.inside.register(pod.metadata.namespace, pod.metadata.name)

    async def _mark(self, mark: Mark) -> None:
        """Write on a pod what we own of its metadata after its creation; a pod that is another one by now is left alone."""
        pod = self._pod(mark.index)
        if pod is None:
            return
        meta = {
            "name": pod.metadata.name,
            "namespace": pod.metadata.namespace,
            "uid": pod.metadata.uid,
            "labels": {labels.PROTECTED: "true" if mark.protected else "false"},
            "annotations": {
                labels.SAFE_TO_EVICT: "false" if mark.protected else "true",
                **({labels.DRAINED: mark.noted} if mark.noted else {}),
            },
        }
        with contextlib.suppress(Conflict, NotFound):
            await self.operator.api.apply(kinds.POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta})

    async def _condition(self, tell: Tell) -> None:
        """Write the condition of a pod in which its Slurm node is told."""
        pod = self._pod(tell.index)
        if pod is None:
            return
        was, status = pods.in_service(pod), "True" if tell.reason == IN_SERVICE else "False"
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

    def _tell(self, action: Action) -> None:
        node = hosts(self.nodeset.name, indexes_of(action))
        verb = action.verb.name.capitalize() if isinstance(action, Say) else type(action).__name__
        note = Note(
            "Warning" if isinstance(action, Warn | End) or verb == "Deny" else "Normal",
            verb,
            f"{node}: {action.why}",
            verb,
        )
        self.operator.recorder.emit(Regarding(kinds.NODESET, self.obj.metadata), note)


def indexes_of(action: Action) -> tuple[int, ...]:
    """Whom an action is about."""
    return action.indexes if isinstance(action, Say) else (action.index,)


def decide(seen: Seen) -> Plan:
    """The policy that a NodeSet's workers are under."""
    return power.decide(seen) if seen.on_demand else rollout.decide(seen)


async def choose(seen: Seen, client: SlurmRest | None) -> tuple[Plan, str]:
    """The plan, decided with a fresh look at Slurm where that matters; without an answer only what is to be made, and why."""
    plan = decide(seen)
    if (
        client is None
        or seen.nodes is None
        or not (plan.asks_jobs or any(_matters(seen, each) for each in plan.actions))
    ):
        return plan, ""
    try:
        seen = await _fresh(seen, plan, client)
        plan = decide(seen)
        if plan.asks_jobs:
            plan = decide(replace(seen, jobs=tuple(await client.jobs())))
        return plan, ""
    except SlurmError as error:
        made = tuple(each for each in plan.actions if isinstance(each, Create))
        return replace(plan, actions=made), f"Slurm does not answer, so its nodes stay as they are: {error}"


async def _fresh(seen: Seen, plan: Plan, client: SlurmRest) -> Seen:
    """What is seen, with a fresh answer of Slurm's about every node that a plan made on it touches; raises SlurmError.

    A few nodes are asked for one by one. Where Slurm does not know one, or its answer leads to a plan that touches others, all are asked for.
    """
    asked = _touched(seen, plan)
    if seen.nodes is not None and not plan.asks_jobs and len(asked) <= _ONE_BY_ONE and asked <= seen.nodes.keys():
        with contextlib.suppress(SlurmError):
            few = seen.on({**seen.nodes, **await client.only(asked)})
            again = decide(few)
            if not again.asks_jobs and _touched(few, again) <= asked:
                return few
    return seen.on(await client.nodes())


def _touched(seen: Seen, plan: Plan) -> set[str]:
    return {seen.name(index) for each in plan.actions if _matters(seen, each) for index in indexes_of(each)}


def _matters(seen: Seen, action: Action) -> bool:
    """Whether an action needs a fresh answer; a new pod under a name that Slurm does not know does not, nor does a mere report."""
    return not isinstance(action, Create | Tell) or (isinstance(action, Create) and seen.node(action.index) is not None)
