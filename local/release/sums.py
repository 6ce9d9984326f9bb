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


def sign(folder: Path) -> Path | None:
    """Write SHA256SUMS.sig with the key in RELEASE_KEY; return None without a key. The key reaches openssl through a pipe."""
    key = os.environ.get(KEY, "")
    if not key:
        return None
    path = folder / SIGNATURE
    words = ["openssl", "dgst", "-sha256", "-sign", "/dev/stdin", "-out", str(path), str(folder / SUMS)]
    tools.run(words, stdin=key.encode())
    return path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
