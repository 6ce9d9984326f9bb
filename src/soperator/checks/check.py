"""A check as data: its requirements, its probe, its rules, and the consequence of a failure. A check is data, so that the spec of a cluster can
contain one.

A probe measures and returns *readings*, each a table of values about one thing (`of`). A rule fails a reading if all conditions of its `when` hold. A
condition on a value that the reading lacks does not hold: a GPU without ECC has no ECC errors. If a thing is missing, the probe reports that as a
value.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeGuard

Value = float | str | bool
Reading = Mapping[str, Value]

#: When checks are run: by slurmd in its interval, and around each job.
CONTEXTS = ("interval", "prolog", "epilog")
#: `drain`: a node that fails it takes no more jobs. `replace`: and moves to another machine if it stays so. `tell`: it is told, and nothing else.
THEN = ("drain", "replace", "report")
#: The probes, each with what its `given` must hold.
PROBES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "filesystem": ("paths",),
        "latency": ("paths",),
        "memory": (),
        "oom": (),
        "processes": (),
        "leftovers": ("scratch",),
        "holders": (),
        "kernel": ("seconds",),
        "clock": (),
        "infiniband": (),
        "nvidia": (),
        "nvlink": (),
        "amd": (),
        "command": ("run",),
    }
)
#: The operators of a rule.
OPERATORS = ("above", "below", "is", "is_not", "among", "grows")
#: No check may be given more time than this, in seconds; all together have `runner.DEADLINE`.
LONGEST = 6.0


class CheckError(ValueError):
    """A check is invalid; the message names the check, the field, the value and the remedy."""


@dataclass(frozen=True)
class FailRule:
    """A rule of a check, which a reading fails if all conditions of `when` hold: value → operator → limit. A limit `@name` is a threshold of the
    machine type.
    """

    when: Mapping[str, Mapping[str, Any]]
    message: str


@dataclass(frozen=True)
class Check:
    """One check.

    `probe` measures with the arguments `given`; the exit code of the probe `command` is the verdict. `needs` are the facts that the check requires.
    It is failing after `confirm` failures in a row, and recovers after `passes` passes in a row. `limit` and `every` are in seconds.
    """

    name: str
    about: str
    probe: str
    given: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[FailRule, ...] = ()
    at: tuple[str, ...] = ("interval",)
    needs: tuple[str, ...] = ()
    on_failure: str = "drain"
    confirm: int = 2
    passes: int = 3
    limit: float = 3.0
    every: float = 0.0


_FIELDS = ("about", "probe", "given", "fail", "at", "needs", "then", "confirm", "passes", "limit", "every")


def read_check(name: str, said: Mapping[str, Any]) -> Check:
    """Return a check from its table, as TOML or JSON gives it; raises CheckError."""
    if unknown := sorted(set(said) - set(_FIELDS)):
        raise CheckError(f"check {name}: {unknown[0]}: unknown field: use one of {', '.join(_FIELDS)}")
    check = Check(
        name=name,
        about=_text(name, said, "about"),
        probe=_text(name, said, "probe"),
        given=said.get("given", {}),
        rules=tuple(read_rule(name, each) for each in said.get("fail", ())),
        at=_words(name, said, "at", CONTEXTS) or ("interval",),
        needs=tuple(said.get("needs", ())),
        on_failure=_words(name, {"then": [said.get("then", "drain")]}, "then", THEN)[0],
        confirm=int(_number(name, said, "confirm", 2, 1, 100)),
        passes=int(_number(name, said, "passes", 3, 1, 1000)),
        limit=_number(name, said, "limit", 3.0, 0.1, LONGEST),
        every=_number(name, said, "every", 0.0, 0.0, 86400.0),
    )
    if check.probe not in PROBES:
        raise CheckError(f"check {name}: probe: {check.probe!r} is unknown: use one of {', '.join(PROBES)}")
    if missing := [key for key in PROBES[check.probe] if not check.given.get(key)]:
        raise CheckError(f"check {name}: given.{missing[0]}: the probe {check.probe} needs it")
    if check.probe != "command" and not check.rules:
        raise CheckError(f"check {name}: fail: it is empty, so the check could only pass: add a rule that fails it")
    return check


def table(check: Check) -> dict[str, Any]:
    """Return the table from which `read_check` reads the same check."""
    rules = [
        {"when": {key: dict(said) for key, said in each.when.items()}, "says": each.message} for each in check.rules
    ]
    plain = {key: getattr(check, "on_failure" if key == "then" else key) for key in _FIELDS if key != "fail"}
    return plain | {"given": dict(check.given), "fail": rules, "at": list(check.at), "needs": list(check.needs)}


def read_rule(name: str, said: Mapping[str, Any]) -> FailRule:
    """Return a rule from its table; raises CheckError."""
    when, says = said.get("when"), said.get("says")
    if not isinstance(when, Mapping) or not when or not isinstance(says, str) or not says:
        raise CheckError(f"check {name}: fail: each entry needs `when` and `message`")
    for value, judged in when.items():
        if not isinstance(judged, Mapping) or not judged:
            raise CheckError(f"check {name}: when.{value}: the operator is missing: use one of {', '.join(OPERATORS)}")
        for operator, limit in judged.items():
            _limit(name, f"when.{value}.{operator}", operator, limit)
    return FailRule(when, says)


def _limit(name: str, where: str, operator: str, limit: object) -> None:
    if operator not in OPERATORS:
        raise CheckError(f"check {name}: {where}: unknown operator: use one of {', '.join(OPERATORS)}")
    looked_up = isinstance(limit, str) and limit.startswith("@")
    if operator in ("above", "below", "grows") and not (is_number(limit) or looked_up):
        raise CheckError(f"check {name}: {where}: {limit!r} is not a number")
    if operator == "among" and not isinstance(limit, Sequence):
        raise CheckError(f"check {name}: {where}: {limit!r} is not a list")


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value can be compared by size; NaN cannot."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _text(name: str, said: Mapping[str, Any], key: str) -> str:
    text = said.get(key)
    if not isinstance(text, str) or not text:
        raise CheckError(f"check {name}: {key}: it is missing or not a text: set a text")
    return text


def _words(name: str, said: Mapping[str, Any], key: str, allowed: Iterable[str]) -> tuple[str, ...]:
    for each in said.get(key, ()):
        if each not in allowed:
            raise CheckError(f"check {name}: {key}: {each!r} is not one of {', '.join(allowed)}")
    return tuple(said.get(key, ()))


def _number(name: str, said: Mapping[str, Any], key: str, default: float, least: float, most: float) -> float:
    value = said.get(key, default)
    if not is_number(value) or not least <= value <= most:
        raise CheckError(f"check {name}: {key}: {value!r} is not a number from {least:g} to {most:g}")
    return float(value)
