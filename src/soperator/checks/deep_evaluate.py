"""Evaluates the readings of deep checks to findings.

A reading fails by a threshold (of the spec, or of the machine type), or because it is an outlier among its peers. A node passes only if it has a
reading and no finding; a node without a reading is broken, so that a silent job is never a pass.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeGuard

from soperator.checks import catalog, outliers
from soperator.checks.check import Reading, Value, is_number
from soperator.checks.deep_check import DeepCheck, DeepRule, Deviation
from soperator.checks.evaluate import (
    Machines,
    Verdict,
    fails,
    limits_of,
    sentence,
)
from soperator.checks.outliers import Comparison

#: `unsure` accuses nobody and is told: too few to compare, or too many that are worse.
Outcome = Literal["fail", "broken", "unsure"]
#: What a reading speaks of: nodes, and the part of them.
Thing = tuple[tuple[str, ...], str]
Compared = Mapping[Deviation, Comparison[Thing]]
_LONGEST = 300
_UNFIT = (KeyError, ValueError, TypeError, IndexError, AttributeError)


@dataclass(frozen=True)
class Finding:
    """A fault of one or several nodes, as one sentence with its numbers.

    If it names several nodes, at least one of them, or the network between them, is bad.
    """

    outcome: Outcome
    nodes: tuple[str, ...]
    message: str
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class DeepVerdict:
    """The result of the job of one node: the verdict, its readings, which become peers of the next ones, and messages about all nodes (`unsure`)."""

    verdict: Verdict
    readings: tuple[Reading, ...] = ()
    unsure: str = ""


def of_node(
    check: DeepCheck,
    text: str,
    node: str,
    others: Iterable[Reading] = (),
    limits: Mapping[str, Value] | None = None,
) -> DeepVerdict:
    """Return the result from the output of a node's program that ended with exit code 0; without readings of that node it is broken."""
    readings = read(text)
    if isinstance(readings, str):
        return DeepVerdict(Verdict("broken", readings))
    own = tuple(each for each in readings if nodes_of(each) == (node,))
    found = judge(check, own, others, [node], limits)
    unsure = "; ".join(each.message for each in found if each.outcome == "unsure")
    for outcome in ("fail", "broken"):
        if bad := [each for each in found if each.outcome == outcome]:
            more = f" (and {len(bad) - 1} more)" if bad[1:] else ""
            return DeepVerdict(Verdict(outcome, bad[0].message + more, bad[0].values), own, unsure)
    return DeepVerdict(Verdict("pass"), own, unsure)


def read(text: str) -> list[Reading] | str:
    """Return the readings in the last line of a program's output, or the cause of their absence."""
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    try:
        said = json.loads(last)
        if said["soperator"] == 1:
            return [each for each in said["readings"] if is_sound(each)]
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return f"its last line is not JSON with readings: {last[:100]!r}"


def judge(
    check: DeepCheck,
    readings: Iterable[Reading],
    others: Iterable[Reading] = (),
    nodes: Iterable[str] = (),
    limits: Mapping[str, Value] | None = None,
) -> list[Finding]:
    """Return the findings in the readings of one check.

    `others` are the newest readings of the same check by healthy peers in the same NodeSet, and `nodes` the nodes that the job measured. `limits` are
    the thresholds of the spec, by the name behind @; they override those of the machine type. A new reading of a thing replaces its reading in
    `others`.
    """
    wanted = tuple(nodes)
    own = [each for each in readings if is_sound(each) and (not wanted or set(nodes_of(each)) <= set(wanted))]
    machines = {
        machine: {key: each.value for key, each in found.items()} for machine, found in catalog.machines().items()
    }
    crowd = {_key(each): each for each in (*filter(is_sound, others), *own)}
    compared = {each: _compare(each, crowd.values()) for each in check.deviations}
    found = [*_failed(check, own, compared, limits or {}, machines)]
    missing = sorted(set(wanted) - {node for each in own for node in nodes_of(each)})
    if missing:
        found.append(
            Finding("broken", tuple(missing), f"{check.program} gave no reading of {' '.join(missing)}"[:_LONGEST])
        )
    return [*found, *_unsure(check, compared)]


def nodes_of(reading: Reading) -> tuple[str, ...]:
    """Return the nodes that a reading is about."""
    return tuple(str(reading["of"]).split())


def named(readings: Iterable[Reading], nodes: Iterable[str]) -> list[Reading]:
    """Return the valid readings of one job; a reading of all its nodes (written as `*`, because the line would be too long) gets their names."""
    everyone = " ".join(nodes)
    return [{**each, "of": everyone} if each["of"] == "*" else each for each in readings if is_sound(each)]


def is_sound(reading: object) -> TypeGuard[Reading]:
    """Return whether a value is a reading: a table of plain values with the field `of`."""
    return (
        isinstance(reading, Mapping)
        and isinstance(reading.get("of"), str)
        and bool(reading["of"].split())
        and all(isinstance(key, str) and isinstance(value, int | float | str) for key, value in reading.items())
    )


def _key(reading: Reading) -> Thing:
    return tuple(sorted(nodes_of(reading))), str(reading.get("part", ""))


def _compare(deviation: Deviation, readings: Iterable[Reading]) -> Comparison[Thing]:
    known = {_key(each): each.get(deviation.value) for each in readings}
    return outliers.compare({key: float(value) for key, value in known.items() if is_number(value)}, deviation)


def _failed(
    check: DeepCheck,
    readings: Sequence[Reading],
    compared: Compared,
    limits: Mapping[str, Value],
    machines: Machines,
) -> Iterator[Finding]:
    """Yield at most one finding for each thing that was read, from the first rule that it fails."""
    for reading in readings:
        known = {**limits_of(reading, machines), **limits}
        for rule in check.rules:
            comparison = compared.get(rule.deviates) if rule.deviates else None
            try:
                if not fails(rule.plain, reading, known, {}):
                    continue
                if comparison is not None and _key(reading) not in comparison.bad:
                    continue
                known_values = {**known, "peers": comparison.middle} if comparison is not None else known
                yield Finding(
                    "fail",
                    nodes_of(reading),
                    sentence(rule.plain, reading, known_values)[:_LONGEST],
                    _evidence(rule, reading, known_values),
                )
            except _UNFIT as error:
                yield Finding(
                    "broken", nodes_of(reading), f"check {check.name} does not match its readings: {error!r}"[:_LONGEST]
                )
            break


def _evidence(rule: DeepRule, reading: Reading, known_values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the numbers behind a finding, including the thresholds and the peers' median."""
    named = [
        str(limit)[1:] for said in rule.plain.when.values() for limit in said.values() if str(limit).startswith("@")
    ]
    values = [*rule.plain.when, *([rule.deviates.value] if rule.deviates else [])]
    found = {key: reading[key] for key in ("of", "part", "model", *values) if key in reading}
    return found | {
        key: known_values[key] for key in (*named, *(["peers"] if rule.deviates else [])) if key in known_values
    }


def _unsure(check: DeepCheck, compared: Compared) -> Iterator[Finding]:
    for deviation, each in compared.items():
        if each.divided:
            says = (
                f"{deviation.value} of {each.divided} of {each.count} is more than {deviation.percent:g} % {deviation.side} "
                "the better values: too many to be bad machines. Check whether all have the same model, and what the worse ones share"
            )
            yield Finding("unsure", (), says, {"divided": each.divided, "count": each.count, "peers": each.middle})
    count = max((each.count for each in compared.values()), default=0)
    if check.per == "node" and 0 < count < outliers.LEAST:
        says = f"{count} readings of {check.program} are too few to compare: at least {outliers.LEAST} are required"
        yield Finding("unsure", (), says, {"count": count})
