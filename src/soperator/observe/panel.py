"""A dashboard as data: which questions it answers, over which metrics, and from where on an answer is bad.

In a query `<of>` stands for the labels of the cluster that is looked at in the exporter's metrics, and `<by>` for the same in the operator's; `<t>`
stands for Grafana's interval for rates.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Literal

_OF = 'namespace=~"$namespace",slurm_cluster=~"$cluster"'
_BY = 'slurm_cluster_namespace=~"$namespace",slurm_cluster=~"$cluster"'
Colour = Literal["green", "orange", "red"]


@dataclass(frozen=True)
class Panel:
    """One panel. `queries` is legend → PromQL; `limits` says from which value on it has which colour; `width` is of 24.

    `alerts` are those whose runbook says what to do about it. `quiet` says why it rightly shows nothing on a cluster that is well.
    """

    title: str
    queries: dict[str, str]
    kind: Literal["stat", "timeseries", "table"] = "timeseries"
    unit: str = "short"
    about: str = ""
    alerts: tuple[str, ...] = ()
    limits: tuple[tuple[float, Colour], ...] = ()
    width: int = 8
    stacked: bool = False
    quiet: str = ""

    @property
    def expressions(self) -> dict[str, str]:
        """The queries as Grafana gets them, by legend."""
        given = (("<of>", _OF), ("<by>", _BY), ("<t>", "$__rate_interval"))
        return {
            legend: reduce(lambda text, pair: text.replace(*pair), given, expr) for legend, expr in self.queries.items()
        }


@dataclass(frozen=True)
class Dashboard:
    """A dashboard; `name` is that of its file, and a part of its address. Panels stand from left to right, as far as they fit."""

    name: str
    title: str
    about: str
    panels: tuple[Panel, ...]


def stat(
    title: str,
    expr: str,
    *limits: tuple[float, Colour],
    alerts: tuple[str, ...] = (),
    unit: str = "short",
    about: str = "",
) -> Panel:
    """Return one number, large."""
    return Panel(title, {"": expr}, "stat", unit, about, alerts, limits, width=4)
