"""`python -m tests.golden.version`: raise the renderer's version if the golden objects changed. `make golden` ends with it."""

import hashlib
import re
from pathlib import Path

from soperator.render import version

HERE = Path(__file__).parent
RECORD = HERE / "VERSION"


def digest() -> str:
    """A short name of everything that the golden files hold."""
    found = hashlib.sha256()
    for file in sorted([*HERE.glob("*/*.yaml"), *HERE.glob("plans/*.txt")]):
        found.update(f"{file.relative_to(HERE)}\0".encode() + file.read_bytes())
    return found.hexdigest()[:16]


def line(number: int) -> str:
    """What `VERSION` holds: the version of the renderer and the digest of the golden files that it made."""
    return f"{number} {digest()}\n"


def main() -> None:
    """Raise `render/version.py` by one where the digest differs from the record, and write the record."""
    recorded, made = RECORD.read_text().split() if RECORD.exists() else ("0", "")
    if made == digest():
        return
    number = int(recorded) + 1
    source = Path(version.__file__)
    source.write_text(re.sub(r"^VERSION = \d+$", f"VERSION = {number}", source.read_text(), flags=re.MULTILINE))
    RECORD.write_text(line(number))
    print(f"the golden objects changed: the renderer has version {number} now")


if __name__ == "__main__":
    main()
