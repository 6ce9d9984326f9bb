"""The objects of a backup in the form in which they are created again.

Requests are left out, because a restored request, for example to replace the jail, would be carried out again. Restored backups are
suspended, so that they remove no snapshot before a person has checked them. New job ids start above all ids that Slurm may have assigned.

A person with the password of the repository and write access to its claim can forge a backup. So `soperator restore` creates only objects
of our kinds of this one cluster, with only a name, labels and annotations as metadata, and ignores everything else.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from soperator.api.base import API_VERSION, GROUP
from soperator.render.parts import names
from soperator.render.parts.model import Object

#: What is requested once, by kind: the path of the field.
REQUESTS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "SlurmCluster": (("auth", "rotateRequest"), ("jail", "refill"), ("upgrade", "request")),
    "HealthCheck": (("when", "runRequest"),),
    "SlurmBackup": (("runRequest",),),
}
KINDS = frozenset({"SlurmCluster", "NodeSet", "HealthCheck", "SlurmAccount", "SlurmQOS", "SlurmBackup"})
_LINE = re.compile(r"^[ \t]*FirstJobId[ \t]*=[ \t]*([0-9]+).*\n?", re.IGNORECASE | re.MULTILINE)


def fault(objects: Any, secrets: Iterable[str], cluster: str) -> str:
    """Return what in a backup is not of this cluster; empty if everything is."""
    if not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
        return "its objects are no list"
    for each in objects:
        meta, spec = each.get("metadata"), each.get("spec")
        kind, name = each.get("kind"), meta.get("name") if isinstance(meta, dict) else None
        if each.get("apiVersion") != API_VERSION or kind not in KINDS:
            return f"it has an object of {each.get('apiVersion')} {kind}, which no backup has"
        if not isinstance(name, str) or not isinstance(spec, dict):
            return f"it has a {kind} without a name or a spec"
        ref = spec.get("clusterRef")
        of = name if kind == "SlurmCluster" else ref.get("name") if isinstance(ref, dict) else None
        if of != cluster:
            return f"its {kind} {name} is of SlurmCluster {of}"
    if [each["kind"] for each in objects].count("SlurmCluster") != 1:
        return "it does not have exactly one SlurmCluster"
    own = (names.auth_key, names.jwt_key, names.host_keys, names.database_password)
    foreign = sorted(set(secrets) - {each(cluster) for each in own})
    return f"it has a Secret {foreign[0]}, which is none of its keys" if foreign else ""


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
    return {
        "apiVersion": API_VERSION,
        "kind": saved["kind"],
        "metadata": _metadata(saved["metadata"], namespace),
        "spec": spec,
    }


def _metadata(saved: Mapping[str, Any], namespace: str) -> Object:
    """Return the name, labels and annotations; not ours, each of which a person says of what is there once, such as that jobs are abandoned."""
    notes = {key: text for key, text in (saved.get("annotations") or {}).items() if not key.startswith(f"{GROUP}/")}
    kept = {"labels": saved.get("labels") or {}, "annotations": notes}
    return {"name": saved["name"], "namespace": namespace} | {key: each for key, each in kept.items() if each}


def _without(spec: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a spec without a field."""
    name, *rest = path
    if not rest:
        return {key: value for key, value in spec.items() if key != name}
    inner = spec.get(name)
    return {**spec, name: _without(inner, rest)} if isinstance(inner, dict) else dict(spec)
