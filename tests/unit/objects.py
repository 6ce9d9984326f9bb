"""Objects as dicts, for tests of the layers that speak to Kubernetes."""

from typing import Any

from soperator.kube.kinds import Kind


def make(kind: Kind, name: str, namespace: str = "ns", **fields: Any) -> dict[str, Any]:
    """Return an object; `labels`, `annotations` and `finalizers` go into its metadata, the rest beside it."""
    inside: dict[str, Any] = {key: fields.pop(key) for key in ("labels", "annotations", "finalizers") if key in fields}
    place = {"namespace": namespace} if kind.namespaced else {}
    meta: dict[str, Any] = {"name": name, **place, **inside}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **fields}
