"""The objects of a backup as they are created again.

What happened once does not happen again: requests are left out, because a restored request to replace the jail would do so. Restored backups are
suspended, so that they remove no snapshot before somebody has looked. Job ids go on above all that may have been given.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from soperator.render.parts.model import Object

#: What is requested once, by kind: the path of the field.
REQUESTS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "SlurmCluster": (("auth", "rotateRequest"), ("jail", "refill"), ("upgrade", "request")),
    "HealthCheck": (("when", "runRequest"),),
    "SlurmBackup": (("runRequest",),),
}
_LINE = re.compile(r"^[ \t]*FirstJobId[ \t]*=[ \t]*([0-9]+).*\n?", re.IGNORECASE | re.MULTILINE)


def restored_objects(objects: Sequence[Object], namespace: str, first_job_id: int) -> list[Object]:
    """Return the objects to create, the SlurmCluster last: nothing runs before it exists."""
    made = [_restored(each, namespace, first_job_id) for each in objects]
    return sorted(made, key=lambda each: each["kind"] == "SlurmCluster")


def first_job_id(next_job_id: int, gap: int) -> int:
    """Return the first id of a job after a restoration: above all in the backup, and above `gap` ids that were given after it."""
    return next_job_id + gap


def with_first_job_id(lines: str, number: int) -> str:
    """Return lines of slurm.conf with FirstJobId, or with the number that they have if it is higher."""
    highest = max([number, *(int(each) for each in _LINE.findall(lines))])
    kept = _LINE.sub("", lines).rstrip("\n")
    return "\n".join([*([kept] if kept else []), f"FirstJobId={highest}", ""])


def _restored(saved: Object, namespace: str, first: int) -> Object:
    spec = saved["spec"]
    for path in REQUESTS.get(saved["kind"], ()):
        spec = _without(spec, path)
    if saved["kind"] == "SlurmBackup":
        spec = {**spec, "suspend": True}
    if saved["kind"] == "SlurmCluster":
        config = spec.get("config", {})
        extra = config.get("extraLines", {})
        lines = with_first_job_id(extra.get("slurm", ""), first)
        spec = {**spec, "config": {**config, "extraLines": {**extra, "slurm": lines}}}
    return {**saved, "metadata": {**saved["metadata"], "namespace": namespace}, "spec": spec}


def _without(spec: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a spec without a field."""
    name, *rest = path
    if not rest:
        return {key: value for key, value in spec.items() if key != name}
    inner = spec.get(name)
    return {**spec, name: _without(inner, rest)} if isinstance(inner, dict) else dict(spec)
