"""Remembers which keys are in force, and which key a rotation writes next.

A Secret and its copy may both come from a backup, with the record of a rotation that ended long ago. Running daemons have the keys that are
remembered, so a rotation remembers the next key first. If none is remembered, every key is accepted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from soperator.kube import kinds
from soperator.kube.views import Custom
from soperator.reconcile.context import Operator
from soperator.reconcile.memory import cluster_memory
from soperator.render.cluster.keys import version, with_record
from soperator.render.parts.model import Cluster
from soperator.runtime.status import ReportedCondition
from soperator.slurm.keys import KeyContent, RotationRecord, Version


@dataclass(frozen=True)
class RememberedKeys:
    """The versions that a Secret may have, the one in force first; empty if none is remembered. An older operator version wrote no stages."""

    versions: tuple[Version, ...] = ()
    has_stages: bool = False

    def noted(self, held: KeyContent | None, now: float) -> KeyContent | None:
        """Return the snapshot with the record of its files: a key that was restored by hand has no record. `now` is in seconds since 1970."""
        if held is None or not self.has_stages or version(held) in self.versions:
            return held
        found = next((each for each in self.versions if each.digest == held.digest), None)
        return (
            with_record(held, RotationRecord(found.request, found.stage, now if found.stage else 0.0))
            if found
            else held
        )


def read(operator: Operator, obj: Custom, name: str) -> RememberedKeys:
    """Return the versions that are remembered of a Secret."""
    memory = cluster_memory.of_cluster(operator, obj)
    if not memory.get("keyDigests", {}).get(name):
        return RememberedKeys()
    return RememberedKeys(tuple(dict.fromkeys(_versions(memory, name))), name in memory.get("keyRotations", {}))


def status_fields(operator: Operator, obj: Custom, versions: Mapping[str, Version]) -> dict[str, Any]:
    """Return the fields of the status; an announced key stays until it is in force."""
    known = cluster_memory.of_cluster(operator, obj)
    rotations = dict(known.get("keyRotations", {}))
    for name, each in versions.items():
        then = rotations.get(name, {}).get("next")
        is_due = then and then != _shown(each)
        rotations[name] = {"request": each.request, "stage": each.stage, **({"next": then} if is_due else {})}
    digests = {name: each.digest for name, each in versions.items()}
    return {"keyDigests": {**known.get("keyDigests", {}), **digests}, "keyRotations": rotations}


async def announce(
    operator: Operator, cluster: Cluster, name: str, step: tuple[Version, Version], said: ReportedCondition
) -> None:
    """Remember which version a Secret has, and which comes next, and show it in the status. Raises the errors of these writes."""
    obj, (here, then) = operator.stores.clusters.get(*cluster.key), step
    if obj is None:
        return
    fields = status_fields(operator, obj, {name: here})
    fields["keyRotations"][name]["next"] = _shown(then)
    await cluster_memory.remember_cluster(operator, obj, fields)
    await operator.announce(kinds.SLURMCLUSTER, obj, fields, said)


def _versions(memory: Mapping[str, Any], name: str) -> Iterator[Version]:
    digest, rotation = memory.get("keyDigests", {}).get(name), memory.get("keyRotations", {}).get(name, {})
    if digest:
        yield Version(digest, rotation.get("request", ""), rotation.get("stage", ""))
    if then := rotation.get("next"):
        yield Version(then.get("digest", ""), then.get("request", ""), then.get("stage", ""))


def _shown(each: Version) -> dict[str, str]:
    return {"digest": each.digest, "request": each.request, "stage": each.stage}
