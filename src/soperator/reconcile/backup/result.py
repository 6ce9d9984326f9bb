"""The result of a backup's Job: its phase, and the report of its pod."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from soperator.kube.objects import Job
from soperator.kube.views import Pod
from soperator.policy.backup.schedule import Attempt, Phase
from soperator.reconcile import pod_status
from soperator.render.parts import labels

#: The reasons that the program in the pod gives (`agents/backup/errors.py`).
REASONS = frozenset(
    {
        "BackupFailed",
        "RepositoryChanged",
        "RepositoryDamaged",
        "RepositoryLocked",
        "RepositoryMissing",
        "StoreDenied",
        "StoreUnreachable",
        "WrongPassword",
    }
)
_UNITS = ("", "Ki", "Mi", "Gi", "Ti")


def attempt_of(job: Job | None) -> Attempt:
    """Return the attempt that a Job makes."""
    if job is None:
        return Attempt()
    notes, done = job.metadata.annotations, {each.type for each in job.status.conditions if each.status == "True"}
    phase: Phase = "succeeded" if "Complete" in done else "failed" if "Failed" in done else "running"
    since = notes.get(labels.SINCE, "")
    return Attempt(phase, float(since) if since.isdigit() else 0.0, notes.get(labels.REQUEST, ""))


def pods_of(job: Job | None, pods: Iterable[Pod]) -> Sequence[Pod]:
    """Return the pods of a Job, oldest first."""
    if job is None:
        return ()
    found = [each for each in pods if any(owner.uid == job.metadata.uid for owner in each.metadata.owner_references)]
    return sorted(found, key=lambda each: (str(each.metadata.creation_timestamp), each.metadata.name))


def failure(job: Job, pods: Sequence[Pod]) -> tuple[str, str]:
    """Return the reason and the message of a Job that failed: those of its newest pod, otherwise the message of the Job."""
    words = pod_status.last_words(pods[-1]) if pods else ""
    said = next((each.message for each in job.status.conditions if each.type == "Failed"), "")
    words = words.removeprefix("soperator: ") or said or "its Job failed without a message; see its pod"
    reason, found, message = words.partition(": ")
    return (reason, message) if found and reason in REASONS else ("BackupFailed", words)


def report(pods: Sequence[Pod]) -> dict[str, Any] | None:
    """Return the report of the pod that succeeded; None if there is none (yet), or if it is malformed."""
    for each in reversed(pods):
        if each.status.phase == "Succeeded":
            try:
                said = json.loads(pod_status.last_words(each, "backup"))
                return {
                    "snapshot": str(said["snapshot"]),
                    "seconds": round(float(said["seconds"])),
                    "size": size(int(said["size"])),
                    "added": size(int(said["added"])),
                    "nextJobId": int(said["nextJobId"]),
                    "contents": [str(part) for part in said["contents"]],
                    "repository": str(said.get("repository", "")),
                    "repositoryId": str(said.get("repositoryId", "")),
                }
            except (ValueError, KeyError, TypeError):
                return None
    return None


def size(count: int) -> str:
    """Return a number of bytes as a short quantity, rounded up."""
    for unit in _UNITS[:-1]:
        if count < 1024:
            return f"{count}{unit}"
        count = -(-count // 1024)
    return f"{count}{_UNITS[-1]}"
