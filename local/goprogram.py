"""Programs for single tests, each built once from a Go module in the repository, and kept in the cache under a hash of all inputs."""

import hashlib
import shutil
import subprocess
from pathlib import Path

from local import golang
from local.paths import cache, locked
from local.progress import Failure, say

COMMAND = ("build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w")


def place(sources: Path, folder: str, program: str) -> Path:
    """Return the path of a program of the module in `sources`; it may not be built yet."""
    digest = hashlib.sha256(repr(COMMAND).encode())
    for file in sorted(sources.iterdir()):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return cache() / folder / digest.hexdigest()[:16] / program


def find(sources: Path, folder: str, program: str) -> Path | None:
    """Return the path of a program; None if it is not built."""
    path = place(sources, folder, program)
    return path if path.exists() else None


def build(sources: Path, folder: str, program: str, expected: str, package: str = ".") -> Path:
    """Return the path of a program, and build it if it is missing; `expected` says how long that takes.

    `package` is what to build: the module in `sources` itself, or one that its go.mod names as a tool.
    """
    path = place(sources, folder, program)
    with locked(path.parent.with_suffix(".lock")):
        if not path.exists():
            say(f"building {program}; {expected}")
            _build(sources, path, cache() / folder / "go", package)
    return path


def _build(sources: Path, path: Path, folders: Path, package: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    own = {"GOMODCACHE": f"{folders}/mod", "GOCACHE": f"{folders}/build", "CGO_ENABLED": "0"}
    command = [str(golang.find()), *COMMAND, "-o", str(new), package]
    done = subprocess.run(
        command, cwd=sources, env=golang.environment() | own, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failure(f"{path.name} was not built:\n{done.stderr[-2000:]}")
    new.replace(path)
    shutil.rmtree(folders, ignore_errors=True)
