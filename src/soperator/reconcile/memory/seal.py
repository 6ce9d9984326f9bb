"""The text in which state is stored: JSON after a checksum, so that an edited or truncated text is not used."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


def seal(fields: Json) -> str:
    """Return the fields as text."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return f"{_checksum(text)} {text}"


def unseal(text: str) -> Json | None:
    """Return the fields in a text; None if it is empty, or somebody edited it."""
    checksum, _, said = text.partition(" ")
    if not said or checksum != _checksum(said):
        return None
    found: Json = json.loads(said)
    return found


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
