"""Reconciles keys: creates them once, never prints them, changes them only in a rotation, and restores deleted or edited ones
(`policy/cluster/keys`).

A Secret that a person provided for the cluster is used unchanged, and a foreign one of the same name is refused (`key_owner`). A Secret's content is
read when its resourceVersion, or that of its copy, has changed since the last pass; only a digest stays in memory. Every write names the version that
was read, and new Secrets are a plain POST, so that of two concurrent operators only one can succeed.
"""

import base64
import secrets
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from soperator.kube import kinds
from soperator.kube.errors import AlreadyExists, Conflict, NotFound
from soperator.kube.objects import Secret
from soperator.kube.views import Custom, Meta, ObjectMeta, Pod
from soperator.policy.cluster.keys import KeySecretSnapshot, KeySecretStep, decide
from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.context import Operator
from soperator.reconcile.keys import key_owner, key_versions
from soperator.render.cluster import database_connection
from soperator.render.cluster.keys import (
    REST_FILE,
    has_owner,
    new,
    read_held,
    render_held,
    render_kept,
    version,
    wanted_files,
)
from soperator.render.parts import labels, names, openssh
from soperator.render.parts.model import Cluster, Object
from soperator.runtime.cache.store import Key
from soperator.runtime.events import EventNote, Regarding
from soperator.slurm.keys import KeyContent, Version

#: Daemons that keep the key with which they started, by the role of their pods.
DAEMONS = {"controller": "slurmctld", "login": "sackd", "worker": "slurmd", "accounting": "slurmdbd"}
#: By the name of a Secret: the versions at which it was right, and the key that it had.
_RIGHT: Slot[Key, dict[str, tuple[Hashable, Version]]] = per_cluster("Secrets that were right")
_REST_HOLDERS = frozenset({"controller", "accounting"})


@dataclass(frozen=True)
class KeyStatus:
    """The state of the Secrets: a reason and a message if there is a fault, and the keys in force by the names of their Secrets."""

    reason: str = ""
    why: str = ""
    versions: Mapping[str, Version] = field(default_factory=dict)


async def settle(operator: Operator, obj: Custom, cluster: Cluster) -> KeyStatus:
    """Bring every Secret with keys, and its copy, to its right content, or return why that is impossible."""
    versions: dict[str, Version] = {}
    worst = KeySecretStep()
    for name, files in wanted_files(cluster).items():
        step, version = await _one(operator, obj, cluster, name, files)
        worst = worst if worst.reason else step
        versions |= {name: version} if version and _must_agree(cluster, name) else {}
    return KeyStatus(worst.reason, worst.why, versions)


async def _one(
    operator: Operator, obj: Custom, cluster: Cluster, name: str, wanted: tuple[str, ...]
) -> tuple[KeySecretStep, Version | None]:
    """Check and correct one Secret; return the decision, and which key is in force if that is certain."""
    right_before, versions = (
        operator.memory(_RIGHT).setdefault(cluster.key, {}),
        _versions(operator, cluster, name, wanted),
    )
    if versions and (right := right_before.get(name)) and right[0] == versions:
        return KeySecretStep(), right[1]
    if _is_first(operator, cluster, name) and (made := await _make(operator, cluster, name, wanted)):
        return made
    live, kept = await _read(operator, cluster, name), await _read(operator, cluster, names.kept(name))
    known = key_versions.read(operator, obj, name) if _must_agree(cluster, name) else key_versions.RememberedKeys()
    known = key_versions.RememberedKeys() if _is_accepted(obj, live, kept) else known
    seen = _seen(operator, cluster, name, wanted, live, kept, known)
    step = decide(seen)
    held = (seen.kept if step.act in ("rest", "restore") else seen.live) or new(cluster, name, {})
    try:
        match step.act:
            case "make":
                held = new(cluster, name, _material(cluster, wanted))
                await write(operator, cluster, name, held, live, kept)
            case "restore" | "keep":
                await write(operator, cluster, name, held, live, kept)
    except (AlreadyExists, Conflict):
        return KeySecretStep(), None  # somebody was faster, which wakes this again
    if step.act == "restore":
        _emit_restored(operator, obj, seen)
    if step.act == "rest" and not step.reason and live and kept:
        right_before[name] = (_stamp(cluster, wanted, live.metadata, kept.metadata), version(held))
    return step, None if step.reason else version(held)


def _is_first(operator: Operator, cluster: Cluster, name: str) -> bool:
    """Return whether, according to the caches, the cluster has no pod, and neither the Secret nor its copy exists."""
    store = operator.stores.children[kinds.SECRET]
    found = [store.get(cluster.namespace, each) for each in (name, names.kept(name))]
    return found == [None, None] and not operator.stores.cluster_pods(cluster.key)


async def _make(
    operator: Operator, cluster: Cluster, name: str, wanted: tuple[str, ...]
) -> tuple[KeySecretStep, Version] | None:
    """Create the Secret of a cluster that starts, and its copy; return None if one of them exists, which the cache does not show yet.

    No read comes before, because the API server refuses a Secret that exists. What exists may be foreign, so it is read before this pass creates
    a pod that would mount it. The Secret is first, so that no copy of another key stands beside one that a person has just created. No daemon can
    have read it before its copy exists.
    """
    held = new(cluster, name, _material(cluster, wanted))
    try:
        live = await _create(operator, render_held(cluster, name, held))
        kept = await _create(operator, render_kept(cluster, name, held))
    except AlreadyExists:
        return None
    if decide(_seen(operator, cluster, name, wanted, live, kept, key_versions.RememberedKeys())) == KeySecretStep():
        stamp = _stamp(cluster, wanted, live.metadata, kept.metadata)
        operator.memory(_RIGHT).setdefault(cluster.key, {})[name] = (stamp, version(held))
    return KeySecretStep("make"), version(held)


async def _create(operator: Operator, made: Object) -> Secret:
    """Create a Secret, and return it as the API server has it. The cache gets its metadata at once, so that no pass creates it again."""
    found = await operator.api.create_as(kinds.SECRET, Secret, made | {"type": "Opaque"})
    operator.stores.children[kinds.SECRET].learn(Meta(metadata=found.metadata))
    return found


async def write(
    operator: Operator, cluster: Cluster, name: str, held: KeyContent, live: Secret | None, kept: Secret | None
) -> None:
    """Write a Secret, its copy first, so that the copy is right whenever the writes are interrupted. Raises Conflict or AlreadyExists."""
    copied = _holds(kept)
    if copied is None or copied != held or (kept and not _is_marked(cluster, name, kept.metadata)):
        await _put(operator, render_kept(cluster, name, held), kept)
    await _put(operator, render_held(cluster, name, held), live)


async def _put(operator: Operator, made: Object, found: Secret | None) -> None:
    if found is None:
        await _create(operator, made)
        return
    version = found.metadata.resource_version
    for body in (*_with_strangers(made, found), made):
        named = body["metadata"] | {"uid": found.metadata.uid, "resourceVersion": version}
        written = await operator.api.apply(kinds.SECRET, body | {"metadata": named})
        version = written.metadata.resource_version


def _with_strangers(made: Object, found: Secret) -> list[Object]:
    """Return the Secret with an empty value for every file and note of a key that another manager added.

    Server-side apply of this object, and then of one without these fields, removes them.
    """
    there = read_held(found.metadata.annotations, found.data)
    files = {each: "" for each in there.files if each not in made["data"]}
    noted = made["metadata"].get("annotations", {})
    own = {*there.notes, *({labels.BROUGHT} if there.is_brought else ())}
    notes = {each: "" for each in own if each not in noted}
    if not files and not notes:
        return []
    return [made | {"data": made["data"] | files, "metadata": made["metadata"] | {"annotations": noted | notes}}]


def _seen(
    operator: Operator,
    cluster: Cluster,
    name: str,
    wanted: tuple[str, ...],
    live: Secret | None,
    kept: Secret | None,
    known: key_versions.RememberedKeys,
) -> KeySecretSnapshot:
    copied = _holds(kept)
    is_brought = copied.is_brought if copied else bool(live and labels.MANAGED_BY not in live.metadata.labels)
    held = read_held(live.metadata.annotations, live.data) if live else None
    noted, copy_noted = (known.noted(each, operator.wall()) for each in (held, copied))
    is_noted = copied == copy_noted and (copy_noted is not None or held == noted)
    shown = held or copied
    return KeySecretSnapshot(
        name=name,
        copy=names.kept(name),
        cluster=cluster.name,
        foreign=key_owner.foreign(cluster, name, live, kept, copied, known),
        wanted=wanted,
        live=KeyContent(noted.files, noted.notes, is_brought) if noted else None,
        kept=copy_noted,
        are_marked=is_noted and _are_marked(cluster, name, is_brought, live, kept),
        known=known.versions,
        holders=_holders(operator, cluster, name) if _must_agree(cluster, name) else (),
        found=version(shown) if shown else None,
        is_rotated=not known.has_stages and bool(copied and copied.notes.get(labels.ROTATION)),
    )


def _holds(kept: Secret | None) -> KeyContent | None:
    """Return the content of a copy; None if there is none, or if somebody edited it."""
    if kept is None:
        return None
    held = read_held(kept.metadata.annotations, kept.data)
    return held if kept.metadata.annotations.get(labels.CHECKSUM) == held.checksum else None


def _is_accepted(obj: Custom, live: Secret | None, kept: Secret | None) -> bool:
    """Return whether a person confirms that the daemons have the key of this version of the Secret; never true if the copy has another key."""
    if live is None or obj.metadata.annotations.get(labels.ACCEPT_KEY) != live.metadata.resource_version:
        return False
    copied = _holds(kept)
    return copied is None or copied.digest == read_held(live.metadata.annotations, live.data).digest


def _are_marked(cluster: Cluster, name: str, is_brought: bool, live: Secret | None, kept: Secret | None) -> bool:
    mine = [each.metadata for each in (None if is_brought else live, kept) if each]
    return all(_is_marked(cluster, name, each) for each in mine)


def _is_marked(cluster: Cluster, name: str, meta: ObjectMeta) -> bool:
    """Return whether one of our Secrets has its labels, and its owner unless the spec keeps keys."""
    wanted = labels.role(cluster.name, "keys").items()
    is_owned = any(each.uid == cluster.uid for each in meta.owner_references)
    return wanted <= meta.labels.items() and (is_owned or not has_owner(cluster, name))


def _must_agree(cluster: Cluster, name: str) -> bool:
    """Return whether daemons with different keys refuse each other. MariaDB and slurmdbd accept any password that they find at their start."""
    return name in (names.auth_key(cluster.name), names.jwt_key(cluster.name))


def _holders(operator: Operator, cluster: Cluster, name: str) -> list[str]:
    """Return the pods that run with the key of a Secret."""
    roles = _REST_HOLDERS if name == names.jwt_key(cluster.name) else frozenset(DAEMONS)
    found = operator.stores.cluster_pods(cluster.key)
    return sorted(
        each.metadata.name for each in found if each.metadata.labels.get(labels.ROLE) in roles and _runs(each)
    )


def _runs(pod: Pod) -> bool:
    """Return whether a daemon of the pod has read its key: a running daemon has, and a restarted one reads the files of its pod."""
    daemons = {"munged", *DAEMONS.values()}
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return pod.status.phase == "Running" or any(each.name in daemons and each.state.running for each in statuses)


def _versions(operator: Operator, cluster: Cluster, name: str, wanted: tuple[str, ...]) -> tuple[object, ...]:
    """Return the resourceVersions that a snapshot is based on, from the caches; empty if one of the two Secrets does not exist."""
    store = operator.stores.children[kinds.SECRET]
    live, kept = store.get(cluster.namespace, name), store.get(cluster.namespace, names.kept(name))
    return _stamp(cluster, wanted, live.metadata, kept.metadata) if live and kept else ()


def _stamp(cluster: Cluster, wanted: tuple[str, ...], live: ObjectMeta, kept: ObjectMeta) -> tuple[object, ...]:
    return (cluster.uid, cluster.spec.auth.keep_keys, wanted, live.resource_version, kept.resource_version)


async def _read(operator: Operator, cluster: Cluster, name: str) -> Secret | None:
    try:
        return await operator.api.get(kinds.SECRET, Secret, cluster.namespace, name)
    except NotFound:
        return None


def _emit_restored(operator: Operator, obj: Custom, seen: KeySecretSnapshot) -> None:
    is_same = seen.live is not None and seen.kept is not None and seen.live.checksum == seen.kept.checksum
    was = "was deleted" if seen.live is None else "lost its labels or owner" if is_same else "was changed"
    text = f"Secret {seen.name} {was} and was restored from {seen.copy}; to change a key set spec.auth.rotateRequest"
    operator.recorder.emit(
        Regarding(kinds.SLURMCLUSTER, obj.metadata), EventNote("Warning", "KeyRestored", text, "Restore")
    )


def _material(cluster: Cluster, files: tuple[str, ...]) -> dict[str, bytes]:
    if "ssh_host_ed25519_key" in files:
        return _host_key(cluster)
    if REST_FILE in files:
        return {REST_FILE: rest_key()}
    if database_connection.PASSWORD in files:
        return {database_connection.PASSWORD: secrets.token_urlsafe(32).encode()}
    return {file: auth_key() for file in files}


def rest_key() -> bytes:
    """Return a new key for tokens of slurmrestd."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32))


def auth_key() -> bytes:
    """Return a new key of auth/slurm or munge."""
    return secrets.token_bytes(1024)


def _host_key(cluster: Cluster) -> dict[str, bytes]:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # 7 MiB, and needed once

    key = Ed25519PrivateKey.generate()
    seed, public = key.private_bytes_raw(), key.public_key().public_bytes_raw()
    return {
        "ssh_host_ed25519_key": openssh.private_file(seed, public, secrets.token_bytes(4), cluster.name),
        "ssh_host_ed25519_key.pub": openssh.public_line(public, cluster.name),
    }
