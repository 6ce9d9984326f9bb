import pytest

from soperator.api.fields.health import CustomCheck, HealthSpec
from soperator.checks import catalog, node_plan
from soperator.checks.check import CheckError

FULL = {"when": {"used": {"above": 80}}, "message": "{of} is full"}
SCRATCH = {
    "name": "scratch",
    "probe": "filesystem",
    "parameters": {"paths": {"/scratch": "/mnt/scratch"}},
    "failWhen": [FULL],
}


def made(**said):
    return HealthSpec.model_validate(said)


def chosen_ones(nodeset="cpu", facts=None, **said):
    return {each.name: each for each in node_plan.checks(made(**said), nodeset, facts or {})}


def told(**said):
    return [str(each) for each in node_plan.problems(made(**said))]


def test_without_a_word_the_shipped_checks_that_apply_are_chosen():
    """As they are."""
    assert list(chosen_ones().values()) == catalog.applicable(catalog.shipped(), {})


def test_another_limit_takes_the_place_of_the_shipped_one_alone():
    """The sentence, the other rules and the other checks stay."""
    found, plain = chosen_ones(thresholds=[{"check": "jail-full", "values": {"used": 80}}]), chosen_ones()
    used, inodes = found["jail-full"].rules
    assert (used.when, used.message) == ({"used": {"above": 80.0}}, plain["jail-full"].rules[0].message)
    assert inodes == plain["jail-full"].rules[1]
    assert {name for name in found if found[name] != plain[name]} == {"jail-full"}


def test_a_decimal_threshold_of_an_own_check_is_a_number_in_quotes():
    """As Kubernetes' conventions ask, which allow no floats."""
    rule = {"when": {"used": {"above": "97.5"}}, "message": "{of} is full"}
    found = chosen_ones(customChecks=[SCRATCH | {"failWhen": [rule]}])
    assert found["scratch"].rules[0].when == {"used": {"above": 97.5}}


def test_what_follows_can_be_another_thing_for_a_check():
    """Told only, or the replacement of the machine."""
    found = chosen_ones(onFailure={"disk-full": "Report", "zombies": "Replace"})
    assert (found["disk-full"].on_failure, found["zombies"].on_failure, found["clock"].on_failure) == (
        "report",
        "replace",
        "drain",
    )


def test_a_check_of_ones_own_runs_beside_the_shipped_ones_on_the_node_sets_that_it_names():
    """A program, a script, or a probe with rules."""
    own = [
        SCRATCH | {"nodeSets": ["cpu"]},
        {
            "name": "license",
            "run": ["/opt/site/license", "--fast"],
            "onFailure": "Report",
            "timeout": "5s",
            "minInterval": "10m",
        },
        {
            "name": "home",
            "script": "test -d /mnt/jail/root/home || { echo no home; exit 1; }",
            "failureThreshold": 1,
            "successThreshold": 5,
        },
    ]
    here, there = chosen_ones(customChecks=own), chosen_ones("gpu", customChecks=own)
    assert here["scratch"].rules[0].when == {"used": {"above": 80}}
    assert here["license"].given == {"run": ["/opt/site/license", "--fast"]}
    assert (here["license"].on_failure, here["license"].limit, here["license"].every) == ("report", 5.0, 600.0)
    assert here["home"].given["run"][:2] == ["/bin/sh", "-c"]
    assert (here["home"].confirm, here["home"].passes) == (1, 5)
    assert "scratch" not in there


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {"disabledChecks": ["disk-fill"]},
            "spec.health.disabledChecks: disk-fill: no check has this name: use one of ",
        ),
        (
            {"thresholds": [{"check": "disk-fill", "values": {"used": 1}}]},
            "spec.health.thresholds: disk-fill: no check has this name",
        ),
        ({"onFailure": {"disk-fill": "Report"}}, "spec.health.onFailure: disk-fill: no check has this name"),
        (
            {"thresholds": [{"check": "disk-full", "values": {"usd": 90}}]},
            "spec.health.thresholds.disk-full: usd: the check does not compare this value with a number: remove it; its values: used",
        ),
        (
            {"thresholds": [{"check": "disk-readonly", "values": {"readonly": 1}}]},
            "spec.health.thresholds.disk-readonly: readonly: the check does not compare this value with a number: remove it; its values: none",
        ),
        (
            {"customChecks": [{"name": "disk-full", "run": ["/x"]}]},
            "spec.health.customChecks[0].name: disk-full: another check has this name",
        ),
        (
            {"customChecks": [{"name": "x"}]},
            "spec.health.customChecks[0]: x: set exactly one of run, script and probe, not none",
        ),
        (
            {"customChecks": [{"name": "x", "run": ["/x"], "script": "y"}]},
            "set exactly one of run, script and probe, not run and script",
        ),
        (
            {"customChecks": [{"name": "x", "run": ["/x"], "failWhen": [FULL]}]},
            "failWhen and parameters need a probe",
        ),
        (
            {"customChecks": [SCRATCH | {"probe": "oracle"}]},
            "scratch: probe: 'oracle' is unknown: use one of filesystem",
        ),
        ({"customChecks": [SCRATCH | {"parameters": {}}]}, "scratch: parameters.paths: the probe filesystem needs it"),
        ({"customChecks": [SCRATCH | {"failWhen": []}]}, "scratch: failWhen: it is empty"),
        (
            {"customChecks": [SCRATCH | {"failWhen": [FULL | {"when": {"used": {"above": "much"}}}]}]},
            "'much' is not a number",
        ),
    ],
)
def test_a_choice_that_cannot_be_is_refused_with_its_field_and_a_remedy(said, words):
    """A misspelt name never means that nothing is checked."""
    [problem] = told(**said)
    assert words in problem


def test_a_check_of_ones_own_can_be_left_out_and_limited_by_its_name():
    """As a shipped one can."""
    assert told(customChecks=[SCRATCH], disabledChecks=["scratch"], onFailure={"scratch": "Report"}) == []
    assert "scratch" not in chosen_ones(customChecks=[SCRATCH], disabledChecks=["scratch"])


def test_a_malformed_check_of_ones_own_is_no_check():
    """Who asks for it without having asked for the problems is told as well."""
    with pytest.raises(CheckError, match="check x: set exactly one of"):
        node_plan.custom(CustomCheck(name="x"))
