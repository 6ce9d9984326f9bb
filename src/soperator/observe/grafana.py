"""The dashboards in Grafana's format, generated so that no query is edited by hand. Source: Grafana's page on the JSON model of dashboards, schema
version 39, which Grafana 9 and later read.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from soperator.observe.dashboards import DASHBOARDS
from soperator.observe.panel import Dashboard, Panel

FOLDER = Path("charts/soperator/files/dashboards")
#: In descriptions; the chart puts an address before it.
RUNBOOKS = "docs/runbooks"
_WHOLE, _HEIGHT, _LOW = 24, 8, 4
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def files() -> Mapping[str, str]:
    """Return the content of each dashboard by the name of its file."""
    return {f"{each.name}.json": json.dumps(dashboard(each), indent=1) + "\n" for each in DASHBOARDS}


def write(folder: Path = FOLDER) -> list[Path]:
    """Write all dashboards into a folder, remove other files there, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    made = files()
    for old in folder.glob("*.json"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in made]


def dashboard(said: Dashboard) -> dict[str, Any]:
    """Return one dashboard as Grafana's JSON model."""
    return {
        "uid": f"soperator-{said.name}",
        "title": said.title,
        "description": said.about,
        "tags": ["slurm"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "links": [{"type": "dashboards", "tags": ["slurm"], "title": "", "keepTime": True, "includeVars": True}],
        "templating": {"list": [*_variables()]},
        "panels": [*_panels(said)],
    }


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    for name, label, query in (
        ("namespace", "Namespace", "label_values(slurm_up, namespace)"),
        ("cluster", "Cluster", 'label_values(slurm_up{namespace=~"$namespace"}, slurm_cluster)'),
    ):
        yield {
            "name": name, "label": label, "type": "query", "query": query, "datasource": _SOURCE,
            "refresh": 2, "sort": 1, "multi": True, "includeAll": True, "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        }  # fmt: skip


def _panels(said: Dashboard) -> Iterator[dict[str, Any]]:
    """Yield each panel with its position: to the right of the one before, or in a new row."""
    x = y = former = 0
    for number, each in enumerate(said.panels, 1):
        height = _LOW if each.width <= _LOW else _HEIGHT
        if x + each.width > _WHOLE:
            x, y = 0, y + former
        yield _panel(each) | {"id": number, "gridPos": {"x": x, "y": y, "w": each.width, "h": height}}
        x, former = x + each.width, height


def _panel(said: Panel) -> dict[str, Any]:
    return {
        "title": said.title,
        "type": said.kind,
        "description": _about(said),
        "datasource": _SOURCE,
        "targets": [
            _target(said, chr(ord("A") + place), legend, expr)
            for place, (legend, expr) in enumerate(said.expressions.items())
        ],
        "fieldConfig": {"defaults": _defaults(said), "overrides": []},
        "options": _options(said),
        "transformations": [{"id": "organize", "options": {"excludeByName": {"Time": True}}}]
        if said.kind == "table"
        else [],
    }


def _about(said: Panel) -> str:
    """Return the panel's description, with links to the runbooks of its alerts."""
    pages = {name: "operator" if name.startswith("Soperator") else "slurm" for name in said.alerts}
    links = [f"[{name}]({RUNBOOKS}/{page}.md#{name.lower()})" for name, page in pages.items()]
    return " ".join([*([said.about] if said.about else []), *([f"What to do: {', '.join(links)}."] if links else [])])


def _target(said: Panel, letter: str, legend: str, expr: str) -> dict[str, Any]:
    target = {"refId": letter, "expr": expr, "legendFormat": legend or "__auto", "datasource": _SOURCE}
    once = {"instant": True, "range": False, "format": "table" if said.kind == "table" else "time_series"}
    return target | ({} if said.kind == "timeseries" else once)


def _defaults(said: Panel) -> dict[str, Any]:
    steps = [{"color": colour, "value": value if place else None} for place, (value, colour) in enumerate(said.limits)]
    drawn: dict[str, Any] = {"fillOpacity": 40, "stacking": {"mode": "normal"}} if said.stacked else {"fillOpacity": 5}
    if said.limits:
        drawn["thresholdsStyle"] = {"mode": "dashed"}
    return {
        "unit": said.unit,
        "min": 0,
        "thresholds": {"mode": "absolute", "steps": steps or [{"color": "green", "value": None}]},
    } | ({"custom": {"lineWidth": 1, "showPoints": "never", **drawn}} if said.kind == "timeseries" else {})


def _options(said: Panel) -> dict[str, Any]:
    if said.kind == "stat":
        return {
            "colorMode": "background" if said.limits else "none",
            "graphMode": "none",
            "reduceOptions": {"calcs": ["lastNotNull"]},
        }
    if said.kind == "table":
        return {"showHeader": True, "sortBy": [{"displayName": "Value", "desc": True}]}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
