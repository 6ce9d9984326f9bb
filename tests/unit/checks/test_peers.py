from hypothesis import given
from hypothesis import strategies as st

from soperator.checks.deep_check import Deviation
from soperator.checks.outliers import LEAST, MINORITY, compare

BELOW = Deviation("gflops", "below", 10)
ABOVE = Deviation("latency", "above", 100)
NOISE = st.floats(-0.02, 0.02)
AROUND = st.floats(0.001, 1e6)


@given(AROUND, st.lists(NOISE, min_size=LEAST - 1, max_size=40), st.floats(0.01, 0.7))
def test_a_single_slow_machine_among_alike_ones_is_found(usual, noise, share):
    """Among at least three that differ by 2 %, one with at most 70 % of the speed is bad, and it alone."""
    values = {number: usual * (1 + each) for number, each in enumerate(noise)} | {-1: usual * share}
    assert compare(values, BELOW).bad == {-1}


@given(AROUND, st.lists(NOISE, min_size=LEAST, max_size=40))
def test_nobody_is_bad_among_alike_ones(usual, noise):
    """What differs by less than the share is noise, however quiet the others are."""
    found = compare({number: usual * (1 + each) for number, each in enumerate(noise)}, BELOW)
    assert not found.bad
    assert not found.divided


@given(AROUND, st.lists(NOISE, min_size=LEAST, max_size=40), st.floats(0.1, 0.7))
def test_half_that_is_slow_is_told_and_accuses_nobody(usual, noise, share):
    """Two equal camps are no bad machines: so many that are worse are counted."""
    half = len(noise) // 2
    values = {number: usual * (1 + each) * (share if number < half else 1) for number, each in enumerate(noise)}
    found = compare(values, BELOW)
    assert not found.bad
    assert found.divided == half


@given(st.dictionaries(st.integers(), st.floats(0, 1e9), max_size=30), st.sampled_from([BELOW, ABOVE]))
def test_never_is_more_than_a_third_bad(values, deviation):
    """Whatever was measured, zeros included."""
    assert len(compare(values, deviation).bad) <= MINORITY * len(values)


@given(st.dictionaries(st.integers(), st.floats(0, 1e9), max_size=LEAST - 1))
def test_few_say_nothing(values):
    """Three are no crowd."""
    found = compare(values, BELOW)
    assert not found.bad
    assert not found.divided


def test_the_bad_side_is_the_one_that_is_named():
    """A small latency is no fault, a large one is."""
    values = {1: 10.0, 2: 11.0, 3: 10.0, 4: 1.0, 5: 50.0, 6: 10.0}
    assert compare(values, ABOVE).bad == {5}


def test_noisy_machines_are_not_told_apart_by_less_than_their_noise():
    """A tenth below the median is nothing where all differ by as much."""
    values = dict(enumerate([100.0, 80.0, 120.0, 90.0, 110.0, 70.0, 130.0, 85.0]))
    assert not compare(values, BELOW).bad
