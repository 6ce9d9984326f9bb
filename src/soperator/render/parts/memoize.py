"""Caches results of functions that a pass calls many times, because a pass over thousands of workers must not render each template again."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def once(function: Callable[[K], V]) -> Callable[[K], V]:
    """Compute a pure function of a frozen value once for each value. The value keeps the result, which callers must not change."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def kept(value: K) -> V:
        results = vars(value)
        if name not in results:
            results[name] = function(value)
        found: V = results[name]
        return found

    return kept
