"""Restores a cluster's claims before any of its daemons runs, in two pods: one that reads a whole snapshot, and one that writes.

The first pod restores the snapshot into scratch space, where restic compares every byte with its hash, and passes the keys and objects to
`soperator restore`. So it finds damage before any data changes. The second pod writes the database and the state to their claims. It
renames existing data and never deletes it, and puts each part in its place by a rename, so both pods may be killed at any time and run
again.
"""

import base64
import json
import os
import shutil
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from soperator.agents.backup import database
from soperator.agents.backup.errors import BackupError
from soperator.agents.backup.restic import Restic
from soperator.agents.backup.take import FORMAT

STATE_UID = 64030
BACKUP, KEYS = "/soperator/backup", "/soperator/keys"
_ASIDE = "before-restore-"
_FIXED = frozenset({"lost+found"})


@dataclass(frozen=True)
class Places:
    """The paths in the pod: scratch space on the Node, scratch in memory for keys, and the claims."""

    scratch: Path = Path("/soperator/scratch")
    private: Path = Path("/soperator/private")
    state: Path = Path("/var/spool/slurmctld")
    database: Path = Path("/var/lib/mysql")
    sockets: Path = Path("/run/mysqld")


def read(restic: Restic, snapshot: str, places: Places | None = None) -> None:
    """Read a whole snapshot, and leave its keys, objects and manifest as one file for `soperator restore`; raises BackupError."""
    places = places or Places()
    restic.open()
    chosen = restic.resolve(snapshot)
    restored = places.scratch / "backup"
    restic.restore(chosen, KEYS, places.private / "keys")
    restic.restore(chosen, BACKUP, restored)
    refuse_special_files(places.private / "keys", restored)
    manifest = checked(json.loads((restored / "manifest.json").read_text()), restic.host)
    found = {
        "snapshot": chosen[:8],
        "manifest": manifest,
        "objects": json.loads((restored / "objects.json").read_text()),
        "secrets": secrets(places.private / "keys"),
    }
    partial = places.private / "found.partial"
    partial.write_text(json.dumps(found))
    partial.rename(places.private / "found.json")


def write(restic: Restic, snapshot: str, places: Places | None = None) -> None:
    """Write the database and the state of a snapshot to their claims; raises BackupError."""
    places = places or Places()
    restic.open()
    chosen = restic.resolve(snapshot)
    restored = places.scratch / "backup"
    restic.restore(chosen, BACKUP, restored)
    refuse_special_files(restored)
    manifest = checked(json.loads((restored / "manifest.json").read_text()), restic.host)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    if "database" in manifest:
        _restore_database(restored / "database.sql", manifest["database"]["name"], places, stamp)
    place_state(restored / "state", places.state, stamp)


def refuse_special_files(*folders: Path) -> None:
    """Raise BackupError if a folder has anything but files and folders: a backup has nothing else, and a planted link would be read through."""
    for top in folders:
        for folder, inner, files in os.walk(top):
            for name in (*inner, *files):
                path = Path(folder, name)
                if not stat.S_ISDIR(mode := path.lstat().st_mode) and not stat.S_ISREG(mode):
                    raise BackupError(
                        f"The snapshot has {path.relative_to(top)}, which is neither a file nor a folder, so no backup of the operator has it: "
                        "choose another --snapshot, and find out who wrote it.",
                        True,
                    )


def checked(manifest: dict[str, Any], host: str) -> dict[str, Any]:
    """Return the manifest; raises BackupError if it is of a later format, or of another cluster."""
    if int(manifest.get("format", 0)) > FORMAT:
        made = manifest.get("operator", "unknown")
        raise BackupError(f"The backup was made by a newer operator ({made}): restore it with that version.", True)
    of = f"{manifest.get('namespace')}/{manifest.get('cluster')}"
    if of != host:
        raise BackupError(f"The backup is one of {of}, not of {host}.", True)
    return manifest


def secrets(folder: Path) -> dict[str, dict[str, str]]:
    """Return the entries of each Secret in base64, as Kubernetes takes them."""
    return {
        each.name: {entry.name: base64.b64encode(entry.read_bytes()).decode() for entry in sorted(each.iterdir())}
        for each in sorted(folder.iterdir())
    }


def place_state(restored: Path, claim: Path, stamp: str) -> None:
    """Write a state to a claim; existing content is moved into a folder beside it."""
    arrived = claim / ".restored"
    shutil.rmtree(arrived, ignore_errors=True)
    shutil.copytree(restored, arrived, symlinks=True)
    for folder, folders, files in os.walk(arrived):
        Path(folder).chmod(0o700)
        for name in (*folders, *files):
            os.chown(Path(folder, name), STATE_UID, STATE_UID, follow_symlinks=False)
    os.chown(arrived, STATE_UID, STATE_UID)
    former = [
        each
        for each in claim.iterdir()
        if each != arrived and each.name not in _FIXED and not each.name.startswith(_ASIDE)
    ]
    if former:
        aside = claim / f"{_ASIDE}{stamp}"
        aside.mkdir(mode=0o700, exist_ok=True)
        for each in former:
            each.rename(aside / each.name)
    for each in list(arrived.iterdir()):
        each.rename(claim / each.name)
    arrived.rmdir()
    os.sync()


def _restore_database(dump: Path, name: str, places: Places, stamp: str) -> None:
    if not database.is_whole(dump):
        raise BackupError("The dump of the database in the backup is incomplete.", True)
    former = places.database / "data"
    if former.exists():
        former.rename(places.database / f"data.{_ASIDE}{stamp}")
    database.load(dump, places.database, name, places.sockets)
