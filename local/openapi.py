"""A stock generator of clients for OpenAPI documents, in a virtual environment of its own, for the test of the client that it makes of slurmrestd's.

It is no part of our own environment: nothing else needs it, and what it makes needs its HTTP client, which is not ours.
"""

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from local.paths import REPOSITORY, cache, locked

PINNED = REPOSITORY / "requirements/openapi.txt"


def _place() -> Path:
    """Where it lies: a folder named after its pinned packages and the Python that runs them."""
    digest = hashlib.sha256(PINNED.read_bytes() + sys.version.encode()).hexdigest()[:16]
    return cache() / "openapi" / digest


def find() -> Path | None:
    """The Python with which `-m openapi_python_client` runs; None where it was not installed."""
    place = _place()
    return place / "bin/python" if (place / "ready").exists() else None


def build() -> Path:
    """Have it: installed now if it is not there."""
    place = _place()
    with locked(place.with_suffix(".lock")):
        if not (place / "ready").exists():
            shutil.rmtree(place, ignore_errors=True)
            venv.create(place, with_pip=True)
            pip = [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            done = subprocess.run([*pip, "--require-hashes", f"--requirement={PINNED}"], check=False)
            if done.returncode:
                sys.exit("The generator of clients was not installed; pip's errors are above.")
            (place / "ready").touch()
    return place / "bin/python"


if __name__ == "__main__":
    print(build())
