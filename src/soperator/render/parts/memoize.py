"""Caches results of functions that a pass calls many times."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def once(function: Callable[[K], V]) -> Callable[[K], V]:
    """Compute a pure function of a frozen value once for each value; the result is kept with the value, goes with it, and is not to be changed."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def kept(value: K) -> V:
        results = vars(value)
        if name not in results:
            results[name] = function(value)
        found: V = results[name]
        return found

    return kept
