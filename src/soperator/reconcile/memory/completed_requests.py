"""The completed requests of a SlurmCluster: a spec with a value that returned counts as one without that request (`policy/completed_requests`).

The lists are part of the cluster's stored state, so a lost status does not make a former value new.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from soperator.kube.views import Custom
from soperator.policy.completed_requests import is_repeated, repeated_message, with_completed
from soperator.reconcile.context import Operator
from soperator.reconcile.memory import cluster_memory
from soperator.reconcile.memory.seal import Json
from soperator.render.parts.model import Cluster
from soperator.runtime.status import ReportedCondition

FIELD = "completedRequests"
#: The fields of the requests, and the conditions that report on them.
_PATHS = {"refill": "spec.jail.refill.request", "keys": "spec.auth.rotateRequest", "upgrade": "spec.upgrade.request"}
_CONDITIONS = {"JailReady": "refill", "KeysSettled": "keys", "UpToDate": "upgrade"}


def without_repeated(operator: Operator, obj: Custom, cluster: Cluster) -> tuple[Cluster, Mapping[str, str]]:
    """Return the cluster without the requests that were completed before the last one, and a message for each of those."""
    completed, spec = _completed(cluster_memory.of_cluster(operator, obj)), cluster.spec
    values = {
        "refill": spec.jail.refill.request,
        "keys": spec.auth.rotate_request,
        "upgrade": spec.upgrade.request,
    }
    repeated = {name: value for name, value in values.items() if is_repeated(value, completed.get(name, ()))}
    if not repeated:
        return cluster, {}
    changes = {
        "refill": ("jail", {"refill": spec.jail.refill.model_copy(update={"request": ""})}),
        "keys": ("auth", {"rotate_request": ""}),
        "upgrade": ("upgrade", {"request": ""}),
    }
    parts = {part: getattr(spec, part).model_copy(update=update) for part, update in map(changes.__getitem__, repeated)}
    messages = {name: repeated_message(_PATHS[name], value) for name, value in repeated.items()}
    return replace(cluster, spec=spec.model_copy(update=parts)), messages


def status_field(memory: Json, fields: Json) -> dict[str, Sequence[str]]:
    """Return the completed requests, the newest last, after a pass that reports these fields."""
    last = {
        "refill": fields.get("refilled", ""),
        "keys": fields.get("keys", ""),
        "upgrade": fields.get("images", {}).get("request", ""),
    }
    completed = _completed(memory)
    found = {name: with_completed(completed.get(name, ()), value) for name, value in last.items()}
    return {name: values for name, values in found.items() if values}


def with_messages(conditions: Sequence[ReportedCondition], repeated: Mapping[str, str]) -> list[ReportedCondition]:
    """Return the conditions; those without a fault say which request is not carried out again."""
    return [
        replace(each, message=repeated[_CONDITIONS[each.type]])
        if each.status == "True" and not each.message and _CONDITIONS.get(each.type) in repeated
        else each
        for each in conditions
    ]


def _completed(memory: Json) -> Mapping[str, Sequence[str]]:
    found: Mapping[str, Sequence[str]] = memory.get(FIELD) or {}
    return found
