"""Takes one backup: copies its content into a folder, runs restic on the folder, checks the repository, and removes old snapshots.

The order is recorded in the manifest: slurmctld's state first, the database after it, so that the database knows at least the jobs of the state.
Nothing is removed from a repository that has not passed the check.
"""

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from soperator import __version__
from soperator.agents.backup import state
from soperator.agents.backup.database import Source
from soperator.agents.backup.errors import BackupError
from soperator.agents.backup.restic import Restic

#: The version of what a backup consists of. A restoration refuses a higher one.
FORMAT = 1
#: How much of the repository's data is read in each check, chosen anew each time.
_SAMPLE = "64M"


@dataclass(frozen=True)
class Folders:
    """The paths in the pod; restic backs up `backup` and `keys`, which is in memory."""

    state: Path = Path("/var/spool/slurmctld")
    secrets: Path = Path("/etc/soperator/secrets")
    objects: Path = Path("/etc/soperator/objects")
    backup: Path = Path("/soperator/backup")
    keys: Path = Path("/soperator/keys")


@dataclass(frozen=True)
class BackupTask:
    """The content of a backup: the cluster, its Slurm version, its database or None, restic's options for retention, the SlurmBackup's name,
    where the repository is, and the id of that of the last backup.
    """

    namespace: str
    cluster: str
    slurm: str
    database: Source | None
    keep: Sequence[str]
    maker: str = ""
    repository: str = ""
    repository_id: str = ""


def take(task: BackupTask, restic: Restic, folders: Folders | None = None) -> dict[str, Any]:
    """Take a backup and return the data for the operator's status; raises BackupError."""
    folders, began, since = folders or Folders(), time.monotonic(), time.time()
    identity = restic.prepare(task.repository_id)
    manifest = gather(task, folders, since)
    (folders.backup / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True))
    made = restic.backup(folders.backup, folders.keys)
    restic.check(_SAMPLE)
    restic.forget(task.keep)
    return {
        "snapshot": made.name,
        "size": made.size,
        "added": made.added,
        "seconds": round(time.monotonic() - began, 1),
        "nextJobId": manifest["nextJobId"],
        "contents": [*manifest["contents"]],
        "repository": task.repository,
        "repositoryId": identity,
    }


def gather(task: BackupTask, folders: Folders, since: float) -> dict[str, Any]:
    """Copy everything, with the jobs that Slurm had at the moment `since`, into the folder of the backup and return its manifest."""
    manifest: dict[str, Any] = {"format": FORMAT, "operator": __version__, "slurm": task.slurm}
    manifest |= {"namespace": task.namespace, "cluster": task.cluster, "contents": ["keys", "objects", "state"]}
    copy_secrets(folders.secrets, folders.keys)
    shutil.copyfile(folders.objects / "objects.json", folders.backup / "objects.json")
    state.wait_for_save(folders.state, since)
    manifest["stateAttempts"] = state.copy_state(folders.state, folders.backup / "state")
    manifest["stateTime"] = _now()
    manifest["nextJobId"] = _next_job_id(folders.backup / "state")
    if task.database is not None:
        manifest["databaseTime"] = _now()
        task.database.dump(folders.backup / "database.sql")
        jobs, highest = task.database.jobs(task.cluster)
        manifest["database"] = {"name": task.database.database, "jobs": jobs, "highestJobId": highest}
        manifest["nextJobId"] = max(manifest["nextJobId"], highest + 1)
        manifest["contents"] = ["accounting", *manifest["contents"]]
    return manifest


def copy_secrets(source: Path, to: Path) -> None:
    """Copy the entries of each mounted Secret; Kubernetes shows each as a link beside hidden folders."""
    for secret in sorted(source.iterdir()):
        (to / secret.name).mkdir(parents=True, exist_ok=True)
        for entry in secret.iterdir():
            if not entry.name.startswith(".."):
                (to / secret.name / entry.name).write_bytes(entry.read_bytes())


def task_of(env: Mapping[str, str], password: Path = Path("/etc/soperator/database/password")) -> BackupTask:
    """Return the task that the environment of the pod describes; raises BackupError if a variable is missing."""
    try:
        database = None
        if env.get("SOPERATOR_DATABASE_HOST"):
            database = Source(
                host=env["SOPERATOR_DATABASE_HOST"],
                port=int(env["SOPERATOR_DATABASE_PORT"]),
                user=env["SOPERATOR_DATABASE_USER"],
                database=env["SOPERATOR_DATABASE"],
                password=password.read_text().rstrip("\n"),
            )
        keep = env["SOPERATOR_KEEP"].split()
        return BackupTask(
            env["SOPERATOR_NAMESPACE"],
            env["SOPERATOR_CLUSTER"],
            env.get("SOPERATOR_SLURM", ""),
            database,
            keep,
            env["SOPERATOR_BACKUP"],
            env.get("SOPERATOR_REPOSITORY", ""),
            env.get("SOPERATOR_REPOSITORY_ID", ""),
        )
    except KeyError as error:
        raise BackupError(f"The variable {error.args[0]} is not set; the pod's template must set it.", True) from None


def _next_job_id(copied: Path) -> int:
    """Return the next job id of the copied state; 1 if it has no job."""
    file = copied / "job_state"
    return state.next_job_id(file.read_bytes()[:64]) if file.exists() else 1


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
