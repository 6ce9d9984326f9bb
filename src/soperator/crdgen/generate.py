"""The CustomResourceDefinitions, computed from the models.

They are checked in as the chart soperator-crds, so that a reviewer sees the effect of a change of a model on the API. `make crds` writes them, and a
test compares them.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from soperator.api.base import GROUP, VERSION
from soperator.api.validation.cel_rules import NAMES
from soperator.crdgen.columns import ALL, Column, Definition
from soperator.crdgen.schema import Schema, structural, validations

CHART = Path("charts/soperator-crds/templates")

_SCALE = MappingProxyType(
    {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
)


def definition_of(kind: Definition) -> Schema:
    """Return one CustomResourceDefinition as a Kubernetes object."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "shortNames": list(kind.short_names),
                "categories": ["slurm"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}} | ({"scale": dict(_SCALE)} if kind.scalable else {}),
                    "additionalPrinterColumns": [_column(column) for column in kind.columns],
                    "schema": {"openAPIV3Schema": _root(kind)},
                }
            ],
        },
    }


def text_of(kind: Definition) -> str:
    """Return one CustomResourceDefinition as YAML, the same text for the same models."""
    header = f"# {kind.kind}, generated from src/soperator/api by `make crds`.\n"
    return header + yaml.safe_dump(definition_of(kind), sort_keys=True, width=10000, allow_unicode=True)


def files() -> Mapping[str, str]:
    """Return the chart's templates by file name."""
    return {f"{kind.plural}.yaml": text_of(kind) for kind in ALL}


def write(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by file name into `folder`, create the folder if it is missing, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def _column(column: Column) -> Schema:
    out: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        out["description"] = column.description
    return out | ({"priority": column.priority} if column.priority else {})


def _root(kind: Definition) -> Schema:
    spec = structural(kind.spec)
    has_required = "required" in spec
    return {
        "type": "object",
        "description": kind.description,
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec | ({} if has_required else {"default": {}}),
            # Until the operator's first pass, kstatus would take an object without a status for a ready one.
            "status": structural(kind.status) | {"default": {"observedGeneration": -1}},
        },
        "x-kubernetes-validations": validations(NAMES[kind.kind]),
    } | ({"required": ["spec"]} if has_required else {})
