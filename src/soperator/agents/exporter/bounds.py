"""A bounded number of names have their own series, the others are counted together: users choose names, and Prometheus keeps a series for months."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from soperator.observe.metric import OTHER, Sample

K = TypeVar("K", bound=tuple[str, ...])


def top(weights: Mapping[str, float], most: int) -> frozenset[str]:
    """The names with the most weight, up to the bound; the same names for the same weights."""
    if len(weights) <= most:
        return frozenset(weights)
    return frozenset(sorted(weights, key=lambda name: (-weights[name], name))[:most])


def folded(counts: Mapping[K, float], kept: frozenset[str]) -> list[Sample]:
    """The counts with each first label that is not kept counted as `other`."""
    found: Counter[tuple[str, ...]] = Counter()
    for (name, *rest), count in counts.items():
        found[(name if name in kept else OTHER, *rest)] += count  # type: ignore[assignment]
    return [Sample(labels, count) for labels, count in sorted(found.items())]


def totals(counts: Mapping[K, float]) -> Counter[str]:
    """The weight of each first label."""
    found: Counter[str] = Counter()
    for (name, *_), count in counts.items():
        found[name] += count  # type: ignore[assignment]
    return found


class Settled:
    """Names that keep their series, as counters need it: a bounded number, first come first served."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[str] = set()

    def names_after(self, names: Iterable[str]) -> frozenset[str]:
        """Add new names up to the bound; return all names with their own series."""
        for name in sorted(set(names) - self._names)[: self._most - len(self._names)]:
            self._names.add(name)
        return frozenset(self._names)
