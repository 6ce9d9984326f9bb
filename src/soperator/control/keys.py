"""Keys: made once, never printed, and rewritten by a rotation alone.

A Secret that is there is left alone whatever it holds, also one that a person made beforehand. Creation is a plain POST, so that two
operators at once cannot both win.
"""

import base64
import secrets
from dataclasses import dataclass, field

from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.errors import AlreadyExists
from soperator.render import openssh, storage
from soperator.render.keys import REST_FILE, render_secret, wanted_files
from soperator.render.model import Cluster
from soperator.runtime.store import Store


@dataclass(frozen=True)
class Answers:
    """What daemons have said in a rotation: from when an answer counts, by what was asked; and for which questions a kubelet was made to look."""

    taken: dict[str, float] = field(default_factory=dict)
    poked: set[str] = field(default_factory=set)


async def ensure_keys(api: Api, cluster: Cluster, known: Store[object]) -> list[str]:  # type: ignore[type-var]
    """Create the Secrets of a cluster that are not there; return their names."""
    made = []
    for name in wanted_files(cluster):
        if known.get(cluster.namespace, name) is None:
            made += await _create(api, cluster, name)
    return made


async def _create(api: Api, cluster: Cluster, name: str) -> list[str]:
    try:
        await api.create(kinds.SECRET, render_secret(cluster, name, _material(cluster, name)))
    except AlreadyExists:
        return []
    return [name]


def _material(cluster: Cluster, name: str) -> dict[str, bytes]:
    files = wanted_files(cluster)[name]
    if "ssh_host_ed25519_key" in files:
        return _host_key(cluster)
    if REST_FILE in files:
        return {REST_FILE: rest_key()}
    if storage.PASSWORD in files:
        return {storage.PASSWORD: secrets.token_urlsafe(32).encode()}
    return {file: auth_key() for file in files}


def rest_key() -> bytes:
    """A new key for tokens of REST."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32))


def auth_key() -> bytes:
    """A new key of Slurm or munge."""
    return secrets.token_bytes(1024)


def _host_key(cluster: Cluster) -> dict[str, bytes]:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # 7 MiB, and needed once

    key = Ed25519PrivateKey.generate()
    seed, public = key.private_bytes_raw(), key.public_key().public_bytes_raw()
    return {
        "ssh_host_ed25519_key": openssh.private_file(seed, public, secrets.token_bytes(4), cluster.name),
        "ssh_host_ed25519_key.pub": openssh.public_line(public, cluster.name),
    }
