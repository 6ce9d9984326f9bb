"""A dashboard as data: its questions, the queries over metrics, and the threshold of a bad value. As data, tests can compare the queries with the
metrics, so that no panel queries a metric that does not exist.

In a query, `<of>` is replaced with the labels of the selected cluster in the exporter's metrics, `<by>` with those in the operator's metrics, and
`<t>` with Grafana's interval for rates.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Literal

_OF = 'namespace=~"$namespace",slurm_cluster=~"$cluster"'
_BY = 'slurm_cluster_namespace=~"$namespace",slurm_cluster=~"$cluster"'
Colour = Literal["green", "orange", "red"]


@dataclass(frozen=True)
class Panel:
    """One panel. `queries` maps a legend to PromQL; `limits` maps a threshold to the colour of values from there on; `width` is in 24ths of a row.

    `alerts` are the alerts whose runbook has the remedy. `quiet` says why the panel is empty on a healthy cluster.
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
        """The queries in PromQL with Grafana's variables, by legend."""
        given = (("<of>", _OF), ("<by>", _BY), ("<t>", "$__rate_interval"))
        return {
            legend: reduce(lambda text, pair: text.replace(*pair), given, expr) for legend, expr in self.queries.items()
        }


@dataclass(frozen=True)
class Dashboard:
    """A dashboard; `name` is the name of its file and a part of its URL. Panels fill rows from left to right."""

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
    """Return a panel that shows one number, a sixth of a row wide."""
    return Panel(title, {"": expr}, "stat", unit, about, alerts, limits, width=4)
