"""Which workers are to take no jobs because of their jail, each with what it says of it itself.

The kubelet's probe only says that something is wrong, and a port that anybody may connect to can be kept from answering. So a worker is drained
only with a sentence about its jail: from the port, or, where that is silent, from the same program by way of the kubelet (`slurm_exec`).
"""

import asyncio
from dataclasses import replace

from soperator.kube.views import Pod
from soperator.policy.drain_reasons import JAIL
from soperator.policy.workers.types import WorkerPod, WorkerSnapshot
from soperator.reconcile.context import Operator
from soperator.reconcile.io.jail_watch_client import JailReport
from soperator.render.parts import labels
from soperator.render.parts.model import NodeSet
from soperator.slurm import hostlist
from soperator.slurm.node import REASON_PREFIX

#: How many workers are asked in one pass; the others follow in the next ones.
_ASKED = 16
#: Seconds until a worker is asked again: one whose jail cannot be entered, and one that reported nothing of the kind.
_SELDOM, _OFTEN = 60.0, 10.0
_SOON = 0.5


async def with_jail_reasons(operator: Operator, nodeset: NodeSet, seen: WorkerSnapshot) -> WorkerSnapshot:
    """What is seen, with a reason to leave at each worker that says that its jail cannot be entered.

    A worker that is drained for it keeps the words that Slurm shows. It is resumed once its pod is ready again.
    """
    sick = _sick(operator, nodeset)
    _forget_well(operator, nodeset, sick)
    if not sick:
        return seen
    now = operator.wall()
    due = sorted((pod for pod in sick if _due(operator, pod) <= now), key=lambda pod: _due(operator, pod))[:_ASKED]
    answers = await asyncio.gather(*(_fetch_reason(operator, pod) for pod in due))
    for pod, said in zip(due, answers, strict=True):
        operator.jails[pod.metadata.uid] = JailReport(now, said)
    workers = dict(seen.pods)
    for pod in sick:
        index, said = _index(pod), _known_reason(operator, pod)
        why = _known(seen, index) or said
        if index in workers and why and said != "":
            workers[index] = _leaving(workers[index], why)
    return replace(seen, pods=workers, calm=seen.calm - set(map(_index, sick)))


def again(operator: Operator, nodeset: NodeSet) -> float | None:
    """In how many seconds a worker is to be asked; None where none is."""
    due = [_due(operator, pod) for pod in _sick(operator, nodeset)]
    return max(_SOON, min(due) - operator.wall()) if due else None


def _forget_well(operator: Operator, nodeset: NodeSet, sick: list[Pod]) -> None:
    """Drop what workers said that are ready again: the next time something else may be wrong."""
    if not operator.jails:
        return
    ill = {each.metadata.uid for each in sick}
    for pod in operator.stores.pods.by("nodeset", (nodeset.namespace, nodeset.name)):
        if pod.metadata.uid not in ill:
            operator.jails.pop(pod.metadata.uid, None)


def _sick(operator: Operator, nodeset: NodeSet) -> list[Pod]:
    found = operator.stores.sick_pods((nodeset.namespace, nodeset.spec.cluster))
    return [pod for pod in found if pod.metadata.labels.get(labels.NODESET) == nodeset.name]


def _due(operator: Operator, pod: Pod) -> float:
    heard = operator.jails.get(pod.metadata.uid)
    return heard.at + (_SELDOM if heard.said else _OFTEN) if heard else 0.0


def _known_reason(operator: Operator, pod: Pod) -> str | None:
    heard = operator.jails.get(pod.metadata.uid)
    return heard.said if heard else None


async def _fetch_reason(operator: Operator, pod: Pod) -> str | None:
    """A reason for Slurm; empty where the jail can be entered, None where nobody could be asked."""
    said = await operator.ask_jail(pod.status.pod_ip)
    if said is None:
        said = await operator.inside.jail(pod.metadata.namespace, pod.metadata.name)
    return said


def _leaving(worker: WorkerPod, why: str) -> WorkerPod:
    return replace(worker, leave=why.removeprefix(REASON_PREFIX))


def _known(seen: WorkerSnapshot, index: int) -> str:
    """What was told of it already: the reason of its drain, which Slurm keeps after a resume, or the drain that an administrator took back."""
    node, worker = seen.node(index), seen.pods.get(index)
    said = (node.reason if node and node.is_draining else "", worker.noted if worker else "")
    return next((each for each in said if each.startswith(JAIL)), "")


def _index(pod: Pod) -> int:
    index = hostlist.number(pod.metadata.labels.get(labels.INDEX, ""))
    return -1 if index is None else index
