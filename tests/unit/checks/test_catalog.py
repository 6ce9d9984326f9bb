import json
from string import Formatter

import pytest

from soperator.agents.checks.probes import PROBES
from soperator.checks import catalog
from soperator.checks.check import CheckError, read_check

ALL = catalog.shipped()


@pytest.mark.parametrize("check", ALL, ids=lambda each: each.name)
def test_every_shipped_check_measures_with_a_probe_that_there_is(check):
    """A file cannot name a probe that nobody wrote."""
    assert check.probe in PROBES


@pytest.mark.parametrize("check", ALL, ids=lambda each: each.name)
def test_every_limit_by_name_is_in_the_table_of_machines(check):
    """A check whose limit no machine has would never fail."""
    known = {name for limits in catalog.machines().values() for name in limits}
    for rule in check.rules:
        named = {str(limit)[1:] for said in rule.when.values() for limit in said.values() if str(limit).startswith("@")}
        assert named <= known


@pytest.mark.parametrize("check", ALL, ids=lambda each: each.name)
def test_every_sentence_names_what_it_speaks_of_and_a_value_that_it_was_judged_by(check):
    """A person who reads a drain's reason sees where and how much."""
    for rule in check.rules:
        assert {name for _, name, _, _ in Formatter().parse(rule.message) if name}


def test_a_node_without_a_gpu_has_no_check_of_gpus():
    """What does not apply is not in the plan, so it cannot be broken either."""
    names = {each.name for each in catalog.applicable(ALL, {})}
    assert "disk-full" in names
    assert not any(name.startswith(("gpu", "amd", "infiniband", "kernel")) for name in names)


def test_facts_of_the_node_set_take_the_place_of_their_names():
    """How many GPUs are wanted is the NodeSet's word."""
    found = {each.name: each for each in catalog.applicable(ALL, {"nvidia": True, "gpus": 8})}
    assert found["gpu-count"].given == {"count": 8}


def test_a_plan_holds_checks_that_the_runner_reads():
    """What the operator writes is what a worker runs."""
    said = json.loads(catalog.plan(ALL, 600, {"H200": {"nvlinks": 16}}))
    assert tuple(read_check(name, each) for name, each in said["checks"].items()) == ALL
    assert said["machines"]["H200"]["nvlinks"] == 16
    assert said["machines"]["H200"]["pcie_width"] == catalog.machines()["H200"]["pcie_width"].value
    assert said["renew"] == 600


@pytest.mark.parametrize(
    "text",
    [
        "[A100]\nnvlinks = 12",
        "[A100]\nnvlinks = { value = 12 }",
        '[A100]\nnvlinks = { value = "x", source = "y" }',
        "[",
    ],
)
def test_a_limit_without_a_source_is_refused(text):
    """Every number of the table says where it is from."""
    with pytest.raises(CheckError, match=r"machines.toml"):
        catalog.read_machines(text)
