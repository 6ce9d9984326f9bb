"""Deletes a HealthCheck: its jobs end and its drains are undone, then the finalizer is removed.

A finalizer keeps the object until that is done, because its jobs and drains are remembered only while it exists. The reconcilers of NodeSets undo the
drains, as those of a check that has ended. The deletion waits for at most `PATIENCE` seconds, so that an unreachable Slurm, or a node that another
reason keeps drained, does not block it. It does not wait for a cluster that no longer exists.
"""

import asyncio

from soperator.kube import kinds
from soperator.kube.views import Custom
from soperator.policy import drain_reasons
from soperator.policy.healthcheck import status_codec as status_codec
from soperator.reconcile import finalizers
from soperator.reconcile.cache.decode import named
from soperator.reconcile.context import Operator
from soperator.reconcile.memory import object_memory
from soperator.render.parts import labels
from soperator.runtime.controller import PassOutcome
from soperator.slurm import check_job
from soperator.slurmrest.client import SlurmError

PATIENCE = 120.0
_SOON = 2.0


async def finalize(operator: Operator, obj: Custom, waited: float) -> PassOutcome:
    """Reconcile a HealthCheck that is being deleted, `waited` seconds after the first such pass."""
    if not finalizers.has_finalizer(obj):
        return PassOutcome("it is being deleted")
    left = await _left(operator, obj, asyncio.get_running_loop().time() - waited)
    if left and waited < PATIENCE:
        return PassOutcome(f"it is being deleted; {left}", _SOON)
    await object_memory.forget(operator, kinds.HEALTHCHECK, obj)
    await finalizers.remove_finalizer(operator, kinds.HEALTHCHECK, obj)
    return PassOutcome(f"it is let go{': ' if left else ''}{left}")


async def _left(operator: Operator, obj: Custom, since: float) -> str:
    """Cancel the check's jobs, and return a message about what is left; empty if nothing is left.

    `since` is when the deletion was first observed, after which no job is submitted.
    """
    key = (obj.metadata.namespace, named(obj))
    if operator.stores.clusters.get(*key) is None:
        return ""
    client, nodes = operator.slurm.client(key), operator.slurm.nodes(key)
    if client is None or nodes is None:
        return operator.slurm.trouble(key) or "Slurm has not answered yet"
    name = obj.metadata.name
    try:
        listed = [each for each in await client.runs(check_job.job_name(name), since) if not each.is_over]
        found = [await client.run(each.number) for each in listed if check_job.is_of(each, obj.metadata.uid)]
        alive = [each for each in found if each is not None and not each.is_over]
        for each in alive:
            await client.cancel(each.number)
    except SlurmError as error:
        return str(error)
    mark = drain_reasons.for_check(name, "")
    memory = await object_memory.recall(operator, kinds.HEALTHCHECK, obj)
    known = [nodes[node] for node in status_codec.read_found(name, memory).failures if node in nodes]
    ours = [each for each in known if each.is_draining and each.our_reason.startswith(mark)]
    out = [each.name for each in ours if each.report is None or not each.report.in_state("failing", "recovering")]
    pods = operator.stores.role_pods(key, "worker")
    noted = [each for each in pods if each.metadata.annotations.get(labels.DRAINED, "").startswith(mark)]
    said = [f"{len(alive)} of its jobs have not ended yet"] if alive else []
    return "; ".join([*said, *([f"{max(len(out), len(noted))} nodes are still drained by it"] if out or noted else [])])
