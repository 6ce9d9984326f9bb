"""The dashboards: over metrics that there are, linked to pages that there are, and each a file of the chart."""

import json
import re
from pathlib import Path

import pytest

from soperator.observe import cluster, grafana, operator
from soperator.observe.dashboards import DASHBOARDS
from soperator.observe.metric import Metric

ROOT = Path(__file__).parents[3]
METRICS = (*cluster.METRICS, *operator.METRICS)
SERIES = {name: metric for metric in METRICS for name in metric.series}
#: What Prometheus and the process itself tell; what stands for labels of a cluster is no metric.
OTHERS = {"ALERTS", "process_cpu_seconds_total", "process_resident_memory_bytes"}
SELECTED = re.compile(r"\b((?:slurm|soperator|process)_[a-z_]+|ALERTS)(?:\{([^}]*)\})?(?!\w)")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"([^\"]*)\"")
GROUPED = re.compile(r"by \(([^)]*)\)")
PANELS = [pytest.param(each, id=f"{page.name}: {each.title}") for page in DASHBOARDS for each in page.panels]
#: Labels that are not the metric's own: the exporter's, and those that a scrape adds.
GIVEN = {
    "slurm_cluster",
    "slurm_cluster_namespace",
    "namespace",
    "job",
    "pod",
    "le",
    "alertname",
    "severity",
    "alertstate",
}


def used(expression: str) -> dict[str, Metric | None]:
    """The metrics that a query names; None for what is not ours."""
    names = {name for name, _ in SELECTED.findall(GROUPED.sub("", expression))} - GIVEN
    return {name: SERIES.get(name) for name in names}


@pytest.mark.parametrize("panel", PANELS)
def test_a_query_is_over_metrics_and_labels_that_there_are(panel):
    """Renaming a metric or a label without its dashboards fails here."""
    for legend, expression in panel.expressions.items():
        found = used(expression)
        assert found
        assert {name for name, metric in found.items() if metric is None} - OTHERS == set()
        labels = {label for metric in found.values() if metric for label in metric.labels} | GIVEN
        asked = {label for _, selector in SELECTED.findall(expression) for label, _ in LABEL.findall(selector)}
        grouped = {label.strip() for group in GROUPED.findall(expression) for label in group.split(",")}
        shown = set(re.findall(r"{{(\w+)}}", legend))
        assert (asked | grouped | shown) - labels == set()
        if grouped and shown and "topk" not in expression:
            assert shown <= grouped


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_links_to_pages_that_there_are(panel):
    """The alerts that it names have a heading in a runbook."""
    for page, anchor in re.findall(r"\((docs/runbooks/\w+\.md)#(\w+)\)", grafana._about(panel)):
        assert anchor in {each.lower() for each in re.findall(r"^## (\w+)$", (ROOT / page).read_text(), re.MULTILINE)}


def test_every_alert_is_named_by_a_panel():
    """Who follows an alert finds where to look."""
    headings = {
        each
        for page in ("slurm", "operator")
        for each in re.findall(r"^## (\w+)$", (ROOT / f"docs/runbooks/{page}.md").read_text(), re.M)
    }
    assert {alert for page in DASHBOARDS for panel in page.panels for alert in panel.alerts} == headings


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda each: each.name)
def test_a_dashboard_fits_its_grid(page):
    """No panel lies over another or beyond the edge, and no two have one number."""
    made = grafana.dashboard(page)
    taken = set()
    for panel in made["panels"]:
        x, y, w, h = (panel["gridPos"][each] for each in "xywh")
        cells = {(column, row) for column in range(x, x + w) for row in range(y, y + h)}
        assert x + w <= 24
        assert not cells & taken
        taken |= cells
    assert len({each["id"] for each in made["panels"]}) == len(page.panels)
    assert len({target["refId"] for target in made["panels"][0]["targets"]}) == len(made["panels"][0]["targets"])


def test_the_files_of_the_chart_are_those_of_the_source():
    """`make crds` writes them."""
    there = {each.name: each.read_text() for each in (ROOT / grafana.FOLDER).glob("*.json")}
    assert there == dict(grafana.files())
    assert len({json.loads(text)["uid"] for text in there.values()}) == len(DASHBOARDS)
