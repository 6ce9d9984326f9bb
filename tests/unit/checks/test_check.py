import pytest

from soperator.checks.check import Check, CheckError, FailRule, read_check, table

GOOD = {
    "about": "a",
    "probe": "filesystem",
    "given": {"paths": {"/": "/"}},
    "fail": [{"when": {"used": {"above": 95}}, "says": "{of}"}],
}


def test_a_check_is_read_with_the_defaults_that_the_reference_names():
    """What a file leaves out is as documented: in the interval, two failures, three passes, three seconds, a drain."""
    read = read_check("x", GOOD)
    assert read == Check(
        "x", "a", "filesystem", {"paths": {"/": "/"}}, rules=(FailRule({"used": {"above": 95}}, "{of}"),)
    )
    assert (read.at, read.on_failure, read.confirm, read.passes, read.limit) == (("interval",), "drain", 2, 3, 3.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"colour": "red"}, "colour: unknown field"),
        ({"about": ""}, "about: it is missing"),
        ({"probe": None}, "probe: it is missing"),
        ({"at": ["never"]}, "at: 'never' is not one of interval, prolog, epilog"),
        ({"then": "explode"}, "then: 'explode' is not one of drain, replace, report"),
        ({"confirm": 0}, "confirm: 0 is not a number from 1 to 100"),
        ({"limit": 60}, "limit: 60 is not a number from 0.1 to 6"),
        ({"limit": float("nan")}, "limit: nan is not a number"),
        ({"passes": True}, "passes: True is not a number"),
        ({"probe": "oracle"}, "probe: 'oracle' is unknown: use one of filesystem"),
        ({"given": {}}, "given.paths: the probe filesystem needs it"),
        ({"fail": []}, "the check could only pass"),
        ({"fail": [{"when": {"used": {"above": 95}}}]}, "each entry needs `when` and `message`"),
        ({"fail": [{"when": {"used": 95}, "says": "x"}]}, "when.used: the operator is missing"),
        ({"fail": [{"when": {"used": {"over": 95}}, "says": "x"}]}, "when.used.over: unknown operator"),
        ({"fail": [{"when": {"used": {"above": "95"}}, "says": "x"}]}, "when.used.above: '95' is not a number"),
        ({"fail": [{"when": {"used": {"among": 95}}, "says": "x"}]}, "when.used.among: 95 is not a list"),
    ],
)
def test_a_malformed_check_is_refused_by_its_name_its_field_and_its_value(change, said):
    """A threshold of a wrong kind never becomes a check that passes."""
    with pytest.raises(CheckError, match="check x: ") as refused:
        read_check("x", GOOD | change)
    assert said in str(refused.value)


def test_a_check_survives_the_way_to_the_worker():
    """What a plan says of a check makes the same check again."""
    read = read_check("x", GOOD | {"given": {"paths": {"/": "/"}}, "needs": ["nvidia"], "at": ["prolog"], "every": 60})
    assert read_check("x", table(read)) == read
