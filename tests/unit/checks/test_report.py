import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.checks.check_state import CheckState
from soperator.checks.report import LONGEST, Report, ResolvedCheck, read, report_of, timeless, write

NAMES = st.from_regex(r"[a-z-]{1,30}", fullmatch=True)
TEXTS = st.text('ab "\\é€\n', max_size=400)
STANDINGS = st.builds(
    CheckState,
    check=NAMES,
    state=st.sampled_from(["suspect", "failing", "recovering", "broken"]),
    since=st.floats(0, 2e9),
    message=TEXTS,
    on_failure=st.sampled_from(["drain", "report"]),
    values=st.dictionaries(NAMES, st.integers() | TEXTS, max_size=4),
)


def test_a_report_is_read_as_it_was_written():
    """What a node says of its checks is what the operator hears, with sentence, time and numbers."""
    bad = CheckState("disk-full", "failing", 12.0, "/tmp is 97 % full", "drain", {"used": 97})
    assert read(write(report_of([bad], 20.0))) == Report(20.0, (bad,))


def test_the_failure_that_ended_last_is_told():
    """Its sentence is cut, for it is only there to remember by."""
    last = ResolvedCheck("disk-full", 1.0, 2.0, "x" * 99)
    assert read(write(Report(5.0, last=last))).last == ResolvedCheck("disk-full", 1.0, 2.0, "x" * 60)


def test_nothing_bad_is_a_report_too():
    """That the checks ran and passed is told by other words than that they never ran."""
    assert read(write(Report(5.0))) == Report(5.0)
    assert read("") is None


@given(st.lists(STANDINGS, max_size=40, unique_by=lambda each: each.check))
def test_a_report_is_short_and_names_or_counts_every_check(standings):
    """However many checks fail with however long sentences, the text has its bound, and none is lost silently."""
    text = write(report_of(standings, 1.0))
    assert len(text) <= LONGEST
    heard = read(text)
    assert heard is not None
    assert len(heard.checks) + heard.more == len(standings)


@given(st.lists(STANDINGS, min_size=1, max_size=40, unique_by=lambda each: each.check))
def test_what_is_failing_comes_first(standings):
    """What there is no room for is never a failing check while another kind is told."""
    heard = read(write(report_of(standings, 1.0)))
    failing = sum(each.state == "failing" for each in standings)
    assert len(heard.in_state("failing")) == min(failing, len(heard.checks))


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"gpu": "h100"}', '{"soperator":2}', '{"soperator":1,"at":"x","checks":{}}', "[" * 9000]
)
def test_what_somebody_else_wrote_is_no_report(text):
    """Slurm's field may be used by others; their words are neither a pass nor a failure."""
    assert read(text) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | TEXTS,
        lambda x: st.lists(x, max_size=3) | st.dictionaries(NAMES, x, max_size=3),
        max_leaves=9,
    )
)
def test_no_text_makes_the_reader_raise(said):
    """Root of a node may write anything there."""
    read(json.dumps(said))
    read(json.dumps({"soperator": 1, "at": 1, "checks": said}))
    read(json.dumps({"soperator": 1, "at": 1, "checks": {"x": said}}))


def test_two_reports_that_differ_in_their_time_alone_say_the_same():
    """A node whose checks stand as they stood writes nothing."""
    assert timeless(Report(1.0)) == timeless(Report(2.0))
