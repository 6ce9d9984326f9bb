"""Runs restic: the repository is encrypted and deduplicated, and each file in it is found by the hash of its content.

Source of the exit codes: restic's manual, "Scripting", of 0.18: 10 there is no repository, 11 it is locked, 12 its password is another one.
"""

import json
import os
import re
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
#: Seconds for the first answer of a repository. restic itself repeats a request that fails for a quarter of an hour.
_ANSWERS = 30.0
_RETRY = re.compile(r"returned error, retrying after [0-9a-z.]+: (?:[A-Z]\w+: )?(.*)")
#: How stores say that they know the keys of a request not, or do not permit it.
_DENIED = re.compile(r"access.?denied|signature|access.?key|forbidden|not authorized|credential", re.IGNORECASE)


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

    def prepare(self, expected: str = "") -> str:
        """Create the repository if there is none, remove locks that a killed process has left, and return the id of the repository.

        Raises BackupError unless it has the id `expected`: the last backup is in that one. An empty id accepts any repository, and none.
        """
        found = self._identity()
        if not found and expected:
            raise BackupError(
                f"The repository at {self.place} is gone, which had backups (its id was {expected[:8]}): bring it back; "
                "or if it is lost, name another folder in spec.repository.path, and backups begin again there.",
                is_final=True,
                reason="RepositoryMissing",
            )
        if not found:
            self._run("init")
            found = self._identity()
        if expected and found != expected:
            raise BackupError(
                f"The repository at {self.place} is another one ({found[:8]}) than that of the last backup ({expected[:8]}): bring "
                "that back; or to go on in this one, create the SlurmBackup again under another name.",
                is_final=True,
                reason="RepositoryChanged",
            )
        self._run("unlock")
        return found

    def open(self) -> None:
        """Raise BackupError unless there is a repository with this password."""
        if not self._identity():
            raise BackupError(
                f"There is no repository at {self.place}: name the place into which backups were made.",
                is_final=True,
                reason="RepositoryMissing",
            )

    @property
    def place(self) -> str:
        """Where the repository is, for people: as the operator says it, otherwise as restic does."""
        return os.environ.get("SOPERATOR_REPOSITORY") or os.environ.get("RESTIC_REPOSITORY", "").removeprefix("s3:")

    def _identity(self) -> str:
        """Return the id of the repository, empty if there is none; raises BackupError if its store does not answer."""
        words = [*self.program, "cat", "config"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asked:
            try:
                printed, errors = asked.communicate(timeout=_ANSWERS)
            except subprocess.TimeoutExpired:
                asked.terminate()
                raise unanswered(self.place, asked.communicate()[1]) from None
        if asked.returncode == _NONE:
            return ""
        if asked.returncode:
            raise failure("cat", asked.returncode, errors or printed)
        return _id_of(printed)

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

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([*self.program, *words], capture_output=True, text=True, check=False)
        if done.returncode:
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


def _id_of(config: str) -> str:
    """Return the id in the configuration of a repository; raises BackupError for one that restic did not make, which no status could have."""
    try:
        found = str(json.loads(config)["id"])
    except (ValueError, KeyError, TypeError):
        found = ""
    if not re.fullmatch(r"[0-9a-f]{64}", found):
        raise BackupError(
            "The configuration of the repository has no id of restic: name another folder in spec.repository.path.",
            is_final=True,
            reason="RepositoryDamaged",
        )
    return found


def failure(verb: str, code: int, printed: str) -> BackupError:
    """Return the error for the exit code and the output of a verb of restic."""
    words = " ".join(printed.split())[-_LONGEST:]
    if code == _PASSWORD:
        return BackupError(
            "The password in the Secret is not that of the repository: correct spec.repository.password.",
            is_final=True,
            reason="WrongPassword",
        )
    if code == _LOCKED:
        return BackupError(
            f"The repository has been locked by another backup for {_PATIENCE}: wait until that has ended. "
            "restic ignores a lock of a killed pod when it is half an hour old.",
            reason="RepositoryLocked",
        )
    if verb == "check":
        return BackupError(
            f"The repository is damaged, and no snapshot was removed: restic check says: {words}",
            is_final=True,
            reason="RepositoryDamaged",
        )
    return BackupError(f"restic {verb} ended with {code}: {words}")


def unanswered(place: str, printed: str) -> BackupError:
    """Return the error for a repository that was not read in time, from what restic printed meanwhile: the cause of each of its attempts."""
    causes = _RETRY.findall(printed)
    words = causes[-1][-_LONGEST:].rstrip(".") if causes else "no answer"
    if _DENIED.search(words):
        return BackupError(
            f"The store of {place} refuses the keys: {words}: correct the Secret spec.repository.s3.credentialsSecretName, "
            "or give its user the rights to list, read, write and delete.",
            is_final=True,
            reason="StoreDenied",
        )
    return BackupError(
        f"The store of {place} gave no repository within {_ANSWERS:.0f} s: {words}: correct spec.repository.s3, or make the store reachable.",
        reason="StoreUnreachable",
    )
