"""The files of Slurm's and munge's keys at each stage of a rotation.

slurm.jwks is what auth/slurm reads when it is there, before slurm.key: a list of keys with an id each, of which one is the default, by which it
signs. A token without an id is read by the default key, so daemons that have slurm.key alone are understood as long as that one signs.
Source: internal.c of auth/slurm in 24.11.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Stage = Literal["", "Known", "Signing", "Settling", "Alone", "Laid", "Taken"]

#: A key that was made without an id has this one in slurm.jwks; no request can be called so.
_FIRST = ":first"


@dataclass(frozen=True)
class Record:
    """What is noted on a Secret: the last request, how far it is (empty: carried out), and since when nobody signs with the former key."""

    request: str = ""
    stage: Stage = ""
    since: float = 0.0


def turned(content: Mapping[str, bytes], record: Record, fresh: bytes) -> dict[str, bytes]:
    """The files at a stage, from those of the stage before; `fresh` is the new key where one is made."""
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
    """Each key with its id, the one that signs first."""
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
