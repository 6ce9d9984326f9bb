from string import Formatter

import pytest

from soperator.checks import catalog
from soperator.checks.check import CheckError
from soperator.checks.deep_check import (
    Deviation,
    applicable,
    command,
    read_deep,
    shipped_deep,
)

ALL = shipped_deep()
PLAIN = {
    "about": "why",
    "per": "node",
    "program": "cpu",
    "time": 60,
    "fail": [{"when": {"wrong": {"above": 0}}, "says": "{of} is wrong"}],
}


def test_the_shipped_checks_are_those_of_the_folder():
    """Each file is a check, by its name."""
    names = {each.name for each in ALL}
    assert {"allreduce", "burn", "cpu", "dcgm", "disk", "jail", "memory", "network"} <= names
    assert {"nccl", "nccl-pairs", "nccl-group"} <= names


@pytest.mark.parametrize("check", ALL, ids=lambda each: each.name)
def test_every_sentence_names_what_it_was_judged_by(check):
    """A sentence holds the value of its rule, and the median or the limit where it was compared with one."""
    for rule in check.rules:
        used = {name for _, name, _, _ in Formatter().parse(rule.plain.message) if name}
        judged = {*rule.plain.when, *([rule.deviates.value] if rule.deviates else [])}
        assert used & judged
        assert ("peers" in used) == bool(rule.deviates)
        for said in rule.plain.when.values():
            assert {str(limit)[1:] for limit in said.values() if str(limit).startswith("@")} <= used


def test_checks_of_gpus_apply_to_nodes_with_gpus_and_are_told_how_many():
    """`@gpus` is the NodeSet's number."""
    found = {each.name: each for each in applicable(ALL, {"gpus": 4, "nvidia": True})}
    assert command(found["nccl"]) == ["/opt/soperator/libexec/deep", "nccl", "gpus=4", "size=8G"]
    assert {"nccl", "burn", "dcgm"}.isdisjoint(each.name for each in applicable(ALL, {"gpus": 0, "nvidia": False}))


def test_limits_of_gpus_are_those_of_the_table():
    """The bandwidth below which eight GPUs fail is known for three machine types, each with its source."""
    known = {machine for machine, limits in catalog.machines().items() if "nccl_busbw_8" in limits}
    assert known == {"A100-SXM", "H100 80GB HBM3", "H200"}


def test_a_deviation_is_read_with_its_side_and_how_far():
    """`deviates.below` is the percent of the median."""
    rule = {"when": {"gflops": {"deviates": {"below": 10, "spreads": 3}}, "wrong": {"is": 0}}, "says": "{of}: {gflops}"}
    check = read_deep("mine", PLAIN | {"fail": [rule]})
    assert check.deviations == (Deviation("gflops", "below", 10, 3),)
    assert check.rules[0].plain.when == {"wrong": {"is": 0}}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"color": "red"}, "check mine: color: unknown field"),
        ({"per": "cluster"}, "check mine: per: 'cluster' is unknown: use one of node, pair, group"),
        ({"time": 0}, "check mine: time: 0 is not a number of seconds from 1"),
        ({"time": True}, "check mine: time: True"),
        ({"fail": []}, "check mine: fail: it is empty"),
        ({"program": "../sh"}, "check mine: program: '../sh'"),
        ({"given": {"path": "/tmp; rm"}}, "check mine: given.path: '/tmp; rm' is not a number, a name or a path"),
        (
            {"fail": [{"when": {"x": {"deviates": {"below": 120}}}, "says": "y"}]},
            "deviates.below: 120 is not a percentage",
        ),
        (
            {"fail": [{"when": {"x": {"deviates": {"below": 1, "above": 1}}}, "says": "y"}]},
            "set either `below` or `above`",
        ),
        ({"fail": [{"when": {"x": {"deviates": 5}}, "says": "y"}]}, "set either `below` or `above`"),
        ({"fail": [{"when": {"x": {"deviates": {"below": 5}}}}]}, "check mine: says: None"),
        ({"fail": [{"when": {"x": {"near": 5}}, "says": "y"}]}, "unknown operator"),
        ({"fail": ["slow"]}, "each entry needs `when` and `message`"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_with_the_field_and_the_remedy(change, says):
    """The message names the check, the field and the value."""
    with pytest.raises(CheckError) as error:
        read_deep("mine", PLAIN | change)
    assert says in str(error.value)
