"""Limits the nesting depth of JSON.

Anyone who may write one of our objects may nest it as deeply as the API server accepts, some ten thousand levels, in every field that Kubernetes
passes through. Every library decodes that by recursion, and fails with a RecursionError: one object of one tenant would keep the operator from
reading those of all others. So deeper levels are removed when an object is read. The remainder is still deeper than the models accept (pydantic reads
200 levels), so such a spec is refused, and nothing is rendered from it.
"""

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

#: The number of levels that are kept.
DEEPEST = 400

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def shallow(text: bytes, deepest: int = DEEPEST) -> bytes:
    """Return the JSON with null in place of each list and object below the limit; the same bytes if there is none."""
    if text.count(b"[") + text.count(b"{") <= deepest:
        return text
    kept: list[bytes] = []
    depth = begin = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case b"[" | b"{":
                depth += 1
                if depth == deepest + 1:
                    kept.append(text[begin : token.start()])
            case b"]" | b"}":
                if depth == deepest + 1:
                    kept.append(b"null")
                    begin = token.end()
                depth -= 1
    return b"".join([*kept, text[begin:]]) if kept else text


def decoded(decoder: msgspec.json.Decoder[T], text: bytes | msgspec.Raw) -> T:
    """Decode the JSON without its levels that are too deep. Raises MsgspecError."""
    try:
        return decoder.decode(text)
    except RecursionError:
        return decoder.decode(shallow(bytes(text)))
