"""Prometheus' text format: what stands in a name does no harm, and prometheus_client reads the same back."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from soperator.observe.exposition import LONGEST, pieces, text
from soperator.observe.metric import Metric, Sample

JOBS = Metric("some_jobs", "gauge", 'Jobs "of" somebody\nin \\ two lines.', ("user",), 9)


def read(body):
    return [
        (each.name, dict(each.labels), each.value)
        for family in text_string_to_metric_families(body.decode())
        for each in family.samples
    ]


@given(st.text(), st.floats(allow_nan=False) | st.integers(-(2**53), 2**53))
def test_any_name_and_any_number_come_back(name, number):
    """One line for each sample, whatever a user is called; a long name is cut."""
    body = text([(JOBS, [Sample((name,), number)])], "demo")
    assert body.count(b"\n") == 3
    ((_, labels, value),) = read(body)
    clean = name[:LONGEST].encode("utf-8", "replace").decode()
    assert labels == {"slurm_cluster": "demo", "user": clean}
    assert value == number


def test_a_family_without_samples_is_left_out():
    """A help text alone says nothing."""
    assert text([(JOBS, [])], "demo") == b""


def test_a_histogram_is_one_for_prometheus():
    """Buckets, sum and count are read as one family."""
    waits = Metric("some_wait_seconds", "histogram", "Waits.", ("partition",), buckets=(1.0,))
    samples = [
        Sample(("a", "1"), 2, "_bucket"),
        Sample(("a", "+Inf"), 3, "_bucket"),
        Sample(("a",), 9.5, "_sum"),
        Sample(("a",), 3, "_count"),
    ]
    (family,) = text_string_to_metric_families(text([(waits, samples)], "demo").decode())
    assert family.type == "histogram"
    assert [each.labels.get("le") for each in family.samples] == ["1", "+Inf", None, None]


def test_a_family_of_many_series_comes_in_pieces_that_are_the_same_text():
    """Its head once, a thousand series at most in each, and nothing of a family without any."""
    families = [(JOBS, [Sample((str(number),), number) for number in range(2500)]), (JOBS, [])]
    found = list(pieces(families, "demo"))
    assert [len(read(each)) for each in found] == [1000, 1000, 500]
    assert b"".join(found) == text(families, "demo")
