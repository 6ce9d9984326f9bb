"""Runs the programs that a release needs, finds helm, and writes archives that are the same for the same content."""

import gzip
import io
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from local import binaries
from local.paths import REPOSITORY
from local.progress import Failure


def run(words: Sequence[str], *, environment: Mapping[str, str] | None = None, stdin: bytes | None = None) -> str:
    """Run a program in the repository, and return what it prints; raise Failure with its errors if it fails."""
    done = subprocess.run(words, cwd=REPOSITORY, env=environment, input=stdin, capture_output=True, check=False)
    if done.returncode:
        output = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise Failure(f"{' '.join(words[:3])} failed:\n{output[-2000:]}")
    return done.stdout.decode(errors="replace")


def helm() -> str:
    """Return the path of helm: the one that `make built` built, or the one on PATH."""
    built = binaries.folder() / "helm"
    found = str(built) if built.exists() else shutil.which("helm")
    if not found:
        raise Failure("helm is not there: `make built` builds it, or install it")
    return found


def commit_time() -> int:
    """Return the time of the commit in seconds since 1970, which is the time of every file in an archive of the release."""
    return int(run(["git", "log", "-1", "--format=%ct"]))


def write_tar(to: Path, files: Mapping[str, Path], *, compressed: bool) -> None:
    """Write an archive (name → file) with sorted names, the time of the commit, and no user, so that equal files make equal bytes."""
    when, to_compress = commit_time(), io.BytesIO()
    with to.open("wb") as out, tarfile.open(fileobj=to_compress if compressed else out, mode="w") as tar:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = files[name].stat().st_size, when
            with files[name].open("rb") as content:
                tar.addfile(entry, content)
    if compressed:
        to.write_bytes(gzip.compress(to_compress.getvalue(), mtime=0))


def files_below(folder: Path, prefix: str = "") -> dict[str, Path]:
    """Return each file below a folder by its relative path behind a prefix."""
    return {f"{prefix}{path.relative_to(folder)}": path for path in sorted(folder.rglob("*")) if path.is_file()}
