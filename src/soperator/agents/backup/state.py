"""Copies slurmctld's state while slurmctld writes it.

slurmctld writes each file beside its place, syncs it, and then links it into its place (`save_buf_to_state` of state_save.c), so an open
file is whole. A copy is torn only if the files are of different saves, so it is repeated until no file has changed meanwhile. A save is rare.

slurmctld saves a change up to 6 s later (`SAVE_MAX_WAIT` and one more second in state_save.c), so a backup waits for a save that began after it did.

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
#: Seconds in which slurmctld begins to save a change, and the most seconds for which a save in progress is waited for.
_BEGINS_WITHIN, _ENDS_WITHIN = 7.0, 60.0

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


def wait_for_save(source: Path, since: float) -> None:
    """Return when the file `job_state` has the jobs of the moment `since`, in seconds since 1970 by the clock of slurmctld's Node.

    It has them if its save began after that moment, or if slurmctld has begun none for as long as it may wait.
    """
    while (waited := time.time() - since) < _ENDS_WITHIN:
        if _saved_at(source) > since or (waited >= _BEGINS_WITHIN and not (source / "job_state.new").exists()):
            return
        time.sleep(_PAUSE)


def _saved_at(source: Path) -> int:
    """Return when the save of `job_state` began, in seconds since 1970; 0 without a readable one."""
    try:
        with (source / "job_state").open("rb") as file:
            return _header(file.read(64))[0]
    except (OSError, BackupError):
        return 0


def next_job_id(job_state: bytes) -> int:
    """Return the next job id that the header of the file `job_state` has; raises BackupError if it is no such header."""
    return _header(job_state)[1]


def _header(job_state: bytes) -> tuple[int, int]:
    """Return time and next job id of a header; raises BackupError if it is none.

    The header is a text with its length, the version of the protocol, the time, and the id, all big-endian (`dump_all_job_state` of job_mgr.c).
    """
    size = len(_VERSION)
    form = f">I{size}sHQI"
    if len(job_state) < struct.calcsize(form):
        raise BackupError("The file job_state of slurmctld is too short to have a header.")
    length, version, _, moment, number = struct.unpack_from(form, job_state)
    if length != size or version != _VERSION:
        raise BackupError("The file job_state of slurmctld has an unknown header.")
    return int(moment), int(number)


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
