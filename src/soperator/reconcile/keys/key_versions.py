"""Records in the status which keys are in force, and which key a rotation writes next.

A Secret and its copy may both come from a backup, with the record of a rotation that ended long ago. Running daemons have the keys that the status
names, so a rotation writes the status first. A lost status names none, and then every key is accepted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from soperator.kube import kinds
from soperator.kube.views import Custom
from soperator.reconcile.context import Operator
from soperator.render.cluster.keys import version, with_record
from soperator.render.parts.model import Cluster
from soperator.runtime.status import ReportedCondition
from soperator.slurm.keys import Held, RotationRecord, Version


@dataclass(frozen=True)
class Known:
    """The versions that a Secret may have, the one in force first; empty if the status has none. An older operator version wrote no stages."""

    versions: tuple[Version, ...] = ()
    has_stages: bool = False

    def noted(self, held: Held | None, now: float) -> Held | None:
        """Return the snapshot with the record of its files: a key that was restored by hand has no record. `now` is in seconds since 1970."""
        if held is None or not self.has_stages or version(held) in self.versions:
            return held
        found = next((each for each in self.versions if each.digest == held.digest), None)
        return (
            with_record(held, RotationRecord(found.request, found.stage, now if found.stage else 0.0))
            if found
            else held
        )


def read(operator: Operator, obj: Custom, name: str) -> Known:
    """Return the status of a Secret, from the cache and from this operator's last write, because the cache may be older than a rotation's step."""
    status = operator.status.current(obj)
    if not status.get("keyDigests", {}).get(name):
        return Known()
    found = [*_versions(status, name), *_versions(operator.status.mine(obj), name)]
    return Known(tuple(dict.fromkeys(found)), name in status.get("keyRotations", {}))


def status_fields(operator: Operator, obj: Custom, versions: Mapping[str, Version]) -> dict[str, Any]:
    """Return the fields of the status; an announced key stays until it is in force."""
    known = operator.status.mine(obj)
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
    """Write to the status which version a Secret has, and which comes next. Raises the errors of a status write."""
    obj, (here, then) = operator.stores.clusters.get(*cluster.key), step
    if obj is None:
        return
    fields = status_fields(operator, obj, {name: here})
    fields["keyRotations"][name]["next"] = _shown(then)
    await operator.announce(kinds.SLURMCLUSTER, obj, fields, said)


def _versions(status: Mapping[str, Any], name: str) -> Iterator[Version]:
    digest, rotation = status.get("keyDigests", {}).get(name), status.get("keyRotations", {}).get(name, {})
    if digest:
        yield Version(digest, rotation.get("request", ""), rotation.get("stage", ""))
    if then := rotation.get("next"):
        yield Version(then.get("digest", ""), then.get("request", ""), then.get("stage", ""))


def _shown(each: Version) -> dict[str, str]:
    return {"digest": each.digest, "request": each.request, "stage": each.stage}
