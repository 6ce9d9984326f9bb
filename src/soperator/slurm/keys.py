"""The files of Slurm's and munge's keys at each stage of a rotation; with stages, every daemon can verify what the others sign.

If slurm.jwks exists, auth/slurm reads it instead of slurm.key: a list of keys, each with an id, one of which is the default and signs. A daemon
verifies a token without an id with the default key, so daemons that only have slurm.key are accepted while that key signs. Source: internal.c of
auth/slurm in 24.11.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Stage = Literal["", "Known", "Signing", "Settling", "Alone", "Laid", "Taken"]

#: The id in slurm.jwks of a key that was created without an id; no request can have this name.
_FIRST = ":first"


@dataclass(frozen=True)
class RotationRecord:
    """The record of a rotation on a Secret: the last request, its stage (empty: complete), and the time since which no daemon signs with the
    former key.
    """

    request: str = ""
    stage: Stage = ""
    since: float = 0.0


@dataclass(frozen=True)
class Version:
    """The keys that a Secret has: the digest of its files, and the last rotation with its stage, from its annotations."""

    digest: str
    request: str = ""
    stage: Stage = ""


@dataclass(frozen=True)
class KeyContent:
    """The content of a Secret: its files, the record of a rotation, and whether a person provided it. Its repr shows no key."""

    files: Mapping[str, bytes] = field(repr=False)
    notes: Mapping[str, str] = field(default_factory=dict)
    is_brought: bool = False

    @property
    def digest(self) -> str:
        """A hash of the files, 32 hex digits; keys are random, so the hash does not reveal them."""
        return _digest(sorted(self.files.items()))

    @property
    def checksum(self) -> str:
        """A hash of the whole content, 32 hex digits."""
        return _digest([*sorted(self.files.items()), *sorted(self.notes.items()), ("", str(self.is_brought))])

    def is_whole(self, wanted: tuple[str, ...]) -> bool:
        """Return whether each required file exists and is not empty."""
        return all(self.files.get(each) for each in wanted)


def _digest(pairs: Sequence[tuple[str, bytes | str]]) -> str:
    found = hashlib.sha256()
    for name, value in pairs:
        content = value if isinstance(value, bytes) else value.encode()
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()[:32]


def rotated(content: Mapping[str, bytes], record: RotationRecord, fresh: bytes) -> dict[str, bytes]:
    """Return the files at a stage, from those of the stage before; `fresh` is the new key, if this stage creates one."""
    match record.stage:
        case "Laid":
            return {"munge.key": fresh}
        case "Known":
            return _slurm([*known(content), (record.request, fresh)])
        case "Signing":
            return _slurm(sorted(known(content), key=lambda each: each[0] != record.request))
        case "Alone":
            return _slurm([each for each in known(content) if each[0] == record.request])
        case _:
            return dict(content)


def known(content: Mapping[str, bytes]) -> list[tuple[str, bytes]]:
    """Return each key with its id; the key that signs comes first."""
    if "slurm.jwks" not in content:
        return [(_FIRST, content["slurm.key"])]
    found = json.loads(content["slurm.jwks"])["keys"]
    found = sorted(found, key=lambda each: each.get("use") != "default")
    return [(each["kid"], base64.b64decode(each["k"].replace("-", "+").replace("_", "/") + "==")) for each in found]


def _slurm(found: list[tuple[str, bytes]]) -> dict[str, bytes]:
    keys = [
        {"alg": "HS256", "kty": "oct", "kid": kid, "k": base64.b64encode(key).decode()}
        | ({"use": "default"} if number == 0 else {})
        for number, (kid, key) in enumerate(found)
    ]
    return {"slurm.key": found[0][1], "slurm.jwks": json.dumps({"keys": keys}).encode()}
