"""Reads and writes the ConfigMaps with Slurm's files, and restores them if somebody deletes or edits them.

The caches have no content, so files are read when a ConfigMap's resourceVersion has changed. The API server's answer to our own write has the content
of that version, so it is not read again. A generation is a hash of its files. So the operator can
check files against their generation, both the mounted files and those of the copies from which a rollback restores.

A write names the resourceVersion that it is based on. So an operator that has lost its Lease, or whose cache lags, overwrites nothing newer.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from soperator.kube import kinds
from soperator.kube.api import Deletion
from soperator.kube.errors import NotFound
from soperator.kube.objects import ConfigMap
from soperator.kube.views import ChildMeta, Meta
from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.context import Operator
from soperator.reconcile.memory import cluster_memory
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster, Object
from soperator.render.slurm_conf import slurm_conf, trial
from soperator.runtime.apply import refuse_foreign, refuse_foreign_name
from soperator.runtime.cache.store import Key
from soperator.runtime.events import EventNote, Regarding
from soperator.slurm.settings import diff
from soperator.slurm.settings.state import ConfigState, read_state

#: The version of the mounted ConfigMap that our last write replaced, and what that wrote.
_WRITTEN: Slot[Key, tuple[str, ChildMeta]] = per_cluster("the last write of Slurm's files")
#: The versions at which the files were right.
_RIGHT: Slot[Key, Hashable] = per_cluster("ConfigMaps that were right")
#: By name: the answers to our own writes, until slurmctld runs with these files.
_ANSWERS: Slot[Key, dict[str, ConfigMap]] = per_cluster("ConfigMaps as our writes left them")


@dataclass(frozen=True)
class ConfigMapSet:
    """The mounted ConfigMap, and the copies by generation; None for a ConfigMap that does not exist."""

    live: ConfigMap | None = None
    kept: Mapping[str, ConfigMap | None] = field(default_factory=dict)

    def files(self, cluster: Cluster, of: str) -> Mapping[str, str] | None:
        """Return the files of a generation, from any ConfigMap that has them; None if none has them."""
        copy, state = self.kept.get(of), self.state
        there = [each.data for each in (copy, self.live if state.generation == of else None) if each]
        known: Mapping[str, str] | None = next((each for each in there if slurm_conf.is_generation(of, each)), None)
        if known is None and slurm_conf.generation(cluster) == of:
            known = slurm_conf.files(cluster)
        # An older operator may have named it by another rule: then the copy is believed, which nobody can edit.
        return known if known is not None else copy.data if copy else None

    @property
    def state(self) -> ConfigState:
        """The record in the annotations of the mounted ConfigMap."""
        return read_state(self.live.metadata.annotations.get(labels.TRANSACTION, "")) if self.live else ConfigState()


def live(operator: Operator, cluster: Cluster) -> ChildMeta | None:
    """Return the current metadata of the mounted ConfigMap. Our last write may be newer than the cache."""
    store = operator.stores.children[kinds.CONFIGMAP]
    found, last = store.get(cluster.namespace, names.config(cluster.name)), operator.memory(_WRITTEN).get(cluster.key)
    if last and (found.metadata.resource_version if found else "") == last[0] and not store.is_gone(last[1].uid):
        return last[1]
    return found.metadata if found else None


def state(operator: Operator, cluster: Cluster) -> ConfigState:
    """Return the record of the configuration that slurmctld mounts, from the ConfigMap's annotations."""
    found = live(operator, cluster)
    return read_state(found.annotations.get(labels.TRANSACTION, "")) if found else ConfigState()


async def write(operator: Operator, cluster: Cluster, content: Mapping[str, str], state: ConfigState) -> ConfigState:
    """Write the mounted files and their record; raises Conflict if somebody else has changed them, ApplyRefused for a foreign ConfigMap."""
    found = live(operator, cluster)
    if found is None:  # it may exist without the label by which the caches find it
        there = await _read(operator, cluster, names.config(cluster.name))
        found = there.metadata if there else None
        if found:
            refuse_foreign(f"ConfigMap/{found.name}", found, labels.MANAGER, (cluster.uid,))
    await _put(operator, cluster, trial.render_live(cluster, content, state), found)
    return state


async def read(operator: Operator, cluster: Cluster, of: str) -> Mapping[str, str] | None:
    """Return the files of a generation; None if no ConfigMap has them any more. A generation is a hash of files, so the spec's own need no read."""
    if slurm_conf.generation(cluster) == of:
        return slurm_conf.files(cluster)
    mounted = await _read(operator, cluster, names.config(cluster.name))
    return ConfigMapSet(mounted, {of: await _read(operator, cluster, names.generation(cluster.name, of))}).files(
        cluster, of
    )


async def keep(operator: Operator, cluster: Cluster, generation: str, content: Mapping[str, str]) -> None:
    """Write the copy of a generation; raises ApplyRefused for a foreign ConfigMap."""
    key = (cluster.namespace, names.generation(cluster.name, generation))
    await refuse_foreign_name(operator.api, kinds.CONFIGMAP, key, (cluster.uid,))
    await _apply(operator, cluster, trial.render_generation(cluster, generation, content))


async def restore(operator: Operator, cluster: Cluster, running: str) -> tuple[ConfigState, str]:
    """Restore deleted or edited ConfigMaps; return the record of the files, and a message about files that cannot be restored.

    `running` is the generation that slurmctld reports.
    """
    versions = _versions(operator, cluster)
    if versions and operator.memory(_RIGHT).get(cluster.key) == versions:
        return state(operator, cluster), ""
    reported = _remembered(operator, cluster)
    if not (versions or running or reported) and _is_first(operator, cluster):
        return ConfigState(), ""
    found = await _found(operator, cluster, running, reported)
    is_lost = not found.state.generation
    known = _recalled(operator, cluster, found, (running, reported)) if is_lost else found.state
    right = found.files(cluster, known.generation) if known.generation else None
    if right is None:
        return known, _foreign(cluster, known) if known.generation else ""
    await _restore_copies(operator, cluster, found, known)
    is_edited = found.live is not None and found.live.data != right
    if is_lost or is_edited or not _is_marked(cluster, found.live, trial.render_live(cluster, right, known)):
        await _restore(operator, cluster, found, right, known)
        lacked = "lost its labels, owner or record" if found.live else "was deleted"
        _emit_restored(operator, cluster, "was edited" if is_edited else lacked)
    else:
        operator.memory(_RIGHT)[cluster.key] = _stamp(cluster, found)
        if known.is_settled:
            operator.memory(_ANSWERS).pop(cluster.key, None)
    return known, ""


def _recalled(operator: Operator, cluster: Cluster, found: ConfigMapSet, candidates: tuple[str, str]) -> ConfigState:
    """Return the record to use if the files, or their record, are missing: slurmctld runs with the generation and has activated it."""
    for each in candidates:
        content = found.files(cluster, each) if each else None
        if content is not None:
            now = operator.wall()
            return ConfigState(each, good=each, since=now, asked=each, asked_at=now, fixed=diff.fixed(content))
    return ConfigState()


def _remembered(operator: Operator, cluster: Cluster) -> str:
    """Return the generation that was applied last, as it is remembered."""
    obj = operator.stores.clusters.get(*cluster.key)
    return str(cluster_memory.of_cluster(operator, obj).get("config", "")) if obj else ""


def _is_first(operator: Operator, cluster: Cluster) -> bool:
    """Return whether the cluster has neither files nor a slurmctld yet, so that there is nothing to restore."""
    sets = operator.stores.children[kinds.STATEFULSET]
    return live(operator, cluster) is None and sets.get(cluster.namespace, names.controller(cluster.name)) is None


async def _found(operator: Operator, cluster: Cluster, running: str, reported: str) -> ConfigMapSet:
    """Read everything again."""
    mounted = await _read(operator, cluster, names.config(cluster.name))
    known = ConfigMapSet(mounted).state
    used = {known.generation, known.good} if known.generation else {running, reported}
    copies = {each: await _read(operator, cluster, names.generation(cluster.name, each)) for each in used - {""}}
    return ConfigMapSet(mounted, copies)


async def _restore_copies(operator: Operator, cluster: Cluster, found: ConfigMapSet, known: ConfigState) -> None:
    """Create the missing copies of the mounted and of the last good generation, if their files still exist."""
    for each in {known.generation, known.good} - {""}:
        copy, content = found.kept.get(each), found.files(cluster, each)
        if content is None:
            continue
        made = trial.render_generation(cluster, each, content)
        if copy:
            refuse_foreign(f"ConfigMap/{copy.metadata.name}", copy.metadata, labels.MANAGER, (cluster.uid,))
        if copy and copy.data != content:  # somebody has put another in its place, and what is immutable is not edited
            meta = copy.metadata
            await operator.api.delete(kinds.CONFIGMAP, meta.namespace, meta.name, Deletion(uid=meta.uid))
            copy = None
        if copy is None or not _is_marked(cluster, copy, made):
            await _apply(operator, cluster, made)


async def _restore(
    operator: Operator, cluster: Cluster, found: ConfigMapSet, content: Mapping[str, str], known: ConfigState
) -> None:
    made, meta = trial.render_live(cluster, content, known), found.live.metadata if found.live else None
    extra = {each: "" for each in (found.live.data if found.live else {}) if each not in content}
    if extra:  # what one applies, and then no more, is removed
        meta = await _put(operator, cluster, made | {"data": made["data"] | extra}, meta)
    await _put(operator, cluster, made, meta)


async def _put(operator: Operator, cluster: Cluster, made: Object, found: ChildMeta | None) -> ChildMeta:
    named = {"uid": found.uid, "resourceVersion": found.resource_version} if found else {}
    cached = operator.stores.children[kinds.CONFIGMAP].get(cluster.namespace, made["metadata"]["name"])
    body = made | {"metadata": made["metadata"] | named}
    written = (await _apply(operator, cluster, body)).metadata
    operator.memory(_WRITTEN)[cluster.key] = (cached.metadata.resource_version if cached else "", written)
    return written


async def _apply(operator: Operator, cluster: Cluster, body: Object) -> ConfigMap:
    """Apply a ConfigMap, and keep the answer for the next `_read` of the same version."""
    written = await operator.api.apply_as(kinds.CONFIGMAP, ConfigMap, body)
    store, answers = operator.stores.children[kinds.CONFIGMAP], operator.memory(_ANSWERS).get(cluster.key, {})
    there = {name: each for name, each in answers.items() if store.get(cluster.namespace, name)}
    operator.memory(_ANSWERS)[cluster.key] = there | {written.metadata.name: written}
    store.learn(Meta(metadata=written.metadata))
    return written


async def _read(operator: Operator, cluster: Cluster, name: str) -> ConfigMap | None:
    """Read a ConfigMap, unless the cache has the version that our own write made."""
    cached = operator.stores.children[kinds.CONFIGMAP].get(cluster.namespace, name)
    answer = operator.memory(_ANSWERS).get(cluster.key, {}).get(name)
    if cached and answer and cached.metadata.resource_version == answer.metadata.resource_version:
        return answer
    try:
        return await operator.api.get(kinds.CONFIGMAP, ConfigMap, cluster.namespace, name)
    except NotFound:
        return None


def _is_marked(cluster: Cluster, found: ConfigMap | None, made: Object) -> bool:
    """Return whether a ConfigMap has its labels, and the cluster as its owner."""
    if found is None:
        return False
    meta = found.metadata
    is_owned = any(each.uid == cluster.uid for each in meta.owner_references)
    return is_owned and made["metadata"]["labels"].items() <= meta.labels.items()


def _versions(operator: Operator, cluster: Cluster) -> tuple[object, ...]:
    """Return the resourceVersions that a snapshot is based on, from the caches; empty if one of the objects does not exist."""
    store = operator.stores.children[kinds.CONFIGMAP]
    found = store.get(cluster.namespace, names.config(cluster.name))
    known = read_state(found.metadata.annotations.get(labels.TRANSACTION, "")) if found else ConfigState()
    used = sorted({known.generation, known.good} - {""})
    copies = [store.get(cluster.namespace, names.generation(cluster.name, each)) for each in used]
    if found is None or not used or None in copies:
        return ()
    return (cluster.uid, found.metadata.resource_version, *(each.metadata.resource_version for each in copies if each))


def _stamp(cluster: Cluster, found: ConfigMapSet) -> tuple[object, ...]:
    assert found.live is not None
    copies = [found.kept[each] for each in sorted(found.kept)]
    versions = [each.metadata.resource_version for each in copies if each]
    return (cluster.uid, found.live.metadata.resource_version, *versions)


def _foreign(cluster: Cluster, known: ConfigState) -> str:
    return (
        f"ConfigMap {names.config(cluster.name)} is not configuration {known.generation[:8]} any more: somebody changed it, and no copy has "
        "its files. Change spec.config, so that another configuration is tried and written"
    )


def _emit_restored(operator: Operator, cluster: Cluster, was: str) -> None:
    obj = operator.stores.clusters.get(*cluster.key)
    if obj is None:
        return
    text = f"ConfigMap {names.config(cluster.name)} {was} and was restored: write Slurm's settings into spec.config"
    operator.recorder.emit(
        Regarding(kinds.SLURMCLUSTER, obj.metadata), EventNote("Warning", "ConfigRestored", text, "Restore")
    )
