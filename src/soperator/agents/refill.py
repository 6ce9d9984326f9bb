"""Replaces an existing jail by a verified copy of the image, or adds the image's files that the jail lacks.

Everything is a rename on one file system, and a journal (`moving`) exists from the first rename to the last record, so that a killed Job continues
from the state that it finds.

The old root belongs to its users, who may have put links anywhere in it. So paths are walked by open folders, and no link is ever followed.
"""

import json
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from soperator.agents.errors import Refusal
from soperator.agents.merge_passwd import FILES, merged

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class Journal:
    """The request in progress: its name, its mode (Overwrite or Missing), the image, and the paths to keep."""

    request: str
    mode: str
    image: str
    keep: tuple[str, ...]


def read_journal(records: Path) -> Journal | None:
    """Return the journal of an interrupted Job, or None."""
    with suppress(FileNotFoundError):
        said = json.loads((records / "moving").read_text())
        return Journal(**{**said, "keep": tuple(said["keep"])})
    return None


def write_journal(records: Path, journal: Journal) -> None:
    """Write the journal of the moves before they begin."""
    new = records / "moving.new"
    with new.open("w") as file:
        json.dump(asdict(journal), file)
        file.flush()
        os.fsync(file.fileno())
    new.rename(records / "moving")


def overwrite(claim: Path, journal: Journal) -> None:
    """Move the kept paths from `root` to `root.partial`, and exchange the two; the old root stays as `root.previous`."""
    root, partial, previous = claim / "root", claim / "root.partial", claim / "root.previous"
    if partial.exists() and root.exists():
        try:
            for path in journal.keep:
                move(root, partial, path)
        except (OSError, Refusal) as error:
            _give_back(claim, journal)
            raise Refusal(
                f"{error} The previous jail is restored unchanged; correct spec.jail.refill.keep.", True
            ) from error
        _carry_accounts(root, partial)
        if previous.exists():
            shutil.rmtree(previous)
        root.rename(previous)
    if partial.exists():
        partial.rename(root)


def present(root: Path, keep: Sequence[str]) -> tuple[str, ...]:
    """Return those of the paths that a root has. Raises Refusal for a path that is a link, before anything is moved."""
    found = []
    for path in keep:
        with _parent(root, path) as (folder, name):
            kind = _kind(folder, name) if folder is not None else ""
            if kind == "link":
                raise Refusal(f"{path} of spec.jail.refill.keep is a symbolic link: name its target.", True)
            if kind:
                found.append(path)
    return tuple(found)


def move(source: Path, target: Path, path: str) -> None:
    """Rename one path of a root into another root, replacing an existing one. Does nothing if the first root no longer has it."""
    with _parent(source, path) as (origin, name):
        if origin is None or not _kind(origin, name):
            return
        with _parent(target, path, make=True) as (folder, _):
            assert folder is not None
            match _kind(folder, name):
                case "folder":
                    shutil.rmtree(name, dir_fd=folder)
                case "":
                    pass
                case _:
                    os.unlink(name, dir_fd=folder)
            try:
                os.rename(name, name, src_dir_fd=origin, dst_dir_fd=folder)
            except OSError as error:
                raise Refusal(f"{path} cannot be kept: {error.strerror}.", True) from error


def put_back(partial: Path, root: Path) -> int:
    """Rename into `root` every path of `partial` that it lacks, and return their number; a folder with its content counts once."""
    with _opened(partial) as origin, _opened(root) as target:
        return _fill_gaps(origin, target)


def _fill_gaps(origin: int, target: int) -> int:
    filled = 0
    for name in sorted(os.listdir(origin)):
        here, there = _kind(origin, name), _kind(target, name)
        if not there:
            os.rename(name, name, src_dir_fd=origin, dst_dir_fd=target)
            filled += 1
        elif here == there == "folder":
            with _opened(name, origin) as below, _opened(name, target) as beside:
                filled += _fill_gaps(below, beside)
    return filled


def _give_back(claim: Path, journal: Journal) -> None:
    """Undo all moves; the copy then lacks these files, and the next request creates it again."""
    for path in reversed(journal.keep):
        with _parent(claim / "root", path) as (folder, name):
            if folder is not None and not _kind(folder, name):
                move(claim / "root.partial", claim / "root", path)
    records = claim / ".soperator"
    (records / "manifest").unlink(missing_ok=True)
    (records / "moving").unlink()


def _carry_accounts(root: Path, partial: Path) -> None:
    old, new = _read_all(root), _read_all(partial)
    for name, text in merged(old, new).items():
        if text != new.get(name):
            _write(partial / "etc", name, text, 0o640 if name.endswith("shadow") else 0o644)


def _read_all(root: Path) -> dict[str, str]:
    found = {}
    with suppress(OSError), _opened(root) as top, _opened("etc", top) as etc:
        for name in FILES:
            with suppress(OSError):
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=etc)
                with os.fdopen(descriptor, "rb") as file:
                    found[name] = file.read(_MAX_BYTES).decode("utf-8", "surrogateescape")
    return found


def _write(folder: Path, name: str, text: str, mode: int) -> None:
    """Replace a file atomically; its owner, group and mode stay the same."""
    new, path = folder / f".{name}.new", folder / name
    new.write_text(text, errors="surrogateescape")
    with suppress(FileNotFoundError):
        before = path.lstat()
        os.chown(new, before.st_uid, before.st_gid)
        mode = stat.S_IMODE(before.st_mode)
    new.chmod(mode)
    new.rename(path)


def _kind(folder: int, name: str) -> str:
    """Return the type of a name: folder, link, file, or nothing."""
    try:
        mode = os.lstat(name, dir_fd=folder).st_mode
    except FileNotFoundError:
        return ""
    return "folder" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "file"


@contextmanager
def _opened(path: Path | str, above: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, _FOLDER, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _parent(root: Path, path: str, make: bool = False) -> Iterator[tuple[int | None, str]]:
    """Open the parent folder of a path in a root, without following a link; None if a part of the path does not exist."""
    *above, name = path.strip("/").split("/")
    here: int | None = os.open(root, _FOLDER)
    try:
        for part in above:
            assert here is not None
            below = _below(here, part, path, make)
            os.close(here)
            here = below
            if here is None:
                break
        yield here, name
    finally:
        if here is not None:
            os.close(here)


def _below(folder: int, part: str, path: str, make: bool) -> int | None:
    try:
        if make:
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=folder)
        return os.open(part, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refusal(
            f"{path} cannot be kept, because its part {part} is not a folder: {error.strerror}.", True
        ) from error
