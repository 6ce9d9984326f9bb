"""A metric as data: its name, its meaning, and a limit on its series, because users choose label values.

Source of the conventions: Prometheus' pages on naming and on instrumentation.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Per = Literal["cluster", "node"]
#: The label's value for all names beyond the bound on series.
OTHER = "other"


@dataclass(frozen=True)
class Metric:
    """A metric. `most` limits its series for each cluster, or for each Slurm node; every bucket of a histogram counts."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    most: int = 1
    per: Per = "cluster"
    buckets: tuple[float, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """The names under which Prometheus stores its series."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{end}" for end in ("bucket", "sum", "count"))
        return (self.name,)


class Sample(NamedTuple):
    """One value of a metric, with the values of its labels in order. `end` is the suffix of the name in a histogram."""

    labels: tuple[str, ...]
    value: float
    end: str = ""


Family = tuple[Metric, Iterable[Sample]]
