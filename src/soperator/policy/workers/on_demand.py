"""The policy for a NodeSet with power saving: the pods to create and delete, and the requests to Slurm.

Slurm wakes nodes for jobs or for an administrator. Only the states of its nodes say which nodes must be awake:

| state | pod | action |
|---|---|---|
| none | none | a record is created, asleep |
| asleep (POWERED_DOWN) | any | the pod is deleted |
| falling asleep (POWERING_DOWN) | any | the pod is deleted |
| waking (POWERING_UP) | none | a pod is created |
| waking, too long | any | the node is set DOWN: Slurm requeues its jobs, and the pod is deleted; after a while Slurm may try it again |
| awake, idle for long | there | it is powered down, unless too few would be awake |
| awake | there | as any worker (`policy`): drained and deleted if it must go; then its record is replaced by a new one, asleep |
| awake, no job | none | it is powered down |
| awake, with a job | none | a pod is created, whose slurmd reports to Slurm that the job is lost |

Invariants, each tested by interrupting at every step:
- The pod of a node that is awake is deleted only as `policy` allows, or after Slurm itself has put the node to sleep, which it never does to a node
  with a job. A request to sleep ends no job: Slurm waits until there is none.
- A node is powered up, powered down or set DOWN only if its state does not say so already.
- Without an answer from Slurm no pod is created or deleted.
- Nothing is remembered: the reason of a node that did not wake has the time.

If no machine exists for one node, or its image does not start, the other sleeping nodes would fail too. They are set DOWN for the same time, so
that jobs run elsewhere, or wait with that reason, instead of trying one node after the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from soperator.policy import drain_reasons
from soperator.policy.drain_reasons import SCALE_IN
from soperator.policy.workers import node_records, policy
from soperator.policy.workers.node_records import PATIENCE
from soperator.policy.workers.power_states import (
    DENIED,
    LATE,
    Phase,
    is_denied,
    is_of,
    phase_of,
)
from soperator.policy.workers.removal_order import never_ran
from soperator.policy.workers.types import (
    Action,
    Create,
    Delete,
    OnDemand,
    UpdateNodes,
    Verb,
    WorkerPlan,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.node import REASON_PREFIX, SlurmNode

_NAMED = 3
#: Seconds by which a time of slurmctld may be later than the present; beyond them its clock was ahead when it was written.
_AHEAD = 60.0


def decide(seen: WorkerSnapshot) -> WorkerPlan:
    """Return the actions for the states of the nodes; `policy` decides about the workers that are awake."""
    if seen.on_demand is None or seen.nodes is None:
        return _without_slurm(seen)
    look = _OnDemandPass(seen, seen.on_demand)
    slept = look.to_sleep()
    said = [
        *look.records(),
        *look.described(),
        *look.resume_timeouts(),
        *look.allowed(),
        *look.power_down_awaited(),
        *look.woken(),
        *slept,
    ]
    told_to_sleep = {index for each in slept for index in each.indexes}
    rest = policy.decide(look.others(told_to_sleep))
    return WorkerPlan(
        actions=(*look.created(), *said, *look.deleted(), *rest.actions),
        said="; ".join(filter(None, (look.summary(), rest.said))),
        again=min((each for each in (look.again(), rest.again) if each is not None), default=None),
        asks_jobs=rest.asks_jobs or policy.asks_jobs(seen, (*look.deleted(), *look.records())),
    )


def _without_slurm(seen: WorkerSnapshot) -> WorkerPlan:
    held = replace(seen, wanted=0 if seen.ending else len(seen.pods), policy=replace(seen.policy, replace_after=None))
    plan = policy.decide(held)
    return replace(plan, said=plan.said or "it waits for Slurm's answer")


@dataclass(frozen=True)
class _OnDemandPass:
    """One observation of a NodeSet, with its nodes sorted by phase."""

    seen: WorkerSnapshot
    settings: OnDemand

    @cached_property
    def nodes(self) -> dict[int, SlurmNode]:
        """The nodes that Slurm knows, by index."""
        found = {int(name.rpartition("-")[2]): node for name, node in self._named}
        return dict(sorted(found.items()))

    @property
    def _named(self) -> Iterator[tuple[str, SlurmNode]]:
        return ((name, node) for name, node in (self.seen.nodes or {}).items() if is_of(self.seen, name))

    @cached_property
    def phases(self) -> dict[int, Phase]:
        """The phase of each node, by index."""
        return {index: phase_of(node) for index, node in self.nodes.items()}

    @cached_property
    def gone(self) -> frozenset[int]:
        """The nodes whose records must be deleted; they get no other action."""
        found = self.nodes.items()
        return frozenset(index for index, node in found if self._is_done(index, node, self.seen.pods.get(index)))

    def in_phases(self, *phases: Phase) -> Iterator[tuple[int, SlurmNode, WorkerPod | None]]:
        """Yield the nodes in these phases, each with its pod."""
        for index, node in self.nodes.items():
            if self.phases[index] in phases:
                yield index, node, self.seen.pods.get(index)

    def _sleeping(self) -> Iterator[tuple[int, SlurmNode, WorkerPod | None]]:
        return (each for each in self.in_phases(Phase.ASLEEP) if each[0] not in self.gone)

    def is_wanted(self, index: int) -> bool:
        """Return whether the index is within the size of the spec."""
        return not self.seen.ending and index < self.settings.most

    def records(self) -> Iterator[UpdateNodes]:
        """Yield the creation, deletion or replacement of records; a sleeping node consists of its record only."""
        missing = tuple(
            index for index in range(self.settings.most) if index not in self.nodes and index not in self.seen.pods
        )
        if missing and not self.seen.ending:
            yield UpdateNodes(Verb.RECORD, missing, "their records are missing")
        if self.gone:
            yield UpdateNodes(Verb.ERASE, tuple(sorted(self.gone)), "their records must be deleted or replaced")

    def _is_done(self, index: int, node: SlurmNode, pod: WorkerPod | None) -> bool:
        if pod is not None or node.is_busy or (node.is_administrators and not self.seen.ending):
            return False
        if drain_reasons.is_ours(node) or not self.is_wanted(index):
            return self.phases[index] is not Phase.WAKING or bool(self.seen.ending)
        return self.phases[index] is Phase.ASLEEP and self._is_of_another_size(node)

    def _is_of_another_size(self, node: SlurmNode) -> bool:
        """Whether a record differs from the spec in fields that an update cannot change."""
        if node.shape is None or self.settings.shape is None:
            return False
        return node_records.with_fields(node.shape, self.seen.record) != self.settings.shape

    def described(self) -> Iterator[UpdateNodes]:
        """Yield the update of the records whose features or weight differ from the spec, asleep or awake."""
        return node_records.field_updates(self.seen, (index for index in self.nodes if index not in self.gone))

    def created(self) -> Iterator[Create]:
        """Yield the creation of pods for waking nodes, and for nodes whose pod is gone while they have a job."""
        for index, node, pod in self.in_phases(Phase.WAKING, Phase.AWAKE):
            waits = self.phases[index] is Phase.WAKING or node.is_busy
            if pod is None and waits and not is_denied(node) and not self.seen.ending:
                yield Create(index, "Slurm wakes it" if self.phases[index] is Phase.WAKING else "its pod is gone")

    def deleted(self) -> Iterator[Action]:
        """Yield the deletion of pods: of nodes that sleep or did not wake, and of waking nodes with an ended, too old or outdated slurmd."""
        for index, node, pod in self.in_phases(Phase.ASLEEP, Phase.FALLING, Phase.WAKING, Phase.AWAKE):
            if pod is None or pod.deleting:
                continue
            if self.phases[index] in (Phase.ASLEEP, Phase.FALLING):
                yield Delete(index, "Slurm has powered the node down")
            elif is_denied(node):
                yield Delete(index, "it did not wake")
            elif self.phases[index] is Phase.WAKING and (why := self._is_stale(pod)):
                yield Delete(index, why)
            elif self.phases[index] is Phase.AWAKE and not self.is_wanted(index) and not self.seen.ending:
                yield from policy.retire(self.seen, pod, SCALE_IN)

    def _is_stale(self, pod: WorkerPod) -> str:
        if pod.phase in ("Failed", "Succeeded"):
            return "its containers ended"
        if pod.template != self.seen.template and never_ran(self.seen, pod):
            return "its pod template is out of date"
        late = pod.ready and self.seen.now >= pod.ready_since + PATIENCE
        return "its slurmd started before Slurm requested the node" if late else ""

    def resume_timeouts(self) -> Iterator[UpdateNodes]:
        """Yield the updates that set DOWN the waking nodes that exceeded resumeTimeout, with all sleeping nodes if their pods would fail too, and
        then put them to sleep.
        """
        late = [pod for _, node, pod in self.in_phases(Phase.WAKING) if pod and self._is_late(node, pod)]
        short = [pod for pod in late if not pod.machine or pod.failing]
        if self.seen.ending:
            if without_pod := tuple(
                index for index, node, pod in self.in_phases(Phase.WAKING) if pod is None and not node.is_down
            ):
                yield UpdateNodes(Verb.DENY, without_pod, self.seen.ending)
        elif short:
            asleep = [index for index, node, _ in self._sleeping() if not (node.is_down or node.is_draining)]
            why = drain_reasons.reason(
                f"{DENIED.removeprefix(REASON_PREFIX)}{short[0].trouble or 'its pod was not scheduled'}"
            )
            yield UpdateNodes(Verb.DENY, (*(pod.index for pod in short), *asleep), why)
        for pod in late:
            if pod not in short:
                why = drain_reasons.reason(
                    f"{LATE.removeprefix(REASON_PREFIX)}{pod.trouble or 'its slurmd did not register'}"
                )
                yield UpdateNodes(Verb.DENY, (pod.index,), why)
        if denied := tuple(index for index, node, _ in self.in_phases(Phase.WAKING, Phase.AWAKE) if is_denied(node)):
            yield UpdateNodes(Verb.SLEEP, denied, "they did not wake")

    def _is_late(self, node: SlurmNode, pod: WorkerPod) -> bool:
        late = self.seen.now >= pod.born + self.settings.resume
        return late and not (node.is_down or pod.deleting or pod.ready)

    def allowed(self) -> Iterator[UpdateNodes]:
        """Yield the updates that let Slurm try sleeping nodes again that the operator set DOWN: at once if the reason is that of a node that was
        awake.
        """
        found = [
            index
            for index, node, _ in self._sleeping()
            if node.is_down and not node.is_administrators and not node.is_draining and self._is_due(node)
        ]
        if found and not self.seen.ending:
            yield UpdateNodes(Verb.ALLOW, tuple(found), "Slurm may try them again")

    def _is_due(self, node: SlurmNode) -> bool:
        waited = self.seen.now - node.reason_at
        return not is_denied(node) or waited >= self.settings.backoff or waited < -_AHEAD

    def power_down_awaited(self) -> Iterator[UpdateNodes]:
        """Yield the update that powers sleeping nodes down again if Slurm expects a response of them, as after a RESUME; otherwise Slurm skips
        them for ever.
        """
        found = [
            index
            for index, node, pod in self._sleeping()
            if pod is None and "NOT_RESPONDING" in node.states and not node.is_down and self._may_sleep(node)
        ]
        if found and not self.seen.ending:
            yield UpdateNodes(Verb.SLEEP, tuple(found), "Slurm expects a response from sleeping nodes")

    @cached_property
    def awake(self) -> int:
        """Return the number of nodes that are in service, or will soon be."""
        return sum(
            not (node.is_draining or node.is_down) and self.is_wanted(index) and "POWER_DOWN" not in node.states
            for index, node, _ in self.in_phases(Phase.WAKING, Phase.AWAKE)
        )

    def woken(self) -> Iterator[UpdateNodes]:
        """Yield the action that wakes the lowest sleeping nodes if fewer nodes are awake than minNodes."""
        ready = [
            index
            for index, node, pod in self._sleeping()
            if pod is None
            and self.is_wanted(index)
            and not (node.is_down or node.is_draining or node.is_busy or "NOT_RESPONDING" in node.states)
        ]
        if (missing := self.settings.least - self.awake) > 0 and ready and not self.seen.ending:
            yield UpdateNodes(Verb.WAKE, tuple(ready[:missing]), "fewer nodes are awake than minNodes")

    def to_sleep(self) -> list[UpdateNodes]:
        """Return the powering down of the nodes that idled longest, while enough stay awake, and of nodes whose pod is gone without a job."""
        lost = [
            index
            for index, node, pod in self.in_phases(Phase.AWAKE)
            if pod is None
            and self.is_wanted(index)
            and self._may_sleep(node)
            and not is_denied(node)
            and index not in self.gone
        ]
        idle = sorted((since, -index) for index, since in self._idlers() if self.seen.now >= since + self.settings.idle)
        room = max(0, self.awake - len(lost) - self.settings.least)
        found = (*lost, *sorted(-index for _, index in idle[:room]))
        return [UpdateNodes(Verb.SLEEP, found, "no job needs them")] if found and not self.seen.ending else []

    def _idlers(self) -> Iterator[tuple[int, float]]:
        for index, node, pod in self.in_phases(Phase.AWAKE):
            if (
                pod
                and pod.ready
                and not pod.deleting
                and self.is_wanted(index)
                and self._may_sleep(node)
                and node.is_up
            ):
                yield index, max(node.last_busy, pod.ready_since)

    def _may_sleep(self, node: SlurmNode) -> bool:
        """Return whether a node has no job and no drain; POWER_DOWN would remove a drain."""
        return not (node.is_busy or node.is_draining or node.is_administrators or "POWER_DOWN" in node.states)

    def others(self, told_to_sleep: set[int]) -> WorkerSnapshot:
        """Return the workers that are awake and stay awake, for the policy of running workers; they include those that Slurm does not know."""
        mine = {
            index: pod
            for index, pod in self.seen.pods.items()
            if index not in told_to_sleep
            and (index not in self.nodes or self._is_rollouts(index))
            and (self.is_wanted(index) or self.seen.ending)
        }
        names = {self.seen.name(index) for index in mine}
        return replace(
            self.seen,
            pods=mine,
            nodes={name: node for name, node in (self.seen.nodes or {}).items() if name in names},
            wanted=0 if self.seen.ending else len(mine),
            policy=replace(self.seen.policy, replace_after=None),
            settled=self.seen.settled & mine.keys(),
            record=None,
        )

    def _is_rollouts(self, index: int) -> bool:
        node = self.nodes[index]
        awake = self.phases[index] is Phase.AWAKE or (bool(self.seen.ending) and self.phases[index] is Phase.WAKING)
        return awake and not is_denied(node) and "POWER_DOWN" not in node.states

    def summary(self) -> str:
        """Return a message about the waking nodes and what they wait for."""
        waking = [(self.nodes[index].name, pod) for index, _, pod in self.in_phases(Phase.WAKING)]
        if not waking:
            return ""
        said = [f"{name} ({pod.trouble})" if pod and pod.trouble else name for name, pod in waking[:_NAMED]]
        more = [f"and {len(waking) - _NAMED} more"] if len(waking) > _NAMED else []
        return f"waking: {', '.join([*said, *more])}"

    def again(self) -> float | None:
        """Return the seconds until an action is due without an event."""
        due = min((each for each in self._moments() if each > self.seen.now), default=None)
        return None if due is None else due - self.seen.now + 0.1

    def _moments(self) -> Iterator[float]:
        if self.awake > self.settings.least:
            yield from (since + self.settings.idle for _, since in self._idlers())
        for _, _, pod in self.in_phases(Phase.WAKING):
            if pod and not pod.deleting:
                yield pod.born + self.settings.resume
                if pod.ready:
                    yield pod.ready_since + PATIENCE
        for _, node, _ in self.in_phases(Phase.ASLEEP, Phase.FALLING):
            if is_denied(node):
                yield node.reason_at + self.settings.backoff
