"""What the operator's process still holds of objects, found by walking through its parts instead of by a list of them."""

from collections.abc import Hashable, Iterator
from types import MethodType
from typing import Any

from soperator.kube.api import Api
from soperator.runtime.cache.store import Store
from soperator.runtime.events import Recorder

#: Parts that hold what exists by their purpose, nothing of ours, or a bounded number of anything: their own tests look at what they forget.
_APART = (Store, Api, Recorder)


def remembered(part: Any, of: set[Hashable], path: str = "operator", been: set[int] | None = None) -> Iterator[str]:
    """Each dictionary or set below `part` with a key among `of`, or with a key that has one as a part; by the attributes that lead there."""
    been = set() if been is None else been
    if id(part) in been or isinstance(part, (*_APART, str, bytes, int, float, type, type(None))):
        return
    been.add(id(part))
    if isinstance(part, dict | set | frozenset):
        if any(_is_of(key, of) for key in part):
            yield path
        values = part.items() if isinstance(part, dict) else ((each, each) for each in part)
        for key, value in list(values):
            yield from remembered(value, of, f"{path}[{getattr(key, 'what', key)!r}]", been)
    elif isinstance(part, list | tuple):
        for number, value in enumerate(part):
            yield from remembered(value, of, f"{path}[{number}]", been)
    elif isinstance(part, MethodType):
        yield from remembered(part.__self__, of, path, been)
    elif type(part).__module__.startswith("soperator"):
        for name in {*getattr(part, "__dict__", ()), *_slots(part)}:
            yield from remembered(getattr(part, name, None), of, f"{path}.{name}", been)


def _slots(part: Any) -> list[str]:
    found = [getattr(each, "__slots__", ()) for each in type(part).__mro__]
    return [name for each in found for name in ((each,) if isinstance(each, str) else each)]


def _is_of(key: Hashable, of: set[Hashable]) -> bool:
    return key in of or (isinstance(key, tuple) and any(part in of for part in key))
