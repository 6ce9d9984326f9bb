"""Who stands out among machines that should all be alike: learned baselines.

The middle is the median, and the usual distance from it the median of the distances (MAD, scaled so that it is a standard deviation where values
are normally spread): neither is moved by a few bad machines, as a mean would be. Two guards keep a quiet or a divided set from accusing
anyone: a value has to be a share of the median away too, and more than a third cannot be the bad ones.
Source: Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993, for the scaled MAD.
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
    """The median, who is bad, and `divided`: so many are worse than the better ones, too many to be bad machines."""

    middle: float
    count: int
    bad: frozenset[Key] = frozenset()
    divided: int = 0


def compare(values: Mapping[Key, float], deviation: Deviation) -> Comparison[Key]:
    """Return who is worse than the others; nobody where there are fewer than `LEAST`."""
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
    """Return whether a value is on the bad side of another by more than the share."""
    if deviation.side == "below":
        return value < than * (1 - deviation.percent / 100)
    return value > than * (1 + deviation.percent / 100)


def better(values: Sequence[float], deviation: Deviation) -> float:
    """Return the value that the better quarter reaches: less than a quarter of the values is better."""
    ordered = sorted(values, reverse=deviation.side == "below")
    return ordered[(len(ordered) - 1) // 4]
