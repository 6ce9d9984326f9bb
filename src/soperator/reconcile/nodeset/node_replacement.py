"""Replaces a faulty machine: cordons its Node, annotates it with the evidence, then deletes its worker's pod, which is created elsewhere.

The order matters: a pod that is deleted first could return to the same machine. All steps are repeated if the operator ends in between.
"""

import json
from datetime import UTC, datetime

from soperator.kube import kinds
from soperator.kube.errors import KubeError, NotFound
from soperator.policy.drain_reasons import stamp
from soperator.policy.health.replacement import ReplaceNode
from soperator.policy.workers.types import Delete, WorkerSnapshot
from soperator.reconcile.nodeset.actions import Workers
from soperator.render.parts import labels, names
from soperator.runtime.status import timestamp


async def cordon(workers: Workers, move: ReplaceNode) -> str:
    """Cordon the Node of a worker and annotate it with the evidence; return a message about what failed."""
    try:
        await _cordon(workers, move)
    except NotFound:
        pass  # the Node no longer exists
    except KubeError as error:
        remedy = "; set the chart's value replaceMachines to true" if getattr(error, "status", 0) == 403 else ""
        return f"Node {move.machine} is not replaced: {error}{remedy}"
    return ""


async def leave(workers: Workers, move: ReplaceNode, seen: WorkerSnapshot) -> str:
    """Delete the worker on a cordoned Node; return a message about what failed."""
    why = f"check {move.check}: {move.why}; the worker leaves Node {move.machine}, which is cordoned"
    return await workers.take([Delete(move.index, why)], seen)


async def _cordon(workers: Workers, move: ReplaceNode) -> None:
    now = workers.operator.wall()
    evidence = {
        "check": move.check,
        "says": move.why,
        "at": stamp(now),
        "node": names.slurm_node(workers.nodeset.name, move.index),
        "clusterRef": {"name": f"{workers.cluster.namespace}/{workers.cluster.name}"},
    }
    meta = {"name": move.machine, "annotations": {labels.UNHEALTHY: json.dumps(evidence)}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
    api, condition = workers.operator.api, workers.cluster.spec.health.replace.condition
    await api.apply(kinds.NODE, {**node, "spec": {"unschedulable": True}})
    if condition:
        moment = timestamp(datetime.fromtimestamp(now, UTC))
        said = {"reason": "CheckFailed", "message": f"{move.check}: {move.why}", "lastTransitionTime": moment}
        status = {"conditions": [{"type": condition, "status": "True", "lastHeartbeatTime": moment, **said}]}
        await api.apply_status(kinds.NODE, {**node, "metadata": {"name": move.machine}, "status": status})
