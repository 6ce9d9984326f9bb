"""Which workers are to take no jobs for their jail's sake, each with what it says of it itself."""

import asyncio
from dataclasses import replace

from soperator.control.operator import Operator
from soperator.decide.drain import JAIL
from soperator.decide.workers import Seen, WorkerPod
from soperator.kube.views import Pod
from soperator.render import labels
from soperator.render.model import NodeSet
from soperator.slurm.node import REASON_PREFIX

#: So many are asked in one pass; the others are drained with a general word.
_ASKED = 8
_GENERAL = f"{JAIL}it cannot be entered"


async def told(operator: Operator, nodeset: NodeSet, seen: Seen) -> Seen:
    """What is seen, with a reason to leave at each worker whose jail is sick.

    A worker that is drained for it keeps the words that Slurm shows; one that is not is asked.
    """
    found = operator.stores.sick_pods((nodeset.namespace, nodeset.spec.cluster))
    sick = [pod for pod in found if pod.metadata.labels.get(labels.NODESET) == nodeset.name]
    if not sick:
        return seen
    mute = [pod for pod in sick if not _known(seen, _index(pod))][:_ASKED]
    words = await asyncio.gather(*(operator.ask_jail(pod.status.pod_ip) for pod in mute))
    asked = {_index(pod): said for pod, said in zip(mute, words, strict=True)}
    workers = dict(seen.pods)
    for index in map(_index, sick):
        why = _known(seen, index) or asked.get(index, _GENERAL)
        if index in workers:
            workers[index] = _leaving(workers[index], why)
    return replace(seen, pods=workers, calm=seen.calm - set(map(_index, sick)))


def _leaving(worker: WorkerPod, why: str) -> WorkerPod:
    return replace(worker, leave=why.removeprefix(REASON_PREFIX))


def _known(seen: Seen, index: int) -> str:
    """What was told of it already: Slurm's reason, or the drain that an administrator took back."""
    node, worker = seen.node(index), seen.pods.get(index)
    said = (node.reason if node else "", worker.noted if worker else "")
    return next((each for each in said if each.startswith(JAIL)), "")


def _index(pod: Pod) -> int:
    index = pod.metadata.labels.get(labels.INDEX, "")
    return int(index) if index.isdecimal() else -1
