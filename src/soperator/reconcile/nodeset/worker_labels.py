"""Restores the labels by which a worker's pod is found.

Everything about a worker depends on them: the PodDisruptionBudget that keeps it from eviction, the NetworkPolicies, the counts of its NodeSet and its
cluster, key rotations, and the wait for its jobs when its cluster is deleted. All users who may edit pods can edit them. The owner and
the host name of a pod identify its worker without any label; the host name is immutable.

If an admission policy that protects labels refuses such a write, an Event reports it and the pass continues, because it must still drain and
replace workers.

A pod without the label `app.kubernetes.io/managed-by` is in no cache. Its name is then missing, and the creation of a new pod of this name restores
the label (`actions`).
"""

import asyncio

from soperator.kube import kinds
from soperator.kube.errors import ApiError, Conflict, NotFound, TooBusy, explain
from soperator.kube.views import Custom, ObjectMeta, Pod
from soperator.reconcile import pod_status
from soperator.reconcile.cache.decode import named
from soperator.reconcile.cache.informers import MISLABELLED
from soperator.reconcile.context import Operator
from soperator.render.parts import labels, names
from soperator.runtime.events import EventNote, Regarding

#: The field manager of restored labels: the manager of the other fields would give them up at its next write of a pod.
MANAGER = "soperator-labels"
_AT_ONCE = 16


def wanted(obj: Custom, pod: Pod) -> dict[str, str]:
    """Return the labels that identify a pod of a NodeSet; empty for a pod that is not a worker by its name and its host name."""
    name, cluster = obj.metadata.name, named(obj)
    index = pod_status.index_of(pod, name)
    if index is None or pod.metadata.name != names.worker_pod(cluster, name, index):
        return {}
    return {**labels.worker(cluster, name), labels.INDEX: str(index)}


async def restore(operator: Operator, obj: Custom) -> None:
    """Restore the labels of all pods of a NodeSet that somebody has edited."""
    found = [
        (each, marks) for each in operator.stores.pods.by(MISLABELLED, obj.metadata.uid) if (marks := wanted(obj, each))
    ]
    slots = asyncio.Semaphore(_AT_ONCE)
    await asyncio.gather(*(_restore(operator, obj, slots, each, marks) for each, marks in found))


async def write(operator: Operator, meta: ObjectMeta, marks: dict[str, str]) -> None:
    """Write these labels to the pod that was read; raises Conflict or NotFound if another pod has replaced that pod."""
    where = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "labels": marks}
    await operator.api.apply(kinds.POD, {"apiVersion": "v1", "kind": "Pod", "metadata": where}, manager=MANAGER)


async def _restore(operator: Operator, obj: Custom, slots: asyncio.Semaphore, pod: Pod, marks: dict[str, str]) -> None:
    lost = ", ".join(sorted(name for name, value in marks.items() if pod.metadata.labels.get(name) != value))
    name = pod.metadata.name
    reason, text = "LabelsRestored", f"pod {name} has its labels again: {lost} had been edited"
    async with slots:
        try:
            await write(operator, pod.metadata, marks)
        except (Conflict, NotFound):
            return
        except TooBusy:
            raise
        except ApiError as error:
            refusal = explain(error, f"pod {name}")
            reason, text = "LabelsNotRestored", f"pod {name} has edited labels, {lost}: {refusal}"
    note = EventNote("Warning", reason, text, "Restore")
    operator.recorder.emit(Regarding(kinds.NODESET, obj.metadata), note)
