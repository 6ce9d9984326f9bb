"""Specs are read into sacctmgr's words, and what cannot be read is told with its field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from soperator.api.associations import (
    TEXT,
    AccountLimits,
    QosLimits,
    SlurmAccountSpec,
    SlurmQOSSpec,
)
from soperator.policy.associations.from_spec import account, qos
from soperator.policy.validation import tenant_problems
from soperator.slurm.sacctmgr import ASSOCIATION, QOS


def spec(**said):
    return SlurmAccountSpec.model_validate({"clusterRef": {"name": "demo"}, **said})


def reported(found):
    return [str(each) for each in found]


def test_every_field_has_sacctmgrs_name():
    """Those of accounts and users, and those of a QOS; TRES, times, lists and numbers become one text each."""
    limits = {
        "grpTRES": {"cpu": 4, "mem": "512G"},
        "grpJobs": 0,
        "grpSubmitJobs": 1,
        "grpWall": 10,
        "maxTRES": {"cpu": 1},
    }
    limits |= {"maxTRESPerNode": {"cpu": 1}, "maxJobs": 2, "maxSubmitJobs": 3, "maxWall": "1-12:00:00"}
    assert set(limits) | {"others"} == {each.alias for each in AccountLimits.model_fields.values()}
    wanted = account(spec(name="x", fairshare=3, qos=["a", "b"], defaultQOS="a", limits=limits), "physics", "mark")
    assert wanted.name == "x"
    assert wanted.fields.keys() <= ASSOCIATION.keys()
    assert {name: wanted.fields[name] for name in ("GrpTRES", "GrpJobs", "QOS", "MaxWall", "Fairshare")} == {
        "GrpTRES": "cpu=4,mem=512G",
        "GrpJobs": "0",
        "QOS": "a,b",
        "MaxWall": "1-12:00:00",
        "Fairshare": "3",
    }
    assert len(wanted.fields) == 12
    values = {"dict": {"cpu": 1}, "int": 1, "str": "1"}
    kinds = {each.alias: values[_sort(each)] for each in QosLimits.model_fields.values() if each.alias != "others"}
    said = {
        "priority": 1,
        "flags": ["NoDecay"],
        "preempt": ["a"],
        "preemptMode": "requeue",
        "graceTime": 1,
        "usageFactor": "0.5",
    }
    found = qos(
        SlurmQOSSpec.model_validate({"clusterRef": {"name": "demo"}, **said, "limits": kinds}), "gold", "mark"
    ).fields
    assert found.keys() <= QOS.keys()
    assert len(found) == len(said) + len(kinds)


def _sort(field):
    if isinstance(field.default, str):
        return "str"
    return "int" if field.default is None and field.default_factory is None else "dict"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            {"limits": {"others": {"GrpTres": "cpu=1"}}},
            "spec.limits.others.GrpTres: cpu=1: unknown field: use one of Fairshare,",
        ),
        (
            {"limits": {"others": {"GrpTRESRunMins": "many"}}},
            "spec.limits.others.GrpTRESRunMins: many: write TRES such as",
        ),
        (
            {"limits": {"grpJobs": 1, "others": {"GrpJobs": "1"}}},
            "spec.limits.others.GrpJobs: 1: it has its own field",
        ),
        ({"limits": {"grpTRES": {"cpu;id": 2}}}, "spec.limits: GrpTRES=cpu;id=2: write TRES such as"),
        (
            {"users": [{"name": "a", "limits": {"others": {"x": "1"}}}]},
            "spec.users[0].limits.others.x: 1: unknown field",
        ),
        ({"users": [{"name": "a"}, {"name": "a"}]}, "spec.users[1].name: a: the list already has this user"),
        ({"qos": ["a"], "defaultQOS": "b"}, "spec.defaultQOS: b: it is not in spec.qos"),
        ({"name": "root"}, "spec.name: root: root is Slurm's own account"),
    ],
)
def test_what_is_wrong_is_told(said, problem):
    """Object, field, value and remedy."""
    assert any(
        f"SlurmAccount physics: {problem}" in each for each in reported(tenant_problems("physics", spec(**said)))
    )


@pytest.mark.parametrize("name", ["a b", "a,b", "Physics", "a=b", "-1", "a'b", "a\nb", "ü", "a" * 64, "a|b"])
def test_names_that_sacctmgr_would_take_apart_are_refused(name):
    """Of accounts, users and QOS."""
    for said in ({"name": name}, {"parent": name}, {"qos": [name]}, {"users": [{"name": name}]}):
        with pytest.raises(ValidationError):
            spec(**said)


@pytest.mark.parametrize("text", ["a'b", 'a"b', "a|b", "a\nb", "a\\b", " a", "a `id`"])
def test_texts_that_sacctmgr_would_change_are_refused(text):
    """They would be set again and again."""
    with pytest.raises(ValidationError):
        spec(description=text)


@given(st.from_regex(TEXT, fullmatch=True).filter(lambda each: len(each) <= 200))
def test_every_other_text_stands_in_one_word_of_a_command(text):
    """It has no line break and no bar."""
    said = account(spec(description=text), "physics", "mark").texts.get("Description", "")
    assert said == text
    assert not set(said) & set("\n|\"'`\\")
