"""Finds what a rollout changes: compares the current template with one worker whose template is outdated, once per pair of templates."""

from dataclasses import replace

import msgspec

from soperator.kube import kinds
from soperator.kube.errors import KubeError
from soperator.kube.objects import WholePod
from soperator.policy.workers.types import WorkerSnapshot
from soperator.reconcile.cache.per_object import Slot, per_object
from soperator.reconcile.context import Operator
from soperator.render.parts import names
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.worker import pod, template_difference

#: By a NodeSet: the template of an old pod, the current one, and the first difference between them.
_CHANGES: Slot[str, tuple[str, str, str]] = per_object("what a rollout changes")


async def with_change(
    operator: Operator, cluster: Cluster, nodeset: NodeSet, uid: str, seen: WorkerSnapshot
) -> WorkerSnapshot:
    """Return the snapshot, with the first difference between the template of an old pod and the current one.

    The difference is read once per pair of templates, because it costs a request.
    """
    if not seen.template:
        return seen
    old = next((each for each in seen.pods.values() if each.template not in ("", seen.template)), None)
    if old is None:
        operator.memory(_CHANGES).pop(uid, None)
        return seen
    known = operator.memory(_CHANGES).get(uid)
    if known is None or known[:2] != (old.template, seen.template):
        found = await _first_difference(operator, cluster, nodeset, old.index)
        if found is None:
            return seen
        known = operator.memory(_CHANGES)[uid] = (old.template, seen.template, found)
    return replace(seen, change=known[2])


async def _first_difference(operator: Operator, cluster: Cluster, nodeset: NodeSet, index: int) -> str | None:
    """Return the difference between the worker's pod and the current template; None if the pod cannot be read."""
    name = names.worker_pod(cluster.name, nodeset.name, index)
    try:
        found = await operator.api.get(kinds.POD, WholePod, nodeset.namespace, name)
    except KubeError:
        return None
    meta = {"labels": found.metadata.labels, "annotations": found.metadata.annotations}
    old = {"metadata": meta, "spec": msgspec.json.decode(found.spec)}
    return template_difference.first_difference(old, pod.render_worker(cluster, nodeset, index, operator.defaults))
