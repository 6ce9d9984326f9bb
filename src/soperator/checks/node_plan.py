"""The checks of a NodeSet, computed from `spec.health`: the shipped checks that apply, the thresholds and consequences of the spec, and the site's
own checks. The operator computes them, because a worker does not have the spec.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from soperator.api.base import Problem, numbers
from soperator.api.fields.change import seconds
from soperator.api.fields.health import CustomCheck, HealthSpec
from soperator.checks import catalog
from soperator.checks.check import Check, CheckError, FailRule, read_check

#: Intervals after which an unchanged report is written again, so that silence can be told from health.
RENEWED = 10
#: Seconds without a report of a node's runner that count as silence, in intervals.
SILENCE = 2.5 * RENEWED
_SIZES = ("above", "below", "grows")
_DECIMAL = re.compile(r"-?[0-9]+([.][0-9]+)?")


def checks(health: HealthSpec, nodeset: str, facts: Mapping[str, Any]) -> list[Check]:
    """Return the checks that a NodeSet's nodes run; `facts` are the capabilities of the NodeSet. Raises CheckError for a spec in which `problems`
    finds a fault.
    """
    mine = [custom(each) for each in health.custom_checks if not each.node_sets or nodeset in each.node_sets]
    found = catalog.applicable([*catalog.shipped(), *mine], facts)
    return [_changed(health, each) for each in found if each.name not in health.disabled_checks]


def plan(health: HealthSpec, nodeset: str, facts: Mapping[str, Any]) -> str:
    """Return the plan as JSON for the runner on a NodeSet's nodes."""
    requeues_jobs = health.prolog_epilog and health.mode == "Drain"
    found = checks(health, nodeset, facts)
    return catalog.plan(
        found,
        RENEWED * seconds(health.interval),
        {each.machine_type: numbers(each.values) for each in health.thresholds_by_machine_type},
        requeues_jobs,
    )


def custom(said: CustomCheck) -> Check:
    """Return a site's own check from the spec; raises CheckError if it is invalid."""
    name = said.name
    ways = {"run": said.run, "script": said.script, "probe": said.probe}
    if len(given := [key for key, value in ways.items() if value]) != 1:
        raise CheckError(f"check {name}: set exactly one of run, script and probe, not {' and '.join(given) or 'none'}")
    if not said.probe and (said.fail_when or said.parameters):
        raise CheckError(
            f"check {name}: failWhen and parameters need a probe, because a command fails by its exit code: remove them"
        )
    command = list(said.run) or ["/bin/sh", "-c", said.script, name]
    measured = {"probe": said.probe, "given": said.parameters, "fail": [_rule(each) for each in said.fail_when]}
    table = measured if said.probe else {"probe": "command", "given": {"run": command}}
    thresholds = {"confirm": said.failure_threshold, "passes": said.success_threshold}
    times = {"limit": seconds(said.timeout), "every": seconds(said.min_interval)}
    try:
        return read_check(
            name, {"about": said.description or name, "then": said.on_failure.lower(), **table, **thresholds, **times}
        )
    except CheckError as error:
        raise CheckError(_in_words_of_the_spec(name, str(error))) from error


def _in_words_of_the_spec(name: str, text: str) -> str:
    """Return the fault of a check with the field names of the spec; `text` has the field names of the shipped checks."""
    field, colon, rest = text.removeprefix(f"check {name}: ").partition(": ")
    for ours, theirs in (("given", "parameters"), ("fail", "failWhen"), ("says", "message")):
        field = re.sub(rf"\b{ours}\b", theirs, field)
    return f"check {name}: {field}{colon}{rest}"


def _rule(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule of the spec in the format of the shipped checks."""
    ours = {"says" if key == "message" else key: value for key, value in said.items()}
    match ours.get("when"):
        case dict() as when:
            return ours | {"when": {value: _limits_as_numbers(limits) for value, limits in when.items()}}
        case _:
            return ours


def _limits_as_numbers(limits: Any) -> Any:
    """Return the operators of a value, with each decimal number in quotes as a number: Kubernetes' conventions allow no floats in a spec."""
    if not isinstance(limits, dict):
        return limits
    return {
        operator: float(limit) if operator in _SIZES and isinstance(limit, str) and _DECIMAL.fullmatch(limit) else limit
        for operator, limit in limits.items()
    }


def problems(health: HealthSpec) -> Iterator[Problem]:
    """Yield the problems of the selection, each with its field and the remedy."""
    known = {each.name: each for each in catalog.shipped()}
    for number, each in enumerate(health.custom_checks):
        field, name = f"spec.health.customChecks[{number}]", each.name
        if name in known:
            yield Problem(f"{field}.name", name, "another check has this name: choose another name")
            continue
        try:
            known[name] = custom(each)
        except CheckError as error:
            yield Problem(field, name, str(error).removeprefix(f"check {name}: "))
    asked = {
        "disabledChecks": health.disabled_checks,
        "thresholds": [each.check for each in health.thresholds],
        "onFailure": health.on_failure,
    }
    for field, names in asked.items():
        remedy = f"no check has this name: use one of {', '.join(known)}"
        yield from (Problem(f"spec.health.{field}", name, remedy) for name in names if name not in known)
    for entry in health.thresholds:
        if entry.check in known:
            yield from _limits(known[entry.check], entry.values)


def _limits(check: Check, limits: Iterable[str]) -> Iterator[Problem]:
    judged = sorted({value for rule in check.rules for value, said in rule.when.items() if set(said) & set(_SIZES)})
    remedy = (
        f"the check does not compare this value with a number: remove it; its values: {', '.join(judged) or 'none'}"
    )
    for value in limits:
        if value not in judged:
            yield Problem(f"spec.health.thresholds.{check.name}", value, remedy)


def _changed(health: HealthSpec, check: Check) -> Check:
    """Return a check with the thresholds and the consequence of the spec."""
    limits = next((numbers(each.values) for each in health.thresholds if each.check == check.name), {})
    rules = tuple(_limited(rule, limits) for rule in check.rules)
    then = health.on_failure.get(check.name)
    return replace(check, rules=rules, on_failure=then.lower() if then else check.on_failure)


def _limited(rule: FailRule, limits: Mapping[str, float]) -> FailRule:
    when = {
        value: {
            operator: limits[value] if operator in _SIZES and value in limits else limit
            for operator, limit in said.items()
        }
        for value, said in rule.when.items()
    }
    return FailRule(when, rule.message)
