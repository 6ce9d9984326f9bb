"""The checks of a NodeSet as `spec.health` has them: the shipped ones that apply, other limits and consequences, and checks of one's own."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from soperator.api.base import Problem
from soperator.api.fields.change import seconds
from soperator.api.fields.health import HealthSpec, Own
from soperator.checks import catalog
from soperator.checks.check import Check, CheckError, FailRule, is_number, read_check

#: A report is written again after so many intervals, so that silence can be told from health.
RENEWED = 10
#: So many intervals without a word of a node's runner are silence.
SILENCE = 2.5 * RENEWED
_SIZES = ("above", "below", "grows")


def checks(health: HealthSpec, nodeset: str, facts: Mapping[str, Any]) -> list[Check]:
    """The checks that a NodeSet's nodes run; `facts` are what the NodeSet has. Raises CheckError for what `problems` tells."""
    mine = [own(each) for each in health.own if not each.node_sets or nodeset in each.node_sets]
    found = catalog.applicable([*catalog.shipped(), *mine], facts)
    return [_changed(health, each) for each in found if each.name not in health.skip]


def plan(health: HealthSpec, nodeset: str, facts: Mapping[str, Any]) -> str:
    """The text that the runner of a NodeSet's nodes reads."""
    turns_away = health.around_jobs and health.checks == "Drain"
    found = checks(health, nodeset, facts)
    return catalog.plan(found, RENEWED * seconds(health.interval), health.machines, turns_away)


def own(said: Own) -> Check:
    """A check of one's own; raises CheckError."""
    name = said.name
    ways = {"run": said.run, "script": said.script, "probe": said.probe}
    if len(given := [key for key, value in ways.items() if value]) != 1:
        raise CheckError(f"check {name}: say one of run, script and probe, not {' and '.join(given) or 'none'}")
    if not said.probe and (said.fail or said.given):
        raise CheckError(
            f"check {name}: fail and given are for a probe: a command says by its exit code that it failed"
        )
    command = list(said.run) or ["/bin/sh", "-c", said.script, name]
    measured = {"probe": said.probe, "given": said.given, "fail": said.fail}
    table = measured if said.probe else {"probe": "command", "given": {"run": command}}
    times = {"confirm": said.confirm, "passes": said.passes, "limit": seconds(said.limit), "every": seconds(said.every)}
    return read_check(name, {"about": said.about or name, "then": said.then.lower(), **table, **times})


def problems(health: HealthSpec) -> Iterator[Problem]:
    """What is wrong with the choice, each with its field, and what to do."""
    known = {each.name: each for each in catalog.shipped()}
    for number, each in enumerate(health.own):
        field, name = f"spec.health.own[{number}]", each.name
        if name in known:
            yield Problem(f"{field}.name", name, "another check has this name: choose another one")
            continue
        try:
            known[name] = own(each)
        except CheckError as error:
            yield Problem(field, name, str(error).removeprefix(f"check {name}: "))
    asked = {"skip": health.skip, "limits": health.limits, "then": health.then}
    for field, names in asked.items():
        remedy = f"there is no check of this name: there are {', '.join(known)}"
        yield from (Problem(f"spec.health.{field}", name, remedy) for name in names if name not in known)
    for name, limits in health.limits.items():
        if name in known:
            yield from _limits(known[name], limits)


def _limits(check: Check, limits: Mapping[str, float]) -> Iterator[Problem]:
    judged = sorted({value for rule in check.rules for value, said in rule.when.items() if set(said) & set(_SIZES)})
    remedy = f"the check compares no such value with a number; it compares {', '.join(judged) or 'none'}"
    for value in limits:
        if value not in judged:
            yield Problem(f"spec.health.limits.{check.name}", value, remedy)


def _changed(health: HealthSpec, check: Check) -> Check:
    """The check with the limits and the consequence that the spec has for it."""
    limits = health.limits.get(check.name, {})
    rules = tuple(_limited(rule, limits) for rule in check.rules)
    then = health.then.get(check.name)
    return replace(check, rules=rules, then=then.lower() if then else check.then)


def _limited(rule: FailRule, limits: Mapping[str, float]) -> FailRule:
    when = {
        value: {
            operator: limits[value] if operator in _SIZES and value in limits else limit
            for operator, limit in said.items()
        }
        for value, said in rule.when.items()
    }
    assert all(is_number(each) for each in limits.values())
    return FailRule(when, rule.says)
