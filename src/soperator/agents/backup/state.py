"""Copies slurmctld's state while slurmctld writes it.

slurmctld writes each file beside its place, syncs it, and then links it into its place (`save_buf_to_state` of state_save.c), so an open
file is whole. A copy is torn only if the files are of different saves, so it is repeated until no file has changed meanwhile. A save is rare.

Scripts of jobs are in folders of their own, which are made before the file `job_state` names the job and removed after its end; they are copied
before the files and once more after them, so that every job of the copy has its script.
"""

import os
import shutil
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from soperator.agents.backup.errors import BackupError

#: A leader changes it every few seconds, and it means nothing later.
_IGNORED = frozenset({"heartbeat", "lost+found"})
_ATTEMPTS, _PAUSE = 30, 0.5
_VERSION = b"PROTOCOL_VERSION\0"

Identities = dict[str, tuple[int, int, int]]


def copy_state(source: Path, to: Path, attempts: int = _ATTEMPTS, pause: float = _PAUSE) -> int:
    """Copy the state and return how many times it was copied; raises BackupError if it changed during every attempt, or if there is none."""
    for attempt in range(1, attempts + 1):
        before = _identities(source)
        if "job_state" in before or "clustername" in before:
            _copy_scripts(source, to)
            _copy_files(source, to, before)
            _copy_scripts(source, to)
            if _identities(source) == before:
                return attempt
        time.sleep(pause)
    if "clustername" not in _identities(source):
        raise BackupError(f"The state in {source} has no file clustername: slurmctld has not written it yet.")
    raise BackupError(f"The state of slurmctld changed during each of {attempts} copies: its volume may be too slow.")


def next_job_id(job_state: bytes) -> int:
    """Return the next job id that the header of the file `job_state` has; raises BackupError if it is no such header.

    The header is a text with its length, the version of the protocol, the time, and the id, all big-endian (`dump_all_job_state` of job_mgr.c).
    """
    size = len(_VERSION)
    form = f">I{size}sHQI"
    if len(job_state) < struct.calcsize(form):
        raise BackupError("The file job_state of slurmctld is too short to have a header.")
    length, version, _, _, number = struct.unpack_from(form, job_state)
    if length != size or version != _VERSION:
        raise BackupError("The file job_state of slurmctld has an unknown header.")
    return int(number)


def _identities(source: Path) -> Identities:
    """Return the identity of each complete file of the state."""
    found: Identities = {}
    for entry in os.scandir(source):
        if entry.is_file(follow_symlinks=False) and entry.name not in _IGNORED and not entry.name.endswith(".new"):
            try:
                known = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            found[entry.name] = (known.st_ino, known.st_size, known.st_mtime_ns)
    return found


def _copy_files(source: Path, to: Path, wanted: Identities) -> None:
    to.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        try:
            shutil.copyfile(source / name, to / name, follow_symlinks=False)
        except FileNotFoundError:  # replaced just now, so the next comparison differs
            continue
    for entry in list(os.scandir(to)):
        if entry.is_file(follow_symlinks=False) and entry.name not in wanted:
            Path(entry.path).unlink()


def _copy_scripts(source: Path, to: Path) -> None:
    for path in _files_below(source):
        target = to / path.relative_to(source)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f"{target.name}.partial")
            try:
                shutil.copyfile(path, partial, follow_symlinks=False)
            except FileNotFoundError:  # its job has ended
                continue
            partial.rename(target)


def _files_below(source: Path) -> Iterator[Path]:
    for entry in os.scandir(source):
        if entry.is_dir(follow_symlinks=False) and entry.name.startswith("hash."):
            for folder, _, files in os.walk(entry.path):
                yield from (Path(folder, name) for name in files if not Path(folder, name).is_symlink())
