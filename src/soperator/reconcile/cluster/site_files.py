"""Reads the entries of ConfigMaps and Secrets to which a spec's config refers, every 30 s, because caches have no content.

A new content changes the desired generation, which then goes through the same transaction as an edit of the spec. If an entry is deleted,
its last content stays in use, from memory or from the files that slurmctld runs with. If an entry never existed, or no daemon could read
its content, the configuration does not change. ConfigApplied reports both.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from soperator.api.fields.config import TOPOLOGY_FILES, FileRef, entries
from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.errors import NotFound
from soperator.kube.objects import ConfigMap, Secret
from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.cluster import config_files
from soperator.reconcile.context import Operator
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import site_files
from soperator.runtime.cache.store import Key

#: Seconds between two readings, and while an entry is missing.
EVERY, SOON = 30.0, 5.0
#: How the line begins that the renderer adds to a user's own topology.
_ADDED = "# read with "


@dataclass(frozen=True)
class SiteFiles:
    """The last reading, at a time in seconds since 1970: the contents in use, and why an entry could not be read."""

    refs: frozenset[FileRef]
    contents: Mapping[FileRef, str]
    faults: Mapping[FileRef, str] = field(default_factory=dict)
    at: float = 0.0

    @property
    def period(self) -> float:
        """Seconds until the next reading."""
        return SOON if self.faults else EVERY


_READ: Slot[Key, SiteFiles] = per_cluster("the files of Slurm that its spec refers to")


async def fetch(operator: Operator, cluster: Cluster) -> None:
    """Read the entries of the spec if a reading is due. Raises the errors of requests to the API server, except NotFound."""
    refs = frozenset(each.ref for each in entries(cluster.spec.config) if each.ref)
    memory, now = operator.memory(_READ), operator.wall()
    known = memory.get(cluster.key)
    if not refs:
        memory.pop(cluster.key, None)
    elif known is None or known.refs != refs or not 0 <= now - known.at < known.period:
        contents, faults = await read(operator.api, cluster.namespace, refs)
        former = known.contents if known else {}
        kept = {ref: former[ref] for ref in faults if ref in former}
        if faults.keys() - kept.keys():
            kept = {**await _in_use(operator, cluster), **kept}
        contents |= {ref: kept[ref] for ref in faults if ref in kept}
        memory[cluster.key] = SiteFiles(refs, contents, faults, now)


async def read(api: Api, namespace: str, refs: Collection[FileRef]) -> tuple[dict[FileRef, str], dict[FileRef, str]]:
    """Return the contents of entries, and why the others have none; reads each object once."""
    contents: dict[FileRef, str] = {}
    faults: dict[FileRef, str] = {}
    for kind, name in sorted({(each.kind, each.name) for each in refs}):
        data = await _data(api, namespace, kind, name)
        for ref in (each for each in refs if (each.kind, each.name) == (kind, name)):
            if data is None:
                faults[ref] = f"{kind} {name} does not exist in this namespace: create it"
            elif ref.key not in data:
                faults[ref] = f"{kind} {name} has no text under the key {ref.key}: add it"
            else:
                contents[ref] = data[ref.key]
    return contents, faults


def with_contents(operator: Operator, cluster: Cluster) -> Cluster:
    """Return the cluster with the contents that were last read."""
    known = operator.memory(_READ).get(cluster.key)
    return replace(cluster, contents=known.contents) if known else cluster


def holds_configuration(cluster: Cluster) -> bool:
    """Return whether no new configuration may be written: a file has no content yet, or content that no daemon could read."""
    return bool(site_files.missing(cluster) or site_files.problems(cluster))


def trouble(operator: Operator, cluster: Cluster) -> str:
    """Return the faults of the entries, with their effect; empty if there are none."""
    known = operator.memory(_READ).get(cluster.key)
    unknown = site_files.missing(cluster)
    if known is None or not (known.faults or unknown):
        return f"configuration waits: {found[0]}" if (found := site_files.problems(cluster)) else ""
    lost = unknown or [each for each in entries(cluster.spec.config) if each.ref in known.faults]
    why = known.faults.get(lost[0].ref) if lost[0].ref else None
    effect = "configuration waits for it" if unknown else "its last content stays in use"
    return f"{lost[0].field}: {why or 'it is not read yet'}, or remove the entry; until then {effect}"


def again(operator: Operator, cluster: Cluster) -> float | None:
    """Return the seconds until the next reading of the entries; None if there are none."""
    known = operator.memory(_READ).get(cluster.key)
    return known.period if known else None


async def _in_use(operator: Operator, cluster: Cluster) -> dict[FileRef, str]:
    """Return the contents in the files that slurmctld runs with, by the entries that the spec refers to at the same name."""
    good = config_files.state(operator, cluster).good
    files = await config_files.read(operator, cluster, good) if good else None
    found = {
        each.ref: (each.file, files[each.file]) for each in entries(cluster.spec.config) if files and each.file in files
    }
    return {ref: _as_given(*file) for ref, file in found.items() if ref}


def _as_given(name: str, text: str) -> str:
    lines = text.splitlines()
    is_ours = name in TOPOLOGY_FILES and lines and lines[-1].startswith(_ADDED)
    return "\n".join(lines[:-1] if is_ours else lines) + "\n"


async def _data(api: Api, namespace: str, kind: str, name: str) -> dict[str, str] | None:
    """Return the texts of an object by their keys; None if it does not exist."""
    try:
        if kind == "ConfigMap":
            return (await api.get(kinds.CONFIGMAP, ConfigMap, namespace, name)).data
        secret = await api.get(kinds.SECRET, Secret, namespace, name)
    except NotFound:
        return None
    return {key: text for key, value in secret.data.items() if (text := _text(value)) is not None}


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
