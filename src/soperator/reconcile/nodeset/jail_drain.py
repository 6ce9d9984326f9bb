"""Decides which workers are drained because of their jail, each with its own message.

The kubelet's probe only reports a failure, and anybody who can connect to the port can keep it from answering. So a worker is drained only with a
message about its jail: from the port or, if that does not answer, from the same program through the kubelet (`slurm_exec`).
"""

import asyncio
from dataclasses import replace

from soperator.kube.views import Pod
from soperator.policy.drain_reasons import JAIL
from soperator.policy.workers.types import WorkerPod, WorkerSnapshot
from soperator.reconcile import pod_status
from soperator.reconcile.context import Operator
from soperator.reconcile.io.jail_watch_client import REPORTS, JailReport
from soperator.render.parts import labels
from soperator.render.parts.model import NodeSet
from soperator.slurm.node import REASON_PREFIX

#: How many workers are asked in one pass; the others follow in the next ones.
_ASKED = 16
#: Seconds until a worker is asked again: one whose jail cannot be entered, and any other.
_SELDOM, _OFTEN = 60.0, 10.0
_SOON = 0.5


async def with_jail_reasons(operator: Operator, nodeset: NodeSet, seen: WorkerSnapshot) -> WorkerSnapshot:
    """Return the snapshot, with a reason to drain for each worker that reports that its jail cannot be entered.

    A worker that is drained for it keeps the reason in Slurm, and is resumed when its pod is ready again.
    """
    sick = _sick(operator, nodeset)
    _forget_well(operator, nodeset, sick)
    if not sick:
        return seen
    now = operator.wall()
    due = sorted((pod for pod in sick if _due(operator, pod) <= now), key=lambda pod: _due(operator, pod))[:_ASKED]
    answers = await asyncio.gather(*(_fetch_reason(operator, pod) for pod in due))
    for pod, said in zip(due, answers, strict=True):
        operator.memory(REPORTS)[pod.metadata.uid] = JailReport(now, said)
    workers = dict(seen.pods)
    for pod in sick:
        index, said = _index(pod), _known_reason(operator, pod)
        why = _known(seen, index) or said
        if index in workers and why and said != "":
            workers[index] = _leaving(workers[index], why)
    return replace(seen, pods=workers, settled=seen.settled - set(map(_index, sick)))


def again(operator: Operator, nodeset: NodeSet) -> float | None:
    """Return the seconds until the next query of a worker is due; None if no query is planned."""
    due = [_due(operator, pod) for pod in _sick(operator, nodeset)]
    return max(_SOON, min(due) - operator.wall()) if due else None


def _forget_well(operator: Operator, nodeset: NodeSet, sick: list[Pod]) -> None:
    """Forget the messages of workers that are ready again, because the next fault may be another one."""
    if not operator.memory(REPORTS):
        return
    ill = {each.metadata.uid for each in sick}
    for pod in operator.stores.pods.by("nodeset", (nodeset.namespace, nodeset.name)):
        if pod.metadata.uid not in ill:
            operator.memory(REPORTS).pop(pod.metadata.uid, None)


def _sick(operator: Operator, nodeset: NodeSet) -> list[Pod]:
    found = operator.stores.sick_pods((nodeset.namespace, nodeset.spec.cluster))
    return [pod for pod in found if pod.metadata.labels.get(labels.NODESET) == nodeset.name]


def _due(operator: Operator, pod: Pod) -> float:
    heard = operator.memory(REPORTS).get(pod.metadata.uid)
    return heard.at + (_SELDOM if heard.said else _OFTEN) if heard else 0.0


def _known_reason(operator: Operator, pod: Pod) -> str | None:
    heard = operator.memory(REPORTS).get(pod.metadata.uid)
    return heard.said if heard else None


async def _fetch_reason(operator: Operator, pod: Pod) -> str | None:
    """Return the reason for Slurm; empty if the jail can be entered, None if the worker did not answer."""
    said = await operator.query_jail(pod.status.pod_ip)
    if said is None:
        said = await operator.pod_exec.jail(pod.metadata.namespace, pod.metadata.name)
    return said


def _leaving(worker: WorkerPod, why: str) -> WorkerPod:
    return replace(worker, leave=why.removeprefix(REASON_PREFIX))


def _known(seen: WorkerSnapshot, index: int) -> str:
    """Return the reason that was already reported.

    It is that of the drain, which Slurm keeps after a resume, or of the drain that an administrator undid.
    """
    node, worker = seen.node(index), seen.pods.get(index)
    said = (node.our_reason if node and node.is_draining else "", worker.noted if worker else "")
    return next((each for each in said if each.startswith(JAIL)), "")


def _index(pod: Pod) -> int:
    index = pod_status.index_of(pod, pod.metadata.labels.get(labels.NODESET, ""))
    return -1 if index is None else index
