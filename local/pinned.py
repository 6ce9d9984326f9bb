"""Third-party tools, each in its own virtual environment with pinned packages, so that `make venv` stays small."""

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from local.paths import REPOSITORY, cache, locked


def find(tool: str) -> Path | None:
    """Return the Python that runs the tool, or None if it is not installed."""
    folder = _folder(tool)
    return folder / "bin/python" if (folder / "ready").exists() else None


def build(tool: str) -> Path:
    """Return the Python that runs the tool, and first install requirements/TOOL.txt if the tool is missing."""
    folder = _folder(tool)
    with locked(folder.with_suffix(".lock")):
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            venv.create(folder, with_pip=True)
            pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            done = subprocess.run([*pip, "--require-hashes", f"--requirement={_requirements(tool)}"], check=False)
            if done.returncode:
                sys.exit(f"requirements/{tool}.txt was not installed; pip's errors are above.")
            (folder / "ready").touch()
    return folder / "bin/python"


def _requirements(tool: str) -> Path:
    return REPOSITORY / "requirements" / f"{tool}.txt"


def _folder(tool: str) -> Path:
    """Return the folder's name: a hash of the pinned packages and the Python that runs them."""
    digest = hashlib.sha256(_requirements(tool).read_bytes() + sys.version.encode()).hexdigest()[:16]
    return cache() / tool / digest
