"""SHA256SUMS of a release, and its signature by openssl with a key from the environment."""

import hashlib
import os
from pathlib import Path

from local.release import tools

#: The variable with a private key in PEM, such as `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` makes.
KEY = "RELEASE_KEY"
SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"


def write(folder: Path) -> Path:
    """Write SHA256SUMS over all files below the folder, in the form that `sha256sum --check` reads."""
    lines = [f"{_digest(path)}  {name}\n" for name, path in tools.files_below(folder).items()]
    path = folder / SUMS
    path.write_text("".join(lines))
    return path


def take_key() -> str:
    """Return the key in RELEASE_KEY, empty without one, and remove it from the environment of all programs that a release runs from now on."""
    return os.environ.pop(KEY, "")


def sign(folder: Path, key: str) -> Path | None:
    """Write SHA256SUMS.sig with a key; return None without one. The key reaches openssl through a pipe."""
    if not key:
        return None
    path = folder / SIGNATURE
    words = ["openssl", "dgst", "-sha256", "-sign", "/dev/stdin", "-out", str(path), str(folder / SUMS)]
    tools.run(words, stdin=key.encode())
    return path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
