"""Secrets with keys. They are created once and never rewritten: whoever finds one there leaves it alone.

The key material comes in as an argument, so that this stays a pure function.
"""

import base64
from collections.abc import Mapping

from soperator.render import names, pod
from soperator.render.model import Cluster, Object


def wanted_files(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """The Secrets that a cluster needs, with the files that each must hold."""
    return {
        names.auth_key(cluster.name): ("munge.key" if cluster.spec.auth.type == "munge" else "slurm.key",),
        names.jwt_key(cluster.name): ("jwt_hs256.key",),
        names.host_keys(cluster.name): ("ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"),
    }


def render_secret(cluster: Cluster, name: str, content: Mapping[str, bytes]) -> Object:
    """A Secret with the given files, owned by the cluster unless its keys are to be kept."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": pod.metadata(cluster, name, "keys", owned=not cluster.spec.auth.keep_keys),
        "type": "Opaque",
        "data": {file: base64.b64encode(value).decode() for file, value in content.items()},
    }
