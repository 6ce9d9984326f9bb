"""Keeps users' tokens in Secrets: creates and renews them, and removes them when their entry leaves the spec (`policy/cluster/user_tokens`).

The key is read only when a token is created. The operator never changes a foreign Secret and never deletes a Secret. A user whom slurmctld does not
know, or who is privileged in Slurm, gets no token.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from soperator.api.fields.change import seconds
from soperator.api.fields.rest import ADMINISTRATORS, KeptToken
from soperator.kube import kinds
from soperator.kube.errors import AlreadyExists, Conflict
from soperator.kube.objects import Secret
from soperator.kube.views import Meta
from soperator.policy.cluster.user_tokens import renewal
from soperator.reconcile.context import Operator
from soperator.render.cluster.keys import REST_FILE
from soperator.render.parts import labels, names, pod
from soperator.render.parts.model import Cluster, Object
from soperator.render.parts.user_tokens import ROLE, read_note, render_token
from soperator.slurm.user_tokens import TokenNote
from soperator.slurmrest.client import SlurmError
from soperator.slurmrest.token import sign

#: Seconds until a token that could not be created is tried again.
_SOON = 10.0


@dataclass(frozen=True)
class TokensStatus:
    """Why a token is missing or invalid, empty if all are valid; and the seconds until the next check, 0 for never."""

    why: str = ""
    again: float = 0.0


async def keep(operator: Operator, cluster: Cluster) -> TokensStatus:
    """Create and renew the tokens that the spec lists, and clear the Secrets of the others."""
    users = cluster.spec.rest.users
    wanted = {each.secret_name: each for each in users.tokens} if users else {}
    secrets = operator.stores.children[kinds.SECRET]
    for each in secrets.by("cluster", cluster.key):
        if _is_ours(cluster, each) and each.metadata.name not in wanted:
            await _empty(operator, cluster, each)
    key = secrets.get(cluster.namespace, names.jwt_key(cluster.name))
    if not wanted or key is None:
        return TokensStatus()
    found = [await _one(operator, cluster, each, key.metadata.resource_version) for each in wanted.values()]
    return _sum(found)


async def _empty(operator: Operator, cluster: Cluster, known: Meta) -> None:
    """Remove the token from a Secret.

    The Secret itself is deleted with the cluster or by hand, because a permission to delete Secrets would also allow the operator to delete keys.
    """
    note = read_note(known.metadata.annotations)
    if note and not note.ends:
        return
    made = render_token(cluster, known.metadata.name, "", TokenNote("", 0.0, 0.0, ""))
    with contextlib.suppress(Conflict):  # it has just changed, which wakes this again
        await operator.api.apply(kinds.SECRET, _in_place_of(known, made))


def _in_place_of(known: Meta, made: Object) -> Object:
    made["metadata"] |= {"uid": known.metadata.uid, "resourceVersion": known.metadata.resource_version}
    return made


def _sum(found: Iterable[TokensStatus]) -> TokensStatus:
    all_ = list(found)
    waits = [each.again for each in all_ if each.again]
    return TokensStatus("; ".join(each.why for each in all_ if each.why), min(waits, default=0.0))


def _is_ours(cluster: Cluster, secret: Meta) -> bool:
    meta = secret.metadata
    is_owned = any(each.uid == cluster.uid for each in meta.owner_references)
    return is_owned and meta.labels.get(labels.ROLE) == ROLE


def _is_edited(secret: Meta) -> bool:
    """Return whether another writer changed the Secret after the operator, or in the same second. Then it may have any content."""
    fields = secret.metadata.managed_fields
    mine = [each.time for each in fields if each.manager.startswith(labels.MANAGER) and each.time]
    others = [each.time for each in fields if not each.manager.startswith(labels.MANAGER) and each.time]
    return bool(mine and others) and max(others) >= max(mine)


async def _one(operator: Operator, cluster: Cluster, wanted: KeptToken, key: str) -> TokensStatus:
    known = operator.stores.children[kinds.SECRET].get(cluster.namespace, wanted.secret_name)
    if known and not _is_ours(cluster, known):
        return TokensStatus(
            f"Secret {wanted.secret_name} does not belong to the operator and stays unchanged: name another Secret for user {wanted.user}"
        )
    note = read_note(known.metadata.annotations) if known and not _is_edited(known) else None
    due, now = renewal(wanted, note, key), operator.wall()
    if due > now:
        return TokensStatus(again=due - now)
    try:
        fault = refusal(wanted.user, await operator.pod_exec.uid(cluster, wanted.user))
    except SlurmError as error:
        fault = f"slurmctld cannot look up user {wanted.user}: {error}"
    if fault:
        return TokensStatus(f"Secret {wanted.secret_name} gets no new token: {fault}", _SOON)
    return await _write(operator, cluster, wanted, known)


def refusal(user: str, uid: int | None, admin: bool = False) -> str:
    """Return why a user gets no token, given the uid that slurmctld reports; empty if nothing prevents it."""
    if uid is None:
        return f"slurmctld does not know user {user}: create the user in the jail, or correct the name"
    if not admin and (uid in (0, pod.SLURM_UID) or user in ADMINISTRATORS):
        return f"user {user} is an administrator of Slurm: name another user"
    return ""


async def _write(operator: Operator, cluster: Cluster, wanted: KeptToken, known: Meta | None) -> TokensStatus:
    """Sign a token with the current key, write it, and record the key's version."""
    found = await operator.api.get(kinds.SECRET, Secret, cluster.namespace, names.jwt_key(cluster.name))
    now, lifetime = operator.wall(), seconds(wanted.lifetime)
    token = sign(found.data[REST_FILE], wanted.user, int(now), int(lifetime))
    note = TokenNote(wanted.user, now + lifetime, lifetime, found.metadata.resource_version)
    made = render_token(cluster, wanted.secret_name, token, note)
    try:
        if known is None:
            await operator.api.create(kinds.SECRET, made)
        else:
            await operator.api.apply(kinds.SECRET, _in_place_of(known, made))
    except (AlreadyExists, Conflict):
        return TokensStatus(again=_SOON)  # the cache does not know it yet, or another operator was first
    return TokensStatus(again=lifetime / 2)
