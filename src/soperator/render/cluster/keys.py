"""Secrets with keys. The operator creates them once, rewrites them in a requested rotation, and restores them from a copy.

policy/cluster/key_rotation and policy/cluster/keys decide about them.

Key material is an argument, so that the functions stay pure.
"""

import base64
import hashlib
from collections.abc import Mapping

from soperator.render.cluster import database, database_connection
from soperator.render.parts import labels, names, pod
from soperator.render.parts.model import Cluster, Object
from soperator.slurm.keys import (
    KeyContent,
    RotationRecord,
    Stage,
    Version,
)

REST_FILE = "jwt_hs256.key"
_HOST_KEYS = ("ssh_host_ed25519_key", "ssh_host_ed25519_key.pub")
#: Every file of a key that a daemon reads if it exists.
FILES = frozenset({"slurm.key", "slurm.jwks", "munge.key", REST_FILE, *_HOST_KEYS, database_connection.PASSWORD})
_NOTES = (labels.ROTATION, labels.STAGE, labels.SINCE, labels.DIGEST)


def wanted_files(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """Return the Secrets that a cluster needs, with the files that each must have."""
    made = (
        {names.database_password(cluster.name): (database_connection.PASSWORD,)}
        if database.has_password(cluster.spec.accounting)
        else {}
    )
    return {
        **made,
        names.auth_key(cluster.name): ("munge.key" if cluster.spec.auth.type == "munge" else "slurm.key",),
        names.jwt_key(cluster.name): (REST_FILE,),
        names.host_keys(cluster.name): _HOST_KEYS,
    }


def auth_file(cluster: Cluster) -> str:
    """Return the file of a rotated key that daemons read."""
    return "munge.key" if cluster.spec.auth.type == "munge" else "slurm.jwks"


def new(cluster: Cluster, name: str, files: Mapping[str, bytes]) -> KeyContent:
    """Return the content of a Secret with new files. New keys need no rotation, and the password of the database has none."""
    is_password = name == names.database_password(cluster.name)
    noted = (
        {labels.ROTATION: cluster.spec.auth.rotate_request}
        if cluster.spec.auth.rotate_request and not is_password
        else {}
    )
    return KeyContent(files, noted)


def render_secret(cluster: Cluster, name: str, content: Mapping[str, bytes]) -> Object:
    """Return a Secret with new files."""
    return render_held(cluster, name, new(cluster, name, content)) | {"type": "Opaque"}


def render_held(cluster: Cluster, name: str, held: KeyContent) -> Object:
    """Return a Secret with its content, owned by the cluster.

    Keys that must be kept or that a person provided have no owner; nor has a password, which stays with its database.
    """
    bare: Object = {"name": name, "namespace": cluster.namespace, "annotations": {labels.BROUGHT_FOR: cluster.name}}
    meta = bare if held.is_brought else _metadata(cluster, name, name)
    meta["annotations"] = {**meta.get("annotations", {}), **held.notes}
    return _secret({key: value for key, value in meta.items() if value}, held.files)


def render_kept(cluster: Cluster, name: str, held: KeyContent) -> Object:
    """Return the copy from which the operator restores the Secret of this name; it has a hash of its content, so that the operator detects an
    edit.
    """
    meta = _metadata(cluster, names.kept(name), name)
    brought = {labels.BROUGHT: "true"} if held.is_brought else {}
    meta["annotations"] = {**meta.get("annotations", {}), **held.notes, **brought, labels.CHECKSUM: held.checksum}
    return _secret(meta, held.files)


def has_owner(cluster: Cluster, name: str) -> bool:
    """Return whether a Secret of the operator is deleted with its cluster."""
    return not (cluster.spec.auth.keep_keys or name == names.database_password(cluster.name))


def read_held(annotations: Mapping[str, str], data: Mapping[str, bytes]) -> KeyContent:
    """Return the part of a Secret's content that the operator manages."""
    files = {name: content for name, content in data.items() if name in FILES}
    notes = {key: annotations[key] for key in _NOTES if key in annotations}
    return KeyContent(files, notes, annotations.get(labels.BROUGHT) == "true")


def version(held: KeyContent) -> Version:
    """Return the identity of keys, from their records."""
    record = read_record(held.notes)
    return Version(held.digest, record.request, record.stage)


def with_record(held: KeyContent, record: RotationRecord) -> KeyContent:
    """Return a Secret with the same files and the record of another stage."""
    file = next((each for each in ("slurm.jwks", "munge.key", REST_FILE) if each in held.files), "")
    return KeyContent(
        held.files, rotation_annotations(record, held.files[file]) if file and record.request else {}, held.is_brought
    )


def rotation_annotations(record: RotationRecord, content: bytes) -> dict[str, str]:
    """Return the annotations of a rotation on a Secret: its stage, and the digest of the file that daemons read."""
    return {
        labels.ROTATION: record.request,
        labels.STAGE: record.stage,
        labels.SINCE: f"{record.since:.0f}",
        labels.DIGEST: hashlib.sha256(content).hexdigest(),
    }


def _metadata(cluster: Cluster, name: str, of: str) -> Object:
    return pod.metadata(cluster, name, "keys", owned=has_owner(cluster, of))


def _secret(meta: Object, files: Mapping[str, bytes]) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": _data(files)}


def read_record(annotations: Mapping[str, str]) -> RotationRecord:
    """Return the record of a rotation on a Secret; empty if its keys were never rotated."""
    stage: Stage = annotations.get(labels.STAGE, "")  # type: ignore[assignment]
    since = annotations.get(labels.SINCE, "0")
    return RotationRecord(annotations.get(labels.ROTATION, ""), stage, float(since) if since.isdecimal() else 0.0)


def _data(content: Mapping[str, bytes]) -> dict[str, str]:
    return {file: base64.b64encode(value).decode() for file, value in content.items()}
