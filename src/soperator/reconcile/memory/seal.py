"""The text in which memory is stored: JSON after a checksum, so that an edited or cut one is not believed."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


def seal(fields: Json) -> str:
    """The fields as text."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return f"{_checksum(text)} {text}"


def unseal(text: str) -> Json | None:
    """The fields in a text; None where it is empty, or somebody edited it."""
    checksum, _, said = text.partition(" ")
    if not said or checksum != _checksum(said):
        return None
    found: Json = json.loads(said)
    return found


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
