"""Reads the files of Slurm's configuration folder for an import: those that are named, those beside slurm.conf, and those that they name."""

import re
from collections.abc import Sequence
from pathlib import Path

from soperator.importers.parts.report import UnreadableInputError
from soperator.importers.slurm_conf.files import DEEPEST_INCLUDE, SlurmFiles, is_pattern, wanted_paths

#: The largest file that is read, and the most bytes of all files: an Include may name any folder.
_LARGEST, _MOST = 4 << 20, 32 << 20


def read_slurm_files(given: Sequence[Path]) -> SlurmFiles:
    """Return the given files, of which one is slurm.conf or its folder, and every existing file that they name. Raises UnreadableInputError."""
    named = [_main_of(path) if path.is_dir() else path for path in given]
    main = next((path for path in named if path.name == "slurm.conf"), named[0] if len(named) == 1 else None)
    if main is None:
        shown = ", ".join(map(str, given))
        raise UnreadableInputError(
            f"-f: {shown}: none of the files is slurm.conf: give it, or the folder that contains it"
        )
    texts = {str(path): _text(path) for path in named}
    files, size = SlurmFiles(str(main), texts), sum(map(len, texts.values()))
    tried: set[str] = set()
    for _ in range(DEEPEST_INCLUDE + 1):
        found = wanted_paths(files) - tried
        tried |= found
        paths = {path for each in found for path in _existing(each)} - texts.keys()
        for path in sorted(paths):
            texts[path] = _text(Path(path))
            size += len(texts[path])
            if size > _MOST:
                raise UnreadableInputError(
                    f"{path}: the files that slurm.conf names have more than {_MOST >> 20} MiB: remove the Include that names it"
                )
        if not paths:
            return files
    raise UnreadableInputError(
        f"{main}: its includes are more than {DEEPEST_INCLUDE} levels deep: join some of the files"
    )


def _main_of(folder: Path) -> Path:
    path = folder / "slurm.conf"
    if path.exists() and not path.is_file():
        raise UnreadableInputError(f"{path}: it is no file: give the folder that contains slurm.conf")
    return path


def _existing(pattern: str) -> list[str]:
    folder, name = Path(pattern).parent, Path(pattern).name
    try:
        # Python reads ** as all folders below; glob(7) does not.
        found = folder.glob(re.sub(r"\*+", "*", name)) if is_pattern(name) else [folder / name]
        return [str(path) for path in found if path.is_file()]
    except OSError as error:
        raise UnreadableInputError(f"{pattern}: it cannot be read: {error.strerror}") from None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)  # its size says nothing of a device
    except OSError as error:
        raise UnreadableInputError(f"{path}: it cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise UnreadableInputError(
            f"{path}: it has more than {_LARGEST >> 20} MiB, so it is no file of Slurm's configuration"
        )
    content = content.replace(b"\r\n", b"\n")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("utf-8", "backslashreplace") + "\0"  # no text, which the report then says
