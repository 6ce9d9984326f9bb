"""Volumes of the original: sources by name, claims by template, and mounts in the jail."""

from collections.abc import Mapping
from typing import Any

from soperator.importers.parts.fields import ForeignFields
from soperator.importers.parts.submounts import with_source

Sources = Mapping[str, tuple[int, dict[str, Any]]]

_JAIL = (
    "the original has the root at the top of the claim, and this operator in the folder root: a new claim is filled from the image; "
    "copy users, homes and software into it"
)
_STATE = "slurmctld cannot read the state of a newer Slurm, so the cluster begins with an empty queue and a new claim"


def named_sources(fields: ForeignFields) -> Sources:
    """Return the volume sources of a SlurmCluster by name, each with its index."""
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for number in fields.indexes("volumeSources"):
        source = fields.peek(f"volumeSources[{number}]", dict) or {}
        found[str(source.get("name", ""))] = (number, {key: value for key, value in source.items() if key != "name"})
    return found


def leave_jail(fields: ForeignFields, path: str) -> None:
    """Report the volume of the jail."""
    fields.left(path, _JAIL)


def new_claim(fields: ForeignFields, path: str, target: str) -> dict[str, Any]:
    """Return size and class of a claim from a template; empty for an existing volume, which is reported."""
    template = f"{path}.volumeClaimTemplateSpec"
    size = fields.peek(f"{template}.resources.requests", dict) or {}
    made: dict[str, Any] = {}
    if "storage" in size:
        made["size"] = fields.carried(f"{template}.resources.requests.storage", str, f"{target}.size")
    if storage_class := fields.carried(f"{template}.storageClassName", str, f"{target}.storageClassName"):
        made["storageClassName"] = storage_class
    fields.ours(template, "the operator chooses the modes of the claims that it creates")
    fields.left(path, _STATE)
    return made


def submounts(fields: ForeignFields, path: str, sources: Sources, used: set[str]) -> list[dict[str, Any]]:
    """Return the mounts in the jail of one role, and report each of their fields; `used` gets the names of the sources."""
    found = []
    for number in fields.indexes(path):
        here = f"{path}[{number}]"
        mount = _mount(fields, here)
        name = fields.peek(f"{here}.volumeSourceName", str)
        if name:
            fields.carried(f"{here}.volumeSourceName", str, "the source of a submount")
            used.add(name)
        source = (
            sources.get(name or "", (0, {}))[1]
            or fields.carried(f"{here}.volumeSource", dict, "the source of a submount")
            or {}
        )
        template = fields.peek(f"{here}.volumeClaimTemplateSpec", dict)
        if template and not source:
            reason = "now a volume of kind ephemeral: each pod gets a new claim, which ends with the pod"
            fields.check(f"{here}.volumeClaimTemplateSpec", dict, reason)
            source = {"ephemeral": {"volumeClaimTemplate": {"spec": template}}}
        if not source:
            fields.report.left(fields.place, f"spec.{here}", "its volume is not among the objects: add it to submounts")
            continue
        volume = with_source(source, mount, fields.report, fields.where(here))
        found.append({**mount, **volume})
    return found


def _mount(fields: ForeignFields, here: str) -> dict[str, Any]:
    mount: dict[str, Any] = {"path": (fields.carried(f"{here}.mountPath", str, "path of a submount") or "").rstrip("/")}
    fields.ours(f"{here}.name", "a submount has no name")
    if sub_path := fields.carried(f"{here}.subPath", str, "subPath of a submount"):
        mount["subPath"] = sub_path
    if fields.carried(f"{here}.readOnly", bool, "readOnly of a submount"):
        mount["readOnly"] = True
    return mount


def report_sources(fields: ForeignFields, sources: Sources, used: set[str]) -> None:
    """Report the sources: those of submounts, and the others, which nothing uses here."""
    for name, (number, _) in sources.items():
        path = f"volumeSources[{number}]"
        if name in used:
            fields.carried(path, dict, "the source of a submount")
        else:
            fields.left(path, "nothing that is carried over uses it")
