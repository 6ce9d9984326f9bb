"""A deep check as data: the command of its job's tasks, the rules for its readings, and the shipped checks.

A check is a file in the format of the quick checks, with one addition, the comparison with peers (`when.VALUE.deviates`). Few numbers of a machine
are known beforehand, but many equal machines are available. Source: docs/decisions/0056 and 0057.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from soperator.checks.check import CheckError, FailRule, Value, is_number, read_rule

FOLDER = Path(__file__).parent / "deep"
#: The program in every jail: it comes with the bundle, which no job can write.
PROGRAM = "/opt/soperator/libexec/deep"
#: What one job of a check measures: a node, two nodes and the path between them, or all its nodes.
PER = ("node", "pair", "group")
#: The longest time limit of a job in seconds.
LONGEST = 24 * 3600

Per = Literal["node", "pair", "group"]
_WORD = re.compile(r"[a-z0-9-]{1,63}")
_GIVEN = re.compile(r"[A-Za-z0-9_./+-]{1,200}")
_FIELDS = ("about", "per", "program", "given", "needs", "time", "fail")


@dataclass(frozen=True)
class Deviation:
    """The distance of a value from the median of its peers at which it is bad: `percent` of the median, and `spreads` times the usual distance.

    `side` is the bad side.
    """

    value: str
    side: Literal["below", "above"]
    percent: float
    spreads: float = 4.0


@dataclass(frozen=True)
class DeepRule:
    """A rule that a reading fails if all of `plain` hold and the value deviates; `plain` may be empty if `deviates` is not."""

    plain: FailRule
    deviates: Deviation | None = None


@dataclass(frozen=True)
class DeepCheck:
    """One deep check. `needs` are the facts that it requires; `time` is the longest run of its job in seconds."""

    name: str
    about: str
    per: Per
    program: str
    time: int
    rules: tuple[DeepRule, ...]
    given: Mapping[str, Value] = field(default_factory=dict)
    needs: tuple[str, ...] = ()

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """The names of the values that the check compares with peers."""
        return tuple(each.deviates for each in self.rules if each.deviates)


def read_deep(name: str, said: Mapping[str, Any]) -> DeepCheck:
    """Return a deep check from its table; raises CheckError, which names the check, the field, the value and the remedy."""
    if unknown := sorted(set(said) - set(_FIELDS)):
        raise CheckError(f"check {name}: {unknown[0]}: unknown field: use one of {', '.join(_FIELDS)}")
    if said.get("per") not in PER:
        raise CheckError(f"check {name}: per: {said.get('per')!r} is unknown: use one of {', '.join(PER)}")
    time = said.get("time")
    if not isinstance(time, int) or isinstance(time, bool) or not 1 <= time <= LONGEST:
        raise CheckError(f"check {name}: time: {time!r} is not a number of seconds from 1 to {LONGEST}")
    if not said.get("fail"):
        raise CheckError(f"check {name}: fail: it is empty, so the check could only pass: add a rule that fails it")
    return DeepCheck(
        name=name,
        about=_text(name, "about", said.get("about"), re.compile(r".+")),
        per=said["per"],
        program=_text(name, "program", said.get("program"), _WORD),
        time=time,
        rules=tuple(_rule(name, each) for each in said["fail"]),
        given={key: _given(name, key, value) for key, value in said.get("given", {}).items()},
        needs=tuple(said.get("needs", ())),
    )


@cache
def shipped_deep() -> tuple[DeepCheck, ...]:
    """Return the shipped deep checks, by name."""
    return tuple(read_deep(path.stem, tomllib.loads(path.read_text("utf-8"))) for path in sorted(FOLDER.glob("*.toml")))


def applicable(checks: Iterable[DeepCheck], facts: Mapping[str, Any]) -> list[DeepCheck]:
    """Return the checks whose requirements are among the facts. In `given`, a text `@name` is replaced with the fact of that name."""
    return [
        replace(each, given={key: _filled(value, facts) for key, value in each.given.items()})
        for each in checks
        if all(facts.get(need) for need in each.needs)
    ]


def command(check: DeepCheck) -> list[str]:
    """Return the command that each task of the check's job runs."""
    return [PROGRAM, check.program, *(f"{key}={value}" for key, value in check.given.items())]


def limit_names(check: DeepCheck) -> list[str]:
    """Return the names of thresholds that a check uses."""
    said = [limit for rule in check.rules for judged in rule.plain.when.values() for limit in judged.values()]
    return sorted({limit[1:] for limit in said if isinstance(limit, str) and limit.startswith("@")})


def limit_of(check: DeepCheck, deviation: Deviation, limits: Mapping[str, Value]) -> float | None:
    """Return the threshold (`@name`) with which another rule of the check compares the same value, whatever the peers' values are."""
    for rule in check.rules:
        named = rule.plain.when.get(deviation.value, {}).get(deviation.side)
        found = limits.get(str(named)[1:]) if isinstance(named, str) and named.startswith("@") else named
        if is_number(found):
            return float(found)
    return None


def _rule(name: str, said: object) -> DeepRule:
    when = said.get("when") if isinstance(said, Mapping) else None
    if (
        not isinstance(said, Mapping)
        or not isinstance(when, Mapping)
        or not all(isinstance(each, Mapping) for each in when.values())
    ):
        raise CheckError(f"check {name}: fail: each entry needs `when` and `message`")
    found = [(value, judged["deviates"]) for value, judged in when.items() if "deviates" in judged]
    if found[1:]:
        raise CheckError(f"check {name}: when.{found[1][0]}.deviates: one rule compares one value: write two rules")
    plain = {value: rest for value, judged in when.items() if (rest := _without(judged))}
    if not found:
        return DeepRule(read_rule(name, said))
    if plain:
        read_rule(name, {"when": plain, "says": said.get("says")})
    says = _text(name, "says", said.get("says"), re.compile(r".+"))
    return DeepRule(FailRule(plain, says), _deviation(name, *found[0]))


def _without(judged: Mapping[str, Any]) -> dict[str, Any]:
    return {operator: limit for operator, limit in judged.items() if operator != "deviates"}


def _deviation(name: str, value: str, said: object) -> Deviation:
    where = f"check {name}: when.{value}.deviates"
    if (
        not isinstance(said, Mapping)
        or len(sides := set(said) & {"below", "above"}) != 1
        or set(said) - {*sides, "spreads"}
    ):
        raise CheckError(
            f"{where}: set either `below` or `above` in percent of the peers' median, and `spreads` unless it is 4"
        )
    side, spreads = sides.pop(), said.get("spreads", 4.0)
    percent = said[side]
    most = 100 if side == "below" else 10_000
    if not is_number(percent) or not 0 < percent < most:
        raise CheckError(f"{where}.{side}: {percent!r} is not a percentage above 0 and below {most}")
    if not is_number(spreads) or not 0 < spreads <= 100:
        raise CheckError(f"{where}.spreads: {spreads!r} is not a number above 0 and at most 100")
    return Deviation(value, "below" if side == "below" else "above", float(percent), float(spreads))


def _given(name: str, key: str, value: object) -> Value:
    """Return a parameter as text. It becomes an argument of a command, so only characters of numbers, names and paths are valid."""
    said = str(value)
    if not _WORD.fullmatch(key) or isinstance(value, bool) or not _GIVEN.fullmatch(said.removeprefix("@")):
        raise CheckError(f"check {name}: given.{key}: {value!r} is not a number, a name or a path")
    return value if is_number(value) and isinstance(value, int | float) else said


def _filled(value: Value, facts: Mapping[str, Any]) -> Value:
    return facts.get(value[1:], "") if isinstance(value, str) and value.startswith("@") else value


def _text(name: str, key: str, value: object, allowed: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not allowed.fullmatch(value):
        raise CheckError(f"check {name}: {key}: {value!r} is missing or has an invalid value")
    return value
