"""Writes the fault of a job's node into the job's AdminComment, because Slurm does not show it to the job's user.

For a requeued job, Slurm reports only that it is pending, and forgets where it ran. So the operator writes the sentence while the job has the node:
when a check has drained the node, and when it does not answer.
"""

from collections.abc import Iterable, Mapping

from soperator.policy import drain_reasons
from soperator.policy.workers.types import WorkerPod, WorkerSnapshot
from soperator.slurm.node import REASON_PREFIX

#: A comment that would be longer stays as it is.
LONGEST = 1024


def messages_by_node(seen: WorkerSnapshot) -> Mapping[str, str]:
    """Return a sentence for the jobs of each faulty Slurm node, by node name; it does not change while the fault lasts."""
    return {seen.name(pod.index): says for pod in seen.unsettled if (says := _comment(seen, pod))}


def _comment(seen: WorkerSnapshot, pod: WorkerPod) -> str:
    node, machine = seen.node(pod.index), seen.machine(pod)
    if node is None or not node.is_busy:
        return ""
    if drain_reasons.is_of_check(node):
        check, says = drain_reasons.check_of(node)
        return f"{node.name} failed check {check} at {drain_reasons.stamp(node.reason_at)}: {says}"
    if machine is not None and not machine.ready:
        return f"{node.name} was on Node {machine.name}, which has not been ready since {drain_reasons.stamp(machine.since)}"
    if not node.is_up:
        return f"{node.name} did not answer{f': {pod.trouble}' if pod.trouble else ''}"
    return ""


def commented(comment: str, messages_by_node: Iterable[str]) -> str:
    """Return a job's comment with these sentences appended, each only once."""
    for each in messages_by_node:
        longer = f"{comment}; {each}" if comment else f"{REASON_PREFIX}{each}"
        if each not in comment and len(longer) <= LONGEST:
            comment = longer
    return comment
