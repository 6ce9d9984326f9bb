"""The schema of the values of the chart slurm-cluster: the specs of SlurmCluster and NodeSet, so that no second vocabulary exists.

Helm validates values with it before it renders, and editors complete from it. It is plain JSON Schema, without Kubernetes' extensions. It refuses
unknown fields, because Helm would pass on a misspelt field, which the API server then removes silently.
"""

import json
from pathlib import Path
from typing import Any

from soperator.api.base import DNS_LABEL
from soperator.crdgen.columns import CLUSTER, NODESET
from soperator.crdgen.schema import Schema, structural

PATH = Path("charts/slurm-cluster/values.schema.json")


def values_schema() -> Schema:
    """Return the schema of the chart's values."""
    node_set = _plain(structural(NODESET.spec))
    del node_set["properties"]["clusterRef"]
    node_set["required"] = [name for name in node_set.get("required", []) if name != "clusterRef"]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart slurm-cluster",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "name": {
                "description": "Name of the SlurmCluster. Empty: the name of the release.",
                "type": "string",
                "maxLength": 30,
                "pattern": "^([a-z]([-a-z0-9]*[a-z0-9])?)?$",
            },
            "cluster": _plain(structural(CLUSTER.spec)) | {"description": "The spec of the SlurmCluster."},
            "nodeSets": {
                "description": "The specs of NodeSets by name, without `clusterRef`.",
                "type": "object",
                "propertyNames": {"pattern": DNS_LABEL, "maxLength": 40},
                "additionalProperties": node_set,
            },
            "test": {
                "description": "The test of the release, `helm test`.",
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "image": {
                        "description": "Image of the operator, which the test runs. Empty: there is no test.",
                        "type": "string",
                    }
                },
            },
            "global": {"type": "object"},
        },
    }


def text() -> str:
    """Return the schema as JSON, the same text for the same models."""
    return json.dumps(values_schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _plain(schema: Schema) -> Schema:
    """Return the structural schema without Kubernetes' extensions; a map that lists its fields accepts no others."""
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            out[key] = {name: _plain(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = _plain(value)
        elif not key.startswith("x-kubernetes-"):
            out[key] = value
    if out.get("type") == "object" and not schema.get("x-kubernetes-preserve-unknown-fields"):
        out.setdefault("additionalProperties", False)
    return out
