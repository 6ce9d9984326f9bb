"""Finds outliers among machines that should all be equal, because few numbers of a machine are known beforehand.

The centre is the median. The usual distance from it is the median of the distances (MAD, scaled to a standard deviation for normally distributed
values). A few bad machines shift neither, as they would shift a mean. Two guards prevent false findings: a value must also differ by a share of the
median, and more than a third of the machines cannot be bad. Source: Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993, for the scaled
MAD.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Generic, TypeVar

from soperator.checks.deep_check import Deviation

Key = TypeVar("Key", bound=Hashable)
#: Fewer say nothing about each other.
LEAST = 4
#: So much of a set may stand out; where it is more, that is what they share, and no machine is bad.
MINORITY = 1 / 3
_SCALE = 1.4826


@dataclass(frozen=True)
class Comparison(Generic[Key]):
    """The median, the names of the outliers, and `divided`: the number of worse values, if they are too many to be bad machines."""

    middle: float
    count: int
    bad: frozenset[Key] = frozenset()
    divided: int = 0


def compare(values: Mapping[Key, float], deviation: Deviation) -> Comparison[Key]:
    """Return the outliers among named values; none if there are fewer than `LEAST` values."""
    if len(values) < LEAST:
        return Comparison(median(values.values()) if values else 0.0, len(values))
    middle = median(values.values())
    usual = _SCALE * median(abs(each - middle) for each in values.values())
    bad = [
        key
        for key, value in values.items()
        if is_worse(value, middle, deviation) and abs(value - middle) > deviation.spreads * usual
    ]
    if bad and len(bad) <= MINORITY * len(values):
        return Comparison(middle, len(values), frozenset(bad))
    good = better(list(values.values()), deviation)
    worse = sum(is_worse(each, good, deviation) for each in values.values())
    return Comparison(middle, len(values), divided=worse if worse > MINORITY * len(values) else 0)


def is_worse(value: float, than: float, deviation: Deviation) -> bool:
    """Return whether a value is worse than another by more than a share of that other."""
    if deviation.side == "below":
        return value < than * (1 - deviation.percent / 100)
    return value > than * (1 + deviation.percent / 100)


def better(values: Sequence[float], deviation: Deviation) -> float:
    """Return the upper quartile, counted from the bad side: less than a quarter of the values is better."""
    ordered = sorted(values, reverse=deviation.side == "below")
    return ordered[(len(ordered) - 1) // 4]
