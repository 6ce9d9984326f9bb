"""Converts our kinds from the API server's JSON to the renderer's values.

No function here raises. A spec that the schema would refuse (because of an older CRD, or an object that is older than a rule) becomes a list of
problems with the path of each field.
"""

from typing import TypeVar

import msgspec
from pydantic import ValidationError

from soperator.api.associations import SlurmAccountSpec, SlurmQOSSpec
from soperator.api.backup import SlurmBackupSpec
from soperator.api.base import Model, Problem
from soperator.api.healthcheck import HealthCheckSpec
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.partial import as_far_as_readable, texts
from soperator.kube.views import Custom
from soperator.render.parts.model import Backup, Cluster, HealthCheck, NodeSet

S = TypeVar("S", bound=Model)
#: The most bytes of a spec that is decoded, which takes many times its size in memory; etcd stores up to three times this.
SPEC_MOST = 512 * 1024


def named(obj: Custom) -> str:
    """Return the cluster that a NodeSet or another object refers to; empty if the spec is malformed."""
    reference = msgspec.json.decode(obj.spec).get("clusterRef", {})
    name = reference.get("name", "") if isinstance(reference, dict) else ""
    return name if isinstance(name, str) else ""


def field(obj: Custom, name: str) -> str:
    """One text field of a spec; empty if it is absent."""
    value = msgspec.json.decode(obj.spec).get(name, "")
    return value if isinstance(value, str) else ""


def read_cluster(obj: Custom) -> Cluster | list[Problem]:
    """Return the SlurmCluster, or its problems."""
    spec = _spec(obj, SlurmClusterSpec, "SlurmCluster")
    if isinstance(spec, list):
        return spec
    return Cluster(obj.metadata.namespace, obj.metadata.name, obj.metadata.uid, spec)


def read_nodeset(obj: Custom) -> NodeSet | list[Problem]:
    """Return the NodeSet, or its problems."""
    spec = _spec(obj, NodeSetSpec, "NodeSet")
    if isinstance(spec, list):
        return spec
    return NodeSet(obj.metadata.namespace, obj.metadata.name, obj.metadata.uid, spec)


def partial_cluster(obj: Custom) -> SlurmClusterSpec:
    """Return the readable part of a SlurmCluster's spec. Nothing is rendered from it, but the names in it count as taken."""
    return as_far_as_readable(SlurmClusterSpec, bytes(obj.spec)) or SlurmClusterSpec()


def partial_nodeset(obj: Custom) -> NodeSet | None:
    """Return the readable part of a NodeSet; None if not even its cluster can be read."""
    spec = as_far_as_readable(NodeSetSpec, bytes(obj.spec))
    return NodeSet(obj.metadata.namespace, obj.metadata.name, obj.metadata.uid, spec) if spec else None


def may_be_claims(obj: Custom) -> frozenset[str]:
    """Return every text in a SlurmCluster that may name the claim of its state. All are returned because a later release may use another field."""
    return frozenset(texts(msgspec.json.decode(obj.spec).get("controller")))


def read_healthcheck(obj: Custom) -> HealthCheck | list[Problem]:
    """Return the HealthCheck, or its problems."""
    spec = _spec(obj, HealthCheckSpec, "HealthCheck")
    if isinstance(spec, list):
        return spec
    meta = obj.metadata
    since = meta.creation_timestamp.timestamp() if meta.creation_timestamp else 0.0
    return HealthCheck(meta.namespace, meta.name, meta.uid, spec, since)


def read_account(obj: Custom) -> SlurmAccountSpec | list[Problem]:
    """Return the spec of the SlurmAccount, or its problems."""
    return _spec(obj, SlurmAccountSpec, "SlurmAccount")


def read_qos(obj: Custom) -> SlurmQOSSpec | list[Problem]:
    """Return the spec of the SlurmQOS, or its problems."""
    return _spec(obj, SlurmQOSSpec, "SlurmQOS")


def read_backup(obj: Custom) -> Backup | list[Problem]:
    """Return the SlurmBackup, or its problems."""
    spec = _spec(obj, SlurmBackupSpec, "SlurmBackup")
    if isinstance(spec, list):
        return spec
    return Backup(obj.metadata.namespace, obj.metadata.name, obj.metadata.uid, spec)


def _spec(obj: Custom, model: type[S], kind: str) -> S | list[Problem]:
    if (size := len(bytes(obj.spec))) > SPEC_MOST:
        remedy = f"it may have {SPEC_MOST} bytes: move large texts to ConfigMaps (config.files), or split the object"
        return [Problem("spec", f"{size} bytes", remedy, f"{kind} {obj.metadata.name}")]
    try:
        return model.model_validate_json(bytes(obj.spec))
    except ValidationError as error:
        if (
            error.errors(include_input=False)[0]["type"] == "json_invalid"
        ):  # the API server takes nothing else that is no JSON to us
            return [
                Problem(
                    "spec",
                    "",
                    "it is nested too deeply to be read: remove unneeded levels",
                    f"{kind} {obj.metadata.name}",
                )
            ]
        return [
            _problem(each["loc"], each["input"], each["msg"], f"{kind} {obj.metadata.name}") for each in error.errors()
        ]


def _problem(where: tuple[int | str, ...], value: object, remedy: str, subject: str) -> Problem:
    return Problem(".".join(["spec", *map(str, where)]), str(value)[:80], remedy, subject)
