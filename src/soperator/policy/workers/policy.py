"""The whole policy for a NodeSet's workers: a function of the observed state.

Each pod is in one of five groups, checked in this order:

1. **replaced by another**: its Node has not reported for `nodeFailure.replaceAfter`, and its Slurm node is DOWN. It stays unchanged, and a
   pod with another name takes its place.
2. **surplus**: there are more pods than desired; those whose removal disturbs least (`removal_order`) are retired.
3. **chosen**: its template is old and the rollout has room for it; it is retired, and a new pod gets its name.
4. **leaving**: its Node must be emptied, or another capability needs it idle; it is drained, and may then be evicted.
5. **kept**: it is protected, and a drain of the operator is undone.

To retire is to drain, to wait until nothing runs (`drain` says for how long), to delete the pod, and then to remove Slurm's record.

Invariants, each tested by interrupting at every step:
- A pod is deleted, or loses its protection, only when its Slurm node is drained (DRAIN set, nothing runs or completes, and no job is suspended on
  it), or when no slurmd can be running in it.
- A job ends before its time only by `drain.onTimeout`, after `drain.timeout` and a warning.
- No answer from Slurm means busy. A ready pod that Slurm does not know is busy too, because slurmctld may have forgotten it: its slurmd is made
  to register again.
- Only drains with a reason of the operator are undone, and no drain that an administrator undid is set again.
- Nothing is remembered: the next call observes what the last one did.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice

from soperator.policy import drain_reasons
from soperator.policy.drain_reasons import ROLLOUT, SCALE_IN
from soperator.policy.workers import (
    drain,
    node_records,
    pod_condition,
    summary,
)
from soperator.policy.workers.removal_order import (
    cost,
    is_busy,
    is_in_service,
    is_unused,
    leave_reason,
    never_ran,
)
from soperator.policy.workers.types import (
    Action,
    AnnotatePod,
    Create,
    Delete,
    DeleteNodeRecord,
    DrainNode,
    Register,
    UpdateNodes,
    Verb,
    WorkerPlan,
    WorkerPod,
    WorkerSnapshot,
)

#: Seconds after which a node with a suspended job is looked at again: when the job is cancelled, no state of the node changes.
_SUSPENDED = 10.0


def decide(seen: WorkerSnapshot) -> WorkerPlan:
    """Return the actions that bring the workers closer to the desired state.

    They can be interrupted at any point, and may run in any order, except that records are deleted before pods are created.
    """
    lost = _lost(seen)
    slots = _without(seen.pods.values(), lost)
    excess = max(0, len(slots) - seen.wanted)
    surplus = sorted(slots, key=lambda pod: cost(seen, pod))[:excess] if excess else []
    kept = _without(slots, surplus)
    chosen, pause = _choose(seen, kept)
    goes, rolls = _indexes(surplus), _indexes(chosen)
    actions: list[Action] = []
    for pod in slots:
        if pod.index in seen.settled and pod.index not in goes:
            continue
        if pod.deleting and pod.leave:
            actions += _evacuate(seen, pod)
        elif pod.index in goes:
            actions += retire(seen, pod, seen.ending or SCALE_IN)
        elif pod.index in rolls:
            actions += retire(seen, pod, ROLLOUT)
        elif leave_reason(seen, pod):
            actions += _evacuate(seen, pod)
        else:
            actions += _keep(seen, pod, bool(surplus))
    marked = {each.index for each in actions if isinstance(each, AnnotatePod)}
    for pod in seen.unsettled:
        actions += [
            each
            for each in node_records.due_registrations(seen, pod)
            if isinstance(each, Register) or pod.index not in marked
        ]
    pod_conditions = [each for pod in seen.unsettled for each in pod_condition.condition_to_set(seen, pod)]
    created = _create(seen, seen.wanted - len(slots))
    forgotten = _forget(seen, created)
    fates = summary.Classification(lost, surplus, chosen, kept, pause)
    return WorkerPlan(
        actions=(*created, *forgotten, *actions, *pod_conditions, *node_records.field_updates(seen, seen.differing)),
        said=summary.summarize(seen, fates),
        again=_again(seen, kept),
        asks_jobs=asks_jobs(seen, [*forgotten, *actions]),
    )


def _indexes(pods: Iterable[WorkerPod]) -> set[int]:
    return {pod.index for pod in pods}


def _without(pods: Iterable[WorkerPod], others: Iterable[WorkerPod]) -> list[WorkerPod]:
    left_out = _indexes(others)
    return [pod for pod in pods if pod.index not in left_out]


def _restless(seen: WorkerSnapshot, pods: Iterable[WorkerPod]) -> list[WorkerPod]:
    return [pod for pod in pods if pod.index not in seen.settled]


def _lost(seen: WorkerSnapshot) -> list[WorkerPod]:
    """Return the pods to replace because their Nodes do not answer, as many as the budget allows; none in a NodeSet of size 0."""
    policy = seen.policy
    if policy.replace_after is None or seen.wanted == 0 or seen.nodes is None:
        return []
    found = [pod for pod in sorted(seen.unsettled, key=lambda pod: pod.index) if _is_lost(seen, pod)]
    return found[: policy.max_replaced]


def _is_lost(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    machine, node = seen.machine(pod), seen.node(pod.index)
    if machine is None or machine.ready or seen.now - machine.since < (seen.policy.replace_after or 0.0):
        return False
    return pod.phase == "Running" and node is not None and node.is_down and not node.is_busy


def _choose(seen: WorkerSnapshot, kept: Sequence[WorkerPod]) -> tuple[list[WorkerPod], str]:
    """Return the pods of a former template to replace now, and why the others wait.

    Pods that are out of service, or never ran, do not count against maxUnavailable. Pods in service follow up to that number.
    """
    old = [pod for pod in kept if pod.template != seen.template]
    if not old or seen.policy.on_delete:
        return [], f"{len(old)} wait for their deletion (updateStrategy.type OnDelete)" if old else ""
    free = [pod for pod in old if pod.deleting or never_ran(seen, pod)]
    if pause := _pause(seen, kept):
        return free, pause
    alive = _without(old, free)
    out = [pod for pod in alive if not is_in_service(seen, pod) and not _is_draining(seen, pod)]
    ready = [pod for pod in _without(alive, out) if not drain.is_refused(seen, pod)]
    away = seen.wanted - len(kept) + len([pod for pod in free if pod.deleting]) + len(out)
    away += sum(1 for pod in _restless(seen, kept) if pod.template == seen.template and not is_in_service(seen, pod))
    candidates = [pod for pod in ready if not (seen.policy.wait_for_idle and is_busy(seen, pod))]
    room = max(0, seen.policy.max_unavailable - away)
    return [*free, *out, *sorted(candidates, key=lambda pod: cost(seen, pod))[:room]], ""


def _pause(seen: WorkerSnapshot, kept: Sequence[WorkerPod]) -> str:
    """Return why no worker in service is chosen for the rollout."""
    if seen.nodes is None:
        return "it waits for Slurm's answer"
    failed = next((pod for pod in _restless(seen, kept) if _has_failed(seen, pod)), None)
    if failed:
        return f"it stopped, for {failed.trouble or seen.name(failed.index) + ' is not in service'}"
    if seen.policy.window and not seen.policy.window.is_open(seen.now):
        return f"the rollout waits for its window ({seen.policy.window.schedule} UTC)"
    return ""


def _has_failed(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    """Return whether a worker of the new template cannot become ready, or has not become ready within its timeout."""
    if pod.template != seen.template or pod.deleting or is_in_service(seen, pod) or leave_reason(seen, pod):
        return False
    return pod.failing or (not _is_ours(seen, pod) and seen.now - pod.born > seen.policy.progress_deadline)


def retire(seen: WorkerSnapshot, pod: WorkerPod, why: str) -> list[Action]:
    """Return the steps to retire a pod: drain, wait, delete; a pod on which no job can run is deleted at once."""
    if pod.deleting:
        return []
    if never_ran(seen, pod):
        return [Delete(pod.index, f"{why}: its containers do not run")]
    if is_unused(seen, pod):
        known = seen.node(pod.index)
        return [
            Delete(pod.index, f"{why}: {'drained and idle' if known else 'Slurm never knew it, and it is not ready'}")
        ]
    return drain.drain_steps(seen, pod, why)


def _evacuate(seen: WorkerSnapshot, pod: WorkerPod) -> list[Action]:
    """Return the steps to empty a pod for its Node: drain, wait, allow its eviction; delete it if its Node expels pods and accepts no new ones."""
    why, machine = drain_reasons.reason(leave_reason(seen, pod)), seen.machine(pod)
    if not is_unused(seen, pod):
        return drain.drain_steps(seen, pod, why)
    if machine and machine.leaving and machine.expels and not pod.deleting:
        return [Delete(pod.index, f"{why}: drained and idle")]
    return drain.release(seen, pod, why)


def _keep(seen: WorkerSnapshot, pod: WorkerPod, has_surplus: bool) -> list[Action]:
    """Return the steps to keep a pod in service: protect it, and resume it unless an administrator drained it; a pod that ended is deleted and
    created again.
    """
    if pod.deleting:
        return []
    if pod.phase in ("Failed", "Succeeded"):
        return [Delete(pod.index, "its containers ended")]
    if not drain.is_refused(seen, pod):
        return drain.resume_steps(seen, pod, "the node is wanted")
    still = (pod.noted == SCALE_IN and has_surplus) or (pod.noted == ROLLOUT and pod.template != seen.template)
    still = still or pod.noted.startswith(drain_reasons.CHECK_PREFIX)  # `health` wipes it off
    return drain.guard(seen, pod) if still else [AnnotatePod(pod.index, "it is in service", protected=True, noted="")]


def _create(seen: WorkerSnapshot, missing: int) -> list[Create]:
    """Return the creation of all missing pods at once: first under names that Slurm knows and that lost their pod, then under the lowest free
    names.
    """
    back = [index for index in seen.without_pod if not _is_done(seen, index)]
    free = (index for index in count() if index not in seen.pods and index not in back)
    return [Create(index, "wanted") for index in (*back, *islice(free, max(0, missing)))][: max(0, missing)]


def _forget(seen: WorkerSnapshot, created: Sequence[Create]) -> list[DeleteNodeRecord]:
    """Return the deletion of records without a pod: those that the operator drained, those whose name a new pod gets, and those that no pod will
    use. Busy records stay.

    Slurm keeps the features and the size of a known node, whatever a new slurmd of that name reports. Only a new record has the values of the new
    template.
    """
    coming = {each.index for each in created}
    return [
        DeleteNodeRecord(index, "its new pod needs a new record" if index in coming else "it no longer has a pod")
        for index in seen.without_pod
        if _is_done(seen, index) or (_is_free if index in coming else _is_junk)(seen, index)
    ]


def _is_done(seen: WorkerSnapshot, index: int) -> bool:
    node = seen.node(index)
    return bool(node and not node.is_busy and drain_reasons.is_ours(node))


def _is_free(seen: WorkerSnapshot, index: int) -> bool:
    """Return whether a record may be lost when a new pod gets its name: it has no job, and no state or reason of an administrator."""
    node = seen.node(index)
    return bool(
        node
        and not node.is_busy
        and not node.is_administrators
        and (drain_reasons.is_ours(node) or not node.is_draining)
    )


def _is_junk(seen: WorkerSnapshot, index: int) -> bool:
    """Return whether a record says only that its machine is gone; a record with a reason of an administrator stays, unless all are deleted."""
    node = seen.node(index)
    return bool(
        node and not node.is_busy and (seen.ending or (node.is_down and node.reason.startswith("Not responding")))
    )


def _is_ours(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    return drain_reasons.is_ours(seen.node(pod.index))


def _is_draining(seen: WorkerSnapshot, pod: WorkerPod) -> bool:
    """Return whether a drain of the operator still waits for jobs; the policy may undo it for another node that became idle."""
    return _is_ours(seen, pod) and is_busy(seen, pod)


def asks_jobs(seen: WorkerSnapshot, actions: Sequence[Action]) -> bool:
    """Return whether the decision needs the list of jobs: to choose a busy node, to end a drain, or to exclude suspended jobs on a drained node."""
    if seen.jobs is not None or seen.nodes is None:
        return False
    chosen = any(isinstance(each, DrainNode) and is_busy(seen, seen.pods[each.index]) for each in actions)
    return (
        chosen
        or any(ends_jobs(seen, each) for each in actions)
        or any(drain.asks_jobs(seen, pod) for pod in seen.unsettled)
    )


def ends_jobs(seen: WorkerSnapshot, action: Action) -> bool:
    """Return whether an action could end a suspended job: it deletes the pod of a node that Slurm calls drained, or allows its eviction.

    So could the deletion of a record whose slurmd answers: its pod may exist, hidden because a person removed a label.
    """
    match action:
        case DeleteNodeRecord(index):
            return _answers(seen, index)
        case UpdateNodes(Verb.ERASE, indexes):
            return any(_answers(seen, index) for index in indexes)
        case Delete(index) | AnnotatePod(index, protected=False):
            node, pod = seen.node(index), seen.pods.get(index)
            if node is None:  # Slurm leaves it out; its jobs show whether Slurm forgot it
                return bool(pod and pod.phase == "Running")
            return bool(node.is_drained and pod and pod.phase not in ("Failed", "Succeeded"))
    return False


def _answers(seen: WorkerSnapshot, index: int) -> bool:
    node = seen.node(index)
    return bool(node and node.is_up)


def _again(seen: WorkerSnapshot, kept: Sequence[WorkerPod]) -> float | None:
    """Return the seconds until an action may be due without an event."""
    due = min((each for each in _moments(seen, kept) if each > seen.now), default=None)
    return None if due is None else due - seen.now + 0.1


def _moments(seen: WorkerSnapshot, kept: Sequence[WorkerPod]) -> Iterator[float]:
    rolling = any(pod.template != seen.template for pod in kept) and not seen.policy.on_delete
    if rolling and seen.policy.window:
        yield seen.now + 30.0
    for pod in seen.unsettled:
        machine = seen.machine(pod)
        if machine and not machine.ready and seen.policy.replace_after is not None:
            yield machine.since + seen.policy.replace_after
        if rolling and pod.template == seen.template and not is_in_service(seen, pod):
            yield pod.born + seen.policy.progress_deadline
        if (node := seen.node(pod.index)) and node.is_held:
            yield seen.now + _SUSPENDED
        yield from drain.moments(seen, pod)
        yield from pod_condition.moments(seen, pod)
        yield from node_records.moments(seen, pod)
