"""Secrets with keys. They are created once, and rewritten only by a rotation that was asked for (decide/rotation).

The key material comes in as an argument, so that this stays a pure function.
"""

import base64
import hashlib
from collections.abc import Mapping

from soperator.render import database, labels, names, pod, storage
from soperator.render.model import Cluster, Object
from soperator.slurm.keys import Record, Stage

REST_FILE = "jwt_hs256.key"


def wanted_files(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """The Secrets that a cluster needs, with the files that each must hold."""
    made = (
        {names.database_password(cluster.name): (storage.PASSWORD,)}
        if database.has_password(cluster.spec.accounting)
        else {}
    )
    return {
        **made,
        names.auth_key(cluster.name): ("munge.key" if cluster.spec.auth.type == "munge" else "slurm.key",),
        names.jwt_key(cluster.name): (REST_FILE,),
        names.host_keys(cluster.name): ("ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"),
    }


def auth_file(cluster: Cluster) -> str:
    """The file of a rotated key that daemons read."""
    return "munge.key" if cluster.spec.auth.type == "munge" else "slurm.jwks"


def render_secret(cluster: Cluster, name: str, content: Mapping[str, bytes]) -> Object:
    """A Secret with the given files, owned by the cluster unless its keys are to be kept. Keys that are new need no rotation.

    The password of the database stays with the database.
    """
    is_password = name == names.database_password(cluster.name)
    meta = pod.metadata(cluster, name, "keys", owned=not (cluster.spec.auth.keep_keys or is_password))
    if cluster.spec.auth.rotate and not is_password:
        meta["annotations"] = meta.get("annotations", {}) | {labels.ROTATION: cluster.spec.auth.rotate}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": _data(content)}


def render_turned(meta: Mapping[str, str], record: Record, content: Mapping[str, bytes], file: str) -> Object:
    """What a rotation writes to a Secret: its files, and how far it is. `meta` names the very version that was read."""
    annotations = {
        labels.ROTATION: record.request,
        labels.STAGE: record.stage,
        labels.SINCE: f"{record.since:.0f}",
        labels.DIGEST: hashlib.sha256(content[file]).hexdigest(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**meta, "annotations": annotations},
        "data": _data(content),
    }


def read_record(annotations: Mapping[str, str]) -> Record:
    """What is noted on a Secret; one that was never rotated has nothing."""
    stage: Stage = annotations.get(labels.STAGE, "")  # type: ignore[assignment]
    since = annotations.get(labels.SINCE, "0")
    return Record(annotations.get(labels.ROTATION, ""), stage, float(since) if since.isdecimal() else 0.0)


def _data(content: Mapping[str, bytes]) -> dict[str, str]:
    return {file: base64.b64encode(value).decode() for file, value in content.items()}
