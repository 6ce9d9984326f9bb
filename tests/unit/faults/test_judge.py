"""The ledger's judgement: lost, run twice, run again by Slurm's own rule."""

from hypothesis import given
from hypothesis import strategies as st

from tests.faults.judge import SAVE, Mark, Unit, judge, read_marks

UNIT = Unit("a", 0, 10.0)


def mark(what, at, run=0):
    """A mark of the one unit."""
    return Mark("a", 0, run, what, at)


def test_a_job_that_began_and_ended_is_neither_lost_nor_run_twice():
    """Its two marks are what is wanted."""
    verdict = judge([UNIT], [mark("began", 11), mark("ended", 12)])
    assert (verdict.jobs, verdict.lost, verdict.twice, verdict.requeued) == (1, [], [], 0)


def test_a_job_without_an_end_is_lost():
    """Whether it began or not."""
    assert judge([UNIT], []).lost == ["a.0 left no end"]
    assert judge([UNIT], [mark("began", 11)]).lost == ["a.0 began and left no end"]


def test_a_job_whose_node_died_may_run_again():
    """A higher restart count after a run without an end is Slurm's own rule."""
    verdict = judge([UNIT], [mark("began", 11), mark("began", 80, run=1), mark("ended", 90, run=1)])
    assert (verdict.lost, verdict.twice, verdict.requeued) == ([], [], 1)


def test_a_run_after_the_end_and_a_second_beginning_of_one_run_are_told():
    """Both are work done twice."""
    again = [mark("began", 11), mark("ended", 12), mark("began", 13, run=1), mark("ended", 14, run=1)]
    assert judge([UNIT], again).twice == ["a.0 began again as run 1 after it had ended"]
    both = [mark("began", 11), mark("began", 12), mark("ended", 13)]
    assert judge([UNIT], both).twice == ["a.0 began twice as run 0"]


def test_what_slurmctld_had_not_written_down_is_counted_apart():
    """A crash within seconds after the act excuses it; one before it, or long after, does not."""
    assert judge([UNIT], [], [10.0 + SAVE]).unsaved == ["a.0 left no end"]
    assert judge([UNIT], [], [9.9, 10.1 + SAVE]).lost == ["a.0 left no end"]
    again = [mark("began", 11), mark("ended", 12), mark("began", 20, run=1), mark("ended", 21, run=1)]
    verdict = judge([UNIT], again, [14.0])
    assert (verdict.twice, len(verdict.unsaved)) == ([], 1)


def test_marks_are_read_from_what_grep_prints():
    """The key may hold dots; a line that was cut off is no mark."""
    text = "array-1.x.7.2.began:1763755000.25 worker-0\narray-1.x.8.0.began:\n"
    assert read_marks(text) == [Mark("array-1.x", 7, 2, "began", 1763755000.25)]


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.booleans()), max_size=20))
def test_every_unit_without_an_end_is_told_once(told):
    """However marks of many units are mixed."""
    units = [Unit("k", number, 0.0) for number in range(10)]
    marks = [Mark("k", task, 0, "ended" if end else "began", 1.0) for task, end, _ in told]
    ended = {task for task, end, _ in told if end}
    assert len(judge(units, marks).lost) == 10 - len(ended)
