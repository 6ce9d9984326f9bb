import itertools

from hypothesis import given
from hypothesis import strategies as st

from soperator.checks.check import Check
from soperator.checks.check_state import (
    SOON,
    Recovery,
    fold,
    needed,
)
from soperator.checks.evaluate import Verdict

CHECK = Check("x", "about", "probe", confirm=2, passes=3)
FAIL, PASS, BROKEN = Verdict("fail", "it is bad", {"v": 1}), Verdict("pass"), Verdict("broken", "no answer")


def walk(verdicts, recovery=None):
    """How the check stands after each of the verdicts, a minute apart."""
    standing, seen = None, []
    for minute, verdict in enumerate(verdicts):
        standing = fold(CHECK, standing, verdict, 60.0 * minute, recovery)
        seen.append(standing.state if standing else "well")
    return seen, standing


def test_one_failure_is_a_suspicion_and_several_in_a_row_a_failure():
    """A single bad look drains nothing."""
    assert walk([FAIL, PASS, FAIL, FAIL])[0] == ["suspect", "well", "suspect", "failing"]


def test_a_failure_ends_after_passes_in_a_row():
    """Two passes and a failure begin the count anew."""
    states, _ = walk([FAIL, FAIL, PASS, PASS, FAIL, PASS, PASS, PASS])
    assert states == [
        "suspect",
        "failing",
        "recovering",
        "recovering",
        "failing",
        "recovering",
        "recovering",
        "recovering",
    ]


def test_a_relapse_doubles_the_passes_that_are_needed():
    """A check that failed again while it recovered needs six passes instead of three."""
    states, standing = walk([FAIL, FAIL, PASS, FAIL, *[PASS] * 5])
    assert states[-1] == "recovering"
    assert needed(CHECK, standing) == 6
    assert walk([FAIL, FAIL, PASS, FAIL, *[PASS] * 6])[0][-1] == "well"


def test_a_failure_soon_after_a_recovery_is_a_relapse_and_one_much_later_is_not():
    """Flapping over hours is not counted together."""
    assert walk([FAIL, FAIL], Recovery(0.0, 1))[1].relapses == 2
    assert walk([FAIL, FAIL], Recovery(-SOON - 1, 1))[1].relapses == 0


def test_a_check_that_does_not_work_is_no_pass():
    """A drained node does not come back because its check broke."""
    states, _standing = walk([FAIL, FAIL, PASS, PASS, BROKEN, PASS, PASS])
    assert states == ["suspect", "failing", "recovering", "recovering", "failing", "recovering", "recovering"]
    assert walk([FAIL, FAIL, BROKEN])[1].broken == "no answer"
    assert walk([BROKEN, BROKEN])[0] == ["broken", "broken"]
    assert walk([BROKEN, PASS])[0] == ["broken", "well"]


def test_the_sentence_stays_that_of_the_failure():
    """What is reported does not change with every number that is measured."""
    standing = None
    for minute, percent in enumerate((96, 97, 98, 99)):
        standing = fold(CHECK, standing, Verdict("fail", f"{percent} %"), 60.0 * minute)
    assert (standing.message, standing.since) == ("97 %", 60.0)


@given(st.lists(st.sampled_from([FAIL, PASS, BROKEN]), max_size=40))
def test_a_failing_check_is_well_again_only_after_enough_passes_in_a_row(verdicts):
    """Whatever comes in between, the end of a failure is preceded by at least as many passes as the check asks for."""
    states, _ = walk(verdicts)
    for index, (before, after) in enumerate(itertools.pairwise(states)):
        if before in ("failing", "recovering") and after == "well":
            assert verdicts[index + 2 - CHECK.passes : index + 2] == [PASS] * CHECK.passes
        if before in ("well", "suspect", "broken") and after == "failing":
            assert verdicts[index + 1] == FAIL
