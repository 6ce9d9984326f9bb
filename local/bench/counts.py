"""Compares counts with their limits: `make test` can judge counts on any machine, but times only `make bench` on an idle one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: Units of figures that do not depend on how fast the machine is.
UNITS = ("requests", "per min")
#: Requests that a scene makes more of the longer it takes: the Lease, its Events, and questions that nobody in a bench answers.
_BY_TIME = ("lease", "event", "get", "watch")


@dataclass(frozen=True)
class Measured:
    """One measured figure; `limit` is None for a figure without a limit of its own."""

    title: str
    unit: str
    value: float
    limit: float | None


def without_time(value: float, parts: Mapping[str, float]) -> float:
    """Return a scene's requests without those whose number grows with the scene's duration; `parts` are its requests by verb."""
    return value - sum(parts.get(f"requests: {verb}", 0.0) for verb in _BY_TIME)


def faults(measured: Iterable[Measured]) -> list[str]:
    """Return a sentence for each count that exceeds its limit."""
    return [
        f"{each.title}: {each.value:g} {each.unit}, and {each.limit:g} is the limit"
        for each in measured
        if each.unit in UNITS and each.limit is not None and each.value > each.limit
    ]


def verdict(measured: Iterable[Measured]) -> int:
    """Print the counts and those that exceed their limits; return the exit status, which is also 1 if nothing was counted."""
    counted = [each for each in measured if each.unit in UNITS]
    for each in counted:
        print(f"{each.title}: {each.value:g} {each.unit}")
    found = faults(counted)
    for fault in found or ([] if counted else ["nothing was counted"]):
        print(f"error: {fault}")
    return 1 if found or not counted else 0
