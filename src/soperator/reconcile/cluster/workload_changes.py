"""Reports what a change of a StatefulSet or Deployment changes in its pods: the first difference in words, in an Event of the SlurmCluster.

Kubernetes replaces these pods itself, so no drain shows the reason. The workload that is about to change is read once, and only then.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from soperator.kube import kinds
from soperator.kube.errors import KubeError
from soperator.kube.objects import WholePod
from soperator.kube.views import Custom
from soperator.policy.cluster.render_record import RenderRecord
from soperator.reconcile.context import Operator
from soperator.render.parts.model import Object
from soperator.render.worker.template_difference import first_difference
from soperator.runtime.apply_ledger import APPLIED
from soperator.runtime.events import EventNote, Regarding

_KINDS = {each.kind: each for each in (kinds.STATEFULSET, kinds.DEPLOYMENT)}


async def differences(operator: Operator, objects: Sequence[Object], note: RenderRecord) -> list[str]:
    """Return a sentence about each workload whose pods the next apply replaces. Never raises."""
    found = [await _difference(operator, each) for each in objects if _is_changed(operator, each, note)]
    return [each for each in found if each]


def emit(operator: Operator, obj: Custom, changes: Sequence[str]) -> None:
    """Emit an Event about each change."""
    for text in changes:
        operator.recorder.emit(
            Regarding(kinds.SLURMCLUSTER, obj.metadata), EventNote("Normal", "Rollout", text, "Update")
        )


def _is_changed(operator: Operator, obj: Object, note: RenderRecord) -> bool:
    """Return whether a workload exists whose template differs from the current one, and from all templates that count as equal."""
    kind, meta = _KINDS.get(obj["kind"]), obj["metadata"]
    live = operator.stores.children[kind].get(meta["namespace"], meta["name"]) if kind else None
    if live is None or live.metadata.deletion_timestamp is not None:
        return False
    name, applied = f"{obj['kind']}/{meta['name']}", live.metadata.annotations.get(APPLIED)
    return applied is not None and applied not in (note.wanted.get(name), *note.same.get(name, ()))


async def _difference(operator: Operator, obj: Object) -> str:
    meta = obj["metadata"]
    try:
        found = await operator.api.get(_KINDS[obj["kind"]], WholePod, meta["namespace"], meta["name"])
    except KubeError:
        return ""
    old: Mapping[str, Any] = msgspec.json.decode(found.spec).get("template", {})
    change = first_difference(old, obj["spec"]["template"])
    return f"{obj['kind']} {meta['name']}: new pod template: {change}" if change else ""
