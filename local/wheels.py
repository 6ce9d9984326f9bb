"""Installs the operator's Python packages outside the image for the image's Python, so that the image build needs no network.

Debian's Python has no pip, and the image's Python has another version: pip runs from a virtual environment, and it selects wheels for the
image's Python.
"""

import hashlib
import shutil
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

from local.paths import REPOSITORY, cache

PINNED = REPOSITORY / "requirements/runtime.txt"
PYTHON = "3.13"
#: Not for a pod: commands, and rich, which structlog and typer load where they find it, 5 MiB of the operator's memory for colours in a terminal.
LEFT_OUT = ("bin", "rich", "pygments", "markdown_it", "mdurl")


def packages(run: Callable[[Sequence[str]], int]) -> Path:
    """Return a folder with the pinned packages, created once per requirements file; `run` runs a command or raises."""
    key = hashlib.sha256(PINNED.read_bytes() + repr((PYTHON, LEFT_OUT)).encode()).hexdigest()[:16]
    folder = cache() / "python" / key
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        choice = [
            "--only-binary=:all:",
            f"--python-version={PYTHON}",
            "--implementation=cp",
            "--no-deps",
            "--no-compile",
        ]
        where = [f"--cache-dir={cache() / 'pip'}", f"--target={partial}"]
        run([*_pip(), "install", "--quiet", *where, *choice, "--require-hashes", f"--requirement={PINNED}"])
        for name in LEFT_OUT:
            shutil.rmtree(partial / name, ignore_errors=True)
        partial.rename(folder)
    return folder


def _pip() -> list[str]:
    lender = cache() / "python" / "venv"
    if not (lender / "bin" / "pip").exists():
        venv.create(lender, with_pip=True, clear=True)
    return [str(lender / "bin" / "python"), "-m", "pip"]
