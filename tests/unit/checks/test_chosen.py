import pytest

from soperator.api.fields.health import HealthSpec, Own
from soperator.checks import catalog, node_plan
from soperator.checks.check import CheckError

FULL = {"when": {"used": {"above": 80}}, "says": "{of} is full"}
SCRATCH = {"name": "scratch", "probe": "filesystem", "given": {"paths": {"/scratch": "/mnt/scratch"}}, "fail": [FULL]}


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
    found, plain = chosen_ones(limits={"jail-full": {"used": 80}}), chosen_ones()
    used, inodes = found["jail-full"].rules
    assert (used.when, used.says) == ({"used": {"above": 80.0}}, plain["jail-full"].rules[0].says)
    assert inodes == plain["jail-full"].rules[1]
    assert {name for name in found if found[name] != plain[name]} == {"jail-full"}


def test_what_follows_can_be_another_thing_for_a_check():
    """Told only, or the replacement of the machine."""
    found = chosen_ones(then={"disk-full": "Tell", "zombies": "Replace"})
    assert (found["disk-full"].then, found["zombies"].then, found["clock"].then) == ("tell", "replace", "drain")


def test_a_check_of_ones_own_runs_beside_the_shipped_ones_on_the_node_sets_that_it_names():
    """A program, a script, or a probe with rules."""
    own = [
        SCRATCH | {"nodeSets": ["cpu"]},
        {"name": "license", "run": ["/opt/site/license", "--fast"], "then": "Tell", "limit": "5s", "every": "10m"},
        {
            "name": "home",
            "script": "test -d /mnt/jail/root/home || { echo no home; exit 1; }",
            "confirm": 1,
            "passes": 5,
        },
    ]
    here, there = chosen_ones(own=own), chosen_ones("gpu", own=own)
    assert here["scratch"].rules[0].when == {"used": {"above": 80}}
    assert here["license"].given == {"run": ["/opt/site/license", "--fast"]}
    assert (here["license"].then, here["license"].limit, here["license"].every) == ("tell", 5.0, 600.0)
    assert here["home"].given["run"][:2] == ["/bin/sh", "-c"]
    assert (here["home"].confirm, here["home"].passes) == (1, 5)
    assert "scratch" not in there


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"skip": ["disk-fill"]}, "spec.health.skip: disk-fill: there is no check of this name: there are "),
        ({"limits": {"disk-fill": {"used": 1}}}, "spec.health.limits: disk-fill: there is no check of this name"),
        ({"then": {"disk-fill": "Tell"}}, "spec.health.then: disk-fill: there is no check of this name"),
        (
            {"limits": {"disk-full": {"usd": 90}}},
            "spec.health.limits.disk-full: usd: the check compares no such value with a number; it compares used",
        ),
        (
            {"limits": {"disk-readonly": {"readonly": 1}}},
            "spec.health.limits.disk-readonly: readonly: the check compares no such value with a number; it compares none",
        ),
        (
            {"own": [{"name": "disk-full", "run": ["/x"]}]},
            "spec.health.own[0].name: disk-full: another check has this name",
        ),
        ({"own": [{"name": "x"}]}, "spec.health.own[0]: x: say one of run, script and probe, not none"),
        (
            {"own": [{"name": "x", "run": ["/x"], "script": "y"}]},
            "say one of run, script and probe, not run and script",
        ),
        ({"own": [{"name": "x", "run": ["/x"], "fail": [FULL]}]}, "fail and given are for a probe"),
        ({"own": [SCRATCH | {"probe": "oracle"}]}, "scratch: probe: there is no 'oracle'; there are filesystem"),
        ({"own": [SCRATCH | {"given": {}}]}, "scratch: given.paths: the probe filesystem needs it"),
        ({"own": [SCRATCH | {"fail": []}]}, "scratch: fail: it is empty"),
        ({"own": [SCRATCH | {"fail": [FULL | {"when": {"used": {"above": "much"}}}]}]}, "'much' is no number"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_with_its_field_and_a_remedy(said, words):
    """A misspelt name never means that nothing is checked."""
    [problem] = told(**said)
    assert words in problem


def test_a_check_of_ones_own_can_be_left_out_and_limited_by_its_name():
    """As a shipped one can."""
    assert told(own=[SCRATCH], skip=["scratch"], then={"scratch": "Tell"}) == []
    assert "scratch" not in chosen_ones(own=[SCRATCH], skip=["scratch"])


def test_a_malformed_check_of_ones_own_is_no_check():
    """Who asks for it without having asked for the problems is told as well."""
    with pytest.raises(CheckError, match="check x: say one of"):
        node_plan.own(Own(name="x"))
