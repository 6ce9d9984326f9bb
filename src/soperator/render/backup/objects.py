"""The objects of a cluster in a backup: the fields that a person wrote, without those that the API server adds."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from soperator.api.base import API_VERSION
from soperator.render.parts.model import Object

#: Bytes; a ConfigMap may have 1 MiB.
MOST = 1_000_000
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True)
class SavedObject:
    """One object of our kinds; `spec` is JSON."""

    kind: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: bytes


def objects_text(objects: Iterable[SavedObject]) -> str:
    """Return the objects as a JSON list; each can be applied after a namespace is set."""
    return json.dumps([_object(each) for each in objects], sort_keys=True)


def _object(saved: SavedObject) -> Object:
    kept = {key: text for key, text in saved.annotations.items() if key != _APPLIED}
    meta = {"name": saved.name, "labels": dict(saved.labels), "annotations": kept}
    return {
        "apiVersion": API_VERSION,
        "kind": saved.kind,
        "metadata": {key: value for key, value in meta.items() if value},
        "spec": json.loads(saved.spec),
    }
