"""Runs restic: the repository is encrypted and deduplicated, and each file in it is found by the hash of its content.

Source of the exit codes: restic's manual, "Scripting", of 0.18: 10 there is no repository, 11 it is locked, 12 its password is another one.
"""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soperator.agents.backup.errors import BackupError

_NONE, _LOCKED, _PASSWORD = 10, 11, 12
#: How long another backup into the same repository is waited for.
_PATIENCE = "10m"
_LONGEST = 300


@dataclass(frozen=True)
class RepositorySnapshot:
    """One backup in the repository: its short name, its size in bytes before deduplication, what it added, and how many files it has."""

    name: str
    size: int
    added: int
    files: int


@dataclass(frozen=True)
class Restic:
    """One repository; `host` is the name under which a cluster's snapshots are in it, `maker` that of the SlurmBackup that makes some of them."""

    host: str
    program: Sequence[str] = ("restic", "--no-cache", "--retry-lock", _PATIENCE)
    maker: str = ""

    def prepare(self) -> None:
        """Create the repository if there is none, and remove locks that a killed process has left."""
        if self._run("cat", "config", accepted=(_NONE,)).returncode == _NONE:
            self._run("init")
        self._run("unlock")

    def open(self) -> None:
        """Raise BackupError unless there is a repository with this password."""
        if self._run("cat", "config", accepted=(_NONE,)).returncode == _NONE:
            raise BackupError(
                "The repository is empty: name the claim and the folder into which backups were made.", True
            )

    def backup(self, *folders: Path) -> RepositorySnapshot:
        """Back up folders as one snapshot. Symbolic links are stored as links and never followed."""
        printed = self._run("backup", "--json", "--host", self.host, "--tag", self._mine, *map(str, folders)).stdout
        return snapshot_of(printed)

    def check(self, part: str) -> None:
        """Raise BackupError if the repository is damaged: all of its structure is read, and `part` of its data, such as 64M or 100%."""
        self._run("check", f"--read-data-subset={part}")

    def forget(self, keep: Sequence[str]) -> None:
        """Remove the snapshots of this SlurmBackup that the options, such as --keep-last=7, do not keep, and the data that only they contain."""
        self._run("forget", "--host", self.host, "--tag", self._mine, "--group-by", "host,tags", *keep, "--prune")

    @property
    def _mine(self) -> str:
        """The tags of the snapshots of this SlurmBackup; restic finds only snapshots with both tags."""
        return f"soperator,backup={self.maker}"

    def restore(self, snapshot: str, folder: str, to: Path) -> None:
        """Restore a folder of a snapshot; each piece of data is compared with its hash."""
        self._run("restore", f"{snapshot}:{folder}", "--target", str(to))

    def resolve(self, snapshot: str) -> str:
        """Return the whole id of a snapshot of this cluster; raises BackupError if there is none."""
        printed = self._run("snapshots", "--json", "--host", self.host, "--tag", "soperator").stdout
        found = [str(each["id"]) for each in sorted(json.loads(printed) or [], key=lambda each: each["time"])]
        chosen = found[-1:] if snapshot == "latest" else [each for each in found if each.startswith(snapshot)]
        if len(chosen) != 1:
            names = ", ".join(each[:8] for each in found[-10:]) or "none"
            raise BackupError(
                f"Snapshot {snapshot} of {self.host}: the repository has {names}: name one of them.", True
            )
        return chosen[0]

    def _run(self, *words: str, accepted: Sequence[int] = ()) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([*self.program, *words], capture_output=True, text=True, check=False)
        if done.returncode and done.returncode not in accepted:
            raise failure(words[0], done.returncode, done.stderr or done.stdout)
        return done


def snapshot_of(printed: str) -> RepositorySnapshot:
    """Return the snapshot from what `restic backup --json` printed; raises BackupError without a summary."""
    for line in reversed(printed.splitlines()):
        said: dict[str, Any] = json.loads(line)
        if said.get("message_type") == "summary" and said.get("snapshot_id"):
            return RepositorySnapshot(
                name=str(said["snapshot_id"])[:8],
                size=int(said.get("total_bytes_processed", 0)),
                added=int(said.get("data_added_packed", said.get("data_added", 0))),
                files=int(said.get("total_files_processed", 0)),
            )
    raise BackupError("restic backup printed no summary.")


def failure(verb: str, code: int, printed: str) -> BackupError:
    """Return the error for the exit code and the output of a verb of restic."""
    words = " ".join(printed.split())[-_LONGEST:]
    if code == _PASSWORD:
        return BackupError(
            "The password in the Secret is not that of the repository: correct spec.repository.password.", True
        )
    if code == _LOCKED:
        return BackupError(f"The repository has been locked by another backup for {_PATIENCE}.")
    if verb == "check":
        return BackupError(f"The repository is damaged, and no snapshot was removed: restic check says: {words}", True)
    return BackupError(f"restic {verb} ended with {code}: {words}")
