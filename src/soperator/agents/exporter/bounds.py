"""Limits how many names have their own series, and counts the others together.

Users choose names, and Prometheus keeps a series for months, so unlimited names would fill it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from soperator.observe.metric import OTHER, Sample

K = TypeVar("K", bound=tuple[str, ...])


def top(weights: Mapping[str, float], most: int) -> frozenset[str]:
    """Return the names with the largest weights, up to the limit; the result is deterministic."""
    if len(weights) <= most:
        return frozenset(weights)
    return frozenset(sorted(weights, key=lambda name: (-weights[name], name))[:most])


def folded(counts: Mapping[K, float], kept: frozenset[str]) -> list[Sample]:
    """Return the counts, where all first labels that are not in `kept` are added up as `other`."""
    found: Counter[tuple[str, ...]] = Counter()
    for (name, *rest), count in counts.items():
        found[(name if name in kept else OTHER, *rest)] += count  # type: ignore[assignment]
    return [Sample(labels, count) for labels, count in sorted(found.items())]


def totals(counts: Mapping[K, float]) -> Counter[str]:
    """Return the sum of the counts of each first label."""
    found: Counter[str] = Counter()
    for (name, *_), count in counts.items():
        found[name] += count  # type: ignore[assignment]
    return found


class SeriesNames:
    """Names that keep their series, as counters need it: a limited number, in order of arrival."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[str] = set()

    def names_after(self, names: Iterable[str]) -> frozenset[str]:
        """Add new names up to the limit; return all names with their own series."""
        for name in sorted(set(names) - self._names)[: self._most - len(self._names)]:
            self._names.add(name)
        return frozenset(self._names)
