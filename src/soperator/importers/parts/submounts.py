"""Submounts from volumes of Kubernetes, and how those of all nodes and of a NodeSet fit together."""

from collections.abc import Mapping, Sequence
from typing import Any

from soperator.importers.parts.fields import ForeignFields
from soperator.importers.parts.report import ImportReport


def with_source(source: Mapping[str, Any], mount: dict[str, Any], report: ImportReport, place: str) -> dict[str, Any]:
    """Return the fields of a submount for a volume source of Kubernetes; a source that is read-only makes `mount` so."""
    claim = source.get("persistentVolumeClaim")
    if isinstance(claim, dict) and claim.get("claimName"):
        if claim.get("readOnly"):
            mount["readOnly"] = True
        return {"claimName": str(claim["claimName"])}
    if mount.pop("subPath", ""):
        report.left(place, "subPath", "a submount has a subPath with a claim only: the whole volume is mounted")
    host = source.get("hostPath")
    if isinstance(host, dict) and host.get("path"):
        if host.get("type"):
            report.left(
                place, f"hostPath.type: {host['type']}"[:120], "a submount has the path only: it must be a folder"
            )
        return {"hostPath": {"path": str(host["path"])}}
    return {"volume": dict(source)}


def own_submounts(
    fields: ForeignFields, mounts: Sequence[dict[str, Any]], shared: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the submounts that are not those of all nodes, and report one that differs from that of all nodes at its path."""
    others = {each["path"]: each for each in shared}
    for each in mounts:
        if others.get(each["path"], each) != each:
            reason = "login nodes have another volume at this path, and all nodes get that one"
            fields.report.left(fields.place, f"submount {each['path']}", reason)
    return [each for each in mounts if each["path"] not in others]
