"""The registry of metrics, held to Prometheus' conventions."""

import re

import pytest

from soperator.observe import cluster, jobs

METRICS = cluster.METRICS


def test_no_name_is_there_twice():
    """A name means one thing."""
    names = [each.name for each in (*METRICS, *jobs.METRICS)]
    assert sorted(set(names)) == sorted(names)
    assert len(names) > 40


@pytest.mark.parametrize("metric", [*METRICS, *jobs.METRICS], ids=lambda each: each.name)
def test_names_are_by_convention(metric):
    """Counters end with _total and nothing else does; units are base units; a help text is a sentence."""
    assert re.fullmatch(r"slurm_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert not re.search(r"_(ms|milliseconds|minutes|mib|kb|percent|count|sum|bucket)(_|$)", metric.name)
    assert metric.help.endswith(".")
    assert (metric.kind == "histogram") == bool(metric.buckets)
    assert metric.most >= 1


def test_the_budget_is_what_the_documents_say():
    """A cluster has at most so many series of its own, and so many for each node: change the reference with them."""
    assert sum(each.most for each in METRICS if each.per == "node") == 10
    assert sum(each.most for each in METRICS if each.per == "cluster") < 4000
