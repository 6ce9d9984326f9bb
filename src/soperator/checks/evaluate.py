"""Evaluates a check's readings to a verdict: passed, failed or broken.

*Broken* means that the check itself did not work, so that the state of the node is unknown; it never counts as a pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from soperator.checks.check import Check, FailRule, Reading, Value, is_number

Outcome = Literal["pass", "fail", "broken"]
Machines = Mapping[str, Mapping[str, Value]]


@dataclass(frozen=True)
class Verdict:
    """The result of a check, with a message unless it passes; `values` are the numbers behind it.

    `counters` are the next run's `before`, with which a rule with `grows` compares.
    """

    outcome: Outcome
    message: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)


def judge(
    check: Check,
    readings: Sequence[Reading],
    machines: Machines | None = None,
    before: Mapping[str, float] | None = None,
) -> Verdict:
    """Return the verdict on a check's readings.

    `machines` are the thresholds by machine type, `before` the counters of the last run. Without any reading the check is broken, because a working
    probe always returns one.
    """
    if not readings:
        return Verdict("broken", f"probe {check.probe} measured nothing")
    known = before or {}
    failed: list[tuple[str, dict[str, Value]]] = []
    try:
        for reading in readings:
            limits = limits_of(reading, machines or {})
            for rule in check.rules:
                if fails(rule, reading, limits, known):
                    failed.append((sentence(rule, reading, limits), _evidence(rule, reading)))
                    break
    except (KeyError, ValueError, TypeError, IndexError) as error:
        return Verdict("broken", f"its message or its rule does not match the readings: {error!r}")
    counters = _counters(check, readings)
    if not failed:
        return Verdict("pass", counters=counters)
    says, values = failed[0]
    return Verdict("fail", f"{says} (and {len(failed) - 1} more)" if failed[1:] else says, values, counters)


def fails(rule: FailRule, reading: Reading, limits: Mapping[str, Value], before: Mapping[str, float]) -> bool:
    """Return whether all conditions of a rule hold for a reading."""
    return all(
        _holds(operator, reading.get(key), _resolved(limit, limits), before.get(f"{reading.get('of')}.{key}"))
        for key, said in rule.when.items()
        for operator, limit in said.items()
    )


def _holds(operator: str, value: Value | None, limit: Any, before: float | None) -> bool:
    """Return whether a value meets a condition; False if the value or the limit is not known."""
    if value is None or limit is None:
        return False
    match operator:
        case "is":
            return bool(value == limit)
        case "is_not":
            return bool(value != limit)
        case "among":
            return bool(value in limit)
    number = _as_number(value)
    match operator:
        case "above":
            return bool(number > limit)
        case "below":
            return bool(number < limit)
        case _:  # grows: not the first time, and not when the counter began anew
            return before is not None and number - before > limit


def _as_number(value: Value) -> float:
    if not is_number(value):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _resolved(limit: Any, limits: Mapping[str, Value]) -> Any:
    return limits.get(limit[1:]) if isinstance(limit, str) and limit.startswith("@") else limit


def limits_of(reading: Reading, machines: Machines) -> Mapping[str, Value]:
    """Return the thresholds of the machine type with the longest name that occurs in the reading's `model`."""
    model = str(reading.get("model", "")).lower()
    found = [name for name in machines if name.lower() in model] if model else []
    return machines[max(found, key=len)] if found else {}


def sentence(rule: FailRule, reading: Reading, limits: Mapping[str, Value]) -> str:
    """Return the rule's message about a reading that fails it, on one line."""
    return " ".join(rule.message.format(**{**limits, **reading}).split())


def _evidence(rule: FailRule, reading: Reading) -> dict[str, Value]:
    return {key: reading[key] for key in ("of", *rule.when) if key in reading}


def _counters(check: Check, readings: Sequence[Reading]) -> dict[str, float]:
    wanted = {key for rule in check.rules for key, said in rule.when.items() if "grows" in said}
    return {
        f"{reading.get('of')}.{key}": float(reading[key])
        for reading in readings
        for key in wanted
        if is_number(reading.get(key))
    }
