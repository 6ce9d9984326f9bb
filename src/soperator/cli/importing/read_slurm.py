"""Reads the files of Slurm's configuration folder for an import: those that are named, those beside slurm.conf, and those that they name."""

from collections.abc import Sequence
from pathlib import Path

from soperator.importers.parts.report import UnreadableInputError
from soperator.importers.slurm_conf.files import SlurmFiles, is_pattern, wanted_paths

#: The largest file that is read.
_LARGEST = 4 << 20


def read_slurm_files(given: Sequence[Path]) -> SlurmFiles:
    """Return the given files, of which one is slurm.conf or its folder, and every existing file that they name. Raises UnreadableInputError."""
    named = [path / "slurm.conf" if path.is_dir() else path for path in given]
    main = next((path for path in named if path.name == "slurm.conf"), named[0] if len(named) == 1 else None)
    if main is None:
        shown = ", ".join(map(str, given))
        raise UnreadableInputError(
            f"-f: {shown}: none of the files is slurm.conf: give it, or the folder that contains it"
        )
    files = SlurmFiles(str(main), {str(path): _text(path) for path in named})
    tried: set[str] = set()
    while found := wanted_paths(files) - tried:
        tried |= found
        paths = {path for each in found for path in _existing(each)} - files.texts.keys()
        files = SlurmFiles(files.main, {**files.texts, **{path: _text(Path(path)) for path in sorted(paths)}})
    return files


def _existing(pattern: str) -> list[str]:
    folder, name = Path(pattern).parent, Path(pattern).name
    found = folder.glob(name) if is_pattern(name) else [folder / name]
    return [str(path) for path in found if path.is_file()]


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise UnreadableInputError(
                f"{path}: it has more than {_LARGEST >> 20} MiB, so it is no file of Slurm's configuration"
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return path.read_bytes().decode("utf-8", "backslashreplace") + "\0"  # no text, which the report then says
    except OSError as error:
        raise UnreadableInputError(f"{path}: it cannot be read: {error.strerror}") from None
