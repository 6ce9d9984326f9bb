"""Parts that the roles of the original share: where their pods run, and the size of their containers."""

from typing import Any

from soperator.importers.parts.fields import ForeignFields
from soperator.importers.parts.report import UnreadableInputError

_MAPS = ("nodeSelector", "affinity")


def scheduling(fields: ForeignFields, role: str, target: str, used: set[str]) -> dict[str, Any]:
    """Return the scheduling of a role from the node filter that it names; `used` gets the name of the filter."""
    name = fields.peek(f"{role}.k8sNodeFilterName", str)
    if not name:
        return {}
    for number in fields.indexes("k8sNodeFilters"):
        here = f"k8sNodeFilters[{number}]"
        if fields.peek(f"{here}.name", str) == name:
            fields.carried(f"{role}.k8sNodeFilterName", str, target)
            used.add(name)
            maps = {key: fields.peek(f"{here}.{key}", dict) for key in _MAPS}
            return {**maps, "tolerations": fields.peek(f"{here}.tolerations", list)}
    fields.left(f"{role}.k8sNodeFilterName", "no filter among k8sNodeFilters has this name")
    return {}


def report_filters(fields: ForeignFields, used: set[str]) -> None:
    """Report the node filters that a role uses."""
    for number in fields.indexes("k8sNodeFilters"):
        here = f"k8sNodeFilters[{number}]"
        if fields.peek(f"{here}.name", str) not in used:
            continue
        fields.ours(f"{here}.name", "its rules are those of the roles that name it")
        for key in _MAPS:
            fields.carried(f"{here}.{key}", dict, f"scheduling.{key} of the roles that name the filter")
        fields.carried(f"{here}.tolerations", list, "scheduling.tolerations of the roles that name the filter")


def resources(fields: ForeignFields, path: str, target: str) -> dict[str, Any]:
    """Return the resources of a container: the original's are both requests and limits."""
    return {"limits": fields.quantities(path, f"{target}.limits")}


def worker_size(fields: ForeignFields, path: str) -> dict[str, Any]:
    """Return resources, gpu and rdma of a NodeSet from the resources of slurmd; raises UnreadableInputError for a count that is no number."""
    limits = fields.quantities(path, "spec.resources.limits, spec.gpu and spec.rdma of the NodeSet")
    made: dict[str, Any] = {"gpu": {}, "rdma": {"resources": {}}}
    for name, value in list(limits.items()):
        vendor = {"nvidia.com/gpu": "nvidia", "amd.com/gpu": "amd"}.get(name, "")
        if vendor:
            count = fields_number(fields, f"{path}.{name}", limits.pop(name))
            made["gpu"] = {"vendor": vendor, "count": count} if count else {}
        elif name.startswith("rdma/"):
            made["rdma"]["resources"][name] = limits.pop(name)
        else:
            limits[name] = value
    return {"resources": {"limits": limits}, **made}


def fields_number(fields: ForeignFields, path: str, text: str) -> int:
    """Return a whole number that is written as a text; raises UnreadableInputError for another text."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UnreadableInputError(f"{fields.place}: {path}: {text[:80]}: it is not a whole number: correct it")
    return int(text)
