import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.checks.check import Check, FailRule
from soperator.checks.evaluate import judge


def check(when, message="{of} is bad"):
    return Check("x", "about", "probe", rules=(FailRule(when, message),))


@pytest.mark.parametrize(
    ("said", "value", "fails"),
    [
        ({"above": 95}, 96, True),
        ({"above": 95}, 95, False),
        ({"below": 16}, 8, True),
        ({"below": 16}, 16, False),
        ({"is": True}, True, True),
        ({"is": "Yes"}, "No", False),
        ({"is_not": "None"}, "Reset", True),
        ({"is_not": ""}, "Stale file handle", True),
        ({"among": [48, 79]}, 79, True),
        ({"among": [48, 79]}, 31, False),
        ({"above": 0, "below": 10}, 5, True),
        ({"above": 0, "below": 10}, 11, False),
    ],
)
def test_a_rule_fails_a_value_as_its_operator_says(said, value, fails):
    """Each operator is what its name says, and several of one rule have to hold together."""
    verdict = judge(check({"v": said}), [{"of": "it", "v": value}])
    assert verdict.outcome == ("fail" if fails else "pass")


def test_a_value_that_a_reading_does_not_have_is_not_judged():
    """A GPU without ECC has no ECC errors."""
    assert judge(check({"uncorrected": {"above": 0}}), [{"of": "GPU 0"}]).outcome == "pass"


def test_no_reading_at_all_is_no_pass():
    """A probe that measured nothing has told nothing."""
    assert judge(check({"v": {"above": 0}}), []).outcome == "broken"


def test_a_text_where_a_number_should_be_is_no_pass():
    """What cannot be compared makes the check broken."""
    assert judge(check({"v": {"above": 0}}), [{"of": "it", "v": "many"}]).outcome == "broken"


def test_a_sentence_that_names_what_was_not_measured_makes_the_check_broken():
    """A typing error in a sentence is told as a fault of the check."""
    assert judge(check({"v": {"above": 0}}, "{vv}"), [{"of": "it", "v": 1}]).outcome == "broken"


def test_a_failure_says_its_first_reading_and_counts_the_others():
    """Eight bad GPUs are one sentence, with the numbers of the first."""
    verdict = judge(check({"v": {"above": 1}}), [{"of": f"GPU {n}", "v": n, "w": 0} for n in range(5)])
    assert (verdict.message, verdict.values) == ("GPU 2 is bad (and 2 more)", {"of": "GPU 2", "v": 2})


def test_a_limit_by_name_is_that_of_the_machine_whose_name_fits_longest():
    """An H200 NVL is not judged by what an H200 has."""
    machines = {"H200": {"links": 18}, "H200 NVL": {"width": 16}}
    rule = check({"up": {"below": "@links"}}, "{up} of {links}")
    assert judge(rule, [{"of": "0", "model": "NVIDIA H200", "up": 17}], machines).message == "17 of 18"
    assert judge(rule, [{"of": "0", "model": "NVIDIA H200 NVL", "up": 4}], machines).outcome == "pass"
    assert judge(rule, [{"of": "0", "model": "NVIDIA L4", "up": 0}], machines).outcome == "pass"


def test_a_counter_that_grows_fails_once_and_not_when_it_begins_anew():
    """The first look only remembers, and a driver that was loaded again has not failed."""
    rule = check({"kills": {"grows": 0}})
    first = judge(rule, [{"of": "pod", "kills": 3}])
    assert (first.outcome, first.counters) == ("pass", {"pod.kills": 3.0})
    assert judge(rule, [{"of": "pod", "kills": 4}], before=first.counters).outcome == "fail"
    assert judge(rule, [{"of": "pod", "kills": 3}], before=first.counters).outcome == "pass"
    assert judge(rule, [{"of": "pod", "kills": 0}], before=first.counters).outcome == "pass"


VALUES = st.one_of(st.booleans(), st.text("a1", max_size=3), st.integers(), st.floats())


@given(st.lists(st.dictionaries(st.sampled_from(["of", "v", "model"]), VALUES, max_size=3), max_size=4))
def test_whatever_is_measured_the_verdict_is_one_of_three_and_a_failure_has_a_sentence(readings):
    """No reading makes the judge raise, or fail a node without a word."""
    verdict = judge(check({"v": {"above": 0}}, "{v}!"), readings, {"a": {"v": 1}})
    assert verdict.outcome in ("pass", "fail", "broken")
    assert verdict.message if verdict.outcome != "pass" else True
