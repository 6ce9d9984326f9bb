"""Reads the valid part of a spec that is partly invalid.

An operator that was rolled back may find values of a later release. The object still exists, with everything that it names: claims, nodes, names.
Nothing is rendered from such a spec; it only protects the names in it from other objects.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from soperator.api.base import Model

S = TypeVar("S", bound=Model)
Place = tuple[int | str, ...]

#: How often invalid values are removed. Each round removes every fault, so more than two rounds are rare.
_ROUNDS = 8


def as_far_as_readable(model: type[S], text: bytes) -> S | None:
    """Return the spec without the values that the model refuses; None if one of them is required."""
    said = json.loads(text)
    for _ in range(_ROUNDS):
        try:
            return model.model_validate(said)
        except ValidationError as error:
            found = {_nearest(said, each["loc"]) for each in error.errors(include_url=False, include_input=False)}
        # Of a list the last item is removed first, so that the indexes of the others stay right.
        for place in sorted(found - {()}, key=lambda path: [str(each).zfill(9) for each in path], reverse=True):
            _remove(said, place)
    return None


def texts(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, without keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


def _nearest(said: Any, place: Place) -> Place:
    """Return the location of an error, or the nearest existing one around it, because pydantic also names branches of a union and missing fields."""
    found: list[int | str] = []
    for step in place:
        is_there = 0 <= step < len(said) if isinstance(said, list) and isinstance(step, int) else False
        if is_there or (isinstance(said, dict) and step in said):
            found.append(step)
            said = said[step]
    return tuple(found)


def _remove(said: Any, place: Place) -> None:
    for step in place[:-1]:
        said = said[step]
    del said[place[-1]]
