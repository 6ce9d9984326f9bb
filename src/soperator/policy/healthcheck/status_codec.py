"""Reads and writes the history of a deep check in the status of its HealthCheck, which is its only memory.

Nodes are grouped by the second of their last run, so that five thousand nodes are a few host lists. If there are too many groups, the two nearest are
merged under the earlier second, so that some nodes run the check a little too early, but never too late.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from soperator.api.healthcheck import MOST_ENDED, MOST_NODES, MOST_NOTES, MOST_PAIRS, MOST_READINGS, MOST_TIMES
from soperator.checks.check import Reading, is_number
from soperator.checks.check_state import CheckState
from soperator.checks.deep_evaluate import nodes_of
from soperator.policy.healthcheck.pairwise_search import pair
from soperator.policy.healthcheck.types import (
    CheckHistory,
    ComparisonRound,
    NodeFailure,
    ResolvedFailure,
    RoundNote,
    Run,
)
from soperator.slurm.hostlist import compress, expand

_SHORT, _LOG, _VALUES = 256, 512, 32


def write(book: CheckHistory) -> dict[str, Any]:
    """Return the fields of the status, each within the bounds of its schema."""
    cases = sorted(book.cases.items(), key=lambda each: (each[1].standing.since, each[0]))[:MOST_NODES]
    return {
        "request": book.request,
        "asked": int(book.asked),
        "top": max([book.top, *(each.job for each in book.runs)]),
        "owed": compress(book.owed),
        "runs": [_run(each) for each in book.runs],
        "ran": [{"at": at, "nodes": compress(nodes)} for at, nodes in _times(book.ran)],
        "nodes": [_case(name, each) for name, each in cases],
        "ended": [_past(each) for each in book.ended[-MOST_ENDED:]],
        "readings": [_reading(each) for each in book.readings[-MOST_READINGS:]],
        "notes": [_note(each) for each in book.notes[-MOST_NOTES:]],
    } | ({"round": _round(book.round)} if book.round else {})


def read_found(name: str, status: Mapping[str, Any], then: str = "drain") -> CheckHistory:
    """Return the results in a status: the nodes that do not pass, and the failures that have ended."""
    return CheckHistory(
        cases={str(each["node"]): _read_case(name, each, then) for each in status.get("nodes", ())},
        ended=tuple(_read_past(each) for each in status.get("ended", ())),
    )


def read(name: str, status: Mapping[str, Any], then: str = "drain") -> CheckHistory:
    """Return the history in a status, empty if it has none. It lacks the name of the check and the consequence of a failure (`then`)."""
    return replace(
        read_found(name, status, then),
        ran={name: float(each["at"]) for each in status.get("ran", ()) for name in expand(each["nodes"])},
        runs=tuple(
            Run(int(each["job"]), nodes[0], float(each["at"]), bool(each.get("retest")), tuple(nodes[1:]))
            for each in status.get("runs", ())
            if (nodes := expand(each["node"]))
        ),
        owed=frozenset(expand(status.get("owed", ""))),
        request=str(status.get("request", "")),
        asked=float(status.get("asked", 0)),
        top=int(status.get("top", 0)),
        readings=tuple(_read_reading(each) for each in status.get("readings", ())),
        round=_read_round(status["round"]) if status.get("round") else None,
        notes=tuple(
            RoundNote(float(each["at"]), tuple(expand(each["nodes"])), str(each["says"]))
            for each in status.get("notes", ())
        ),
    )


def _round(each: ComparisonRound) -> dict[str, Any]:
    said = {"at": int(each.at), "nodes": compress(each.nodes)}
    more = {
        "whole": each.whole,
        "tested": each.tested,
        "moved": int(each.moved),
        "readings": [_reading(reading) for reading in each.readings[-MOST_PAIRS:]],
        "broken": [{"nodes": compress(both), "times": times} for both, times in sorted(each.broken.items())][
            :MOST_PAIRS
        ],
        "says": each.says[:_SHORT],
    }
    return said | {key: value for key, value in more.items() if value}


def _read_round(said: Mapping[str, Any]) -> ComparisonRound:
    return ComparisonRound(
        at=float(said["at"]),
        nodes=tuple(expand(said["nodes"])),
        whole=bool(said.get("whole")),
        tested=str(said.get("tested", "")),
        moved=float(said.get("moved", 0)),
        readings=tuple(_read_reading(each) for each in said.get("readings", ())),
        broken={pair(*expand(each["nodes"])): int(each["times"]) for each in said.get("broken", ())},
        says=str(said.get("says", "")),
    )


def _note(each: RoundNote) -> dict[str, Any]:
    return {"at": int(each.at), "nodes": compress(each.nodes), "says": each.says[:_SHORT]}


def _reading(reading: Reading) -> dict[str, Any]:
    words = {
        "node": compress(nodes_of(reading)),
        **{key: reading[key] for key in ("part", "model") if reading.get(key)},
    }
    numbers = [(key, float(value)) for key, value in reading.items() if is_number(value) and isfinite(value)]
    return {**words, "values": dict(numbers[:_VALUES])}


def _read_reading(said: Mapping[str, Any]) -> Reading:
    words = {key: str(said[key]) for key in ("part", "model") if said.get(key)}
    return {
        "of": " ".join(expand(said["node"])),
        **words,
        **{str(key): float(value) for key, value in said.get("values", {}).items()},
    }


def _times(ran: Mapping[str, float]) -> list[tuple[int, list[str]]]:
    found: dict[int, list[str]] = {}
    for name, at in ran.items():
        found.setdefault(int(at), []).append(name)
    groups = sorted(found.items())
    while len(groups) > MOST_TIMES:
        place = min(range(len(groups) - 1), key=lambda each: groups[each + 1][0] - groups[each][0])
        groups[place : place + 2] = [(groups[place][0], groups[place][1] + groups[place + 1][1])]
    return groups


def _run(run: Run) -> dict[str, Any]:
    return {"job": run.job, "node": compress(run.nodes), "at": int(run.at)} | ({"retest": True} if run.retest else {})


def _case(node: str, case: NodeFailure) -> dict[str, Any]:
    each = case.standing
    said = {"node": node, "state": each.state, "since": int(each.since), "says": each.says[:_SHORT]}
    more = {
        "broken": each.broken[:_SHORT],
        "fails": each.fails,
        "passes": each.passes,
        "relapses": each.relapses,
        "job": case.job,
        "at": int(case.at),
        "log": case.log[-_LOG:],
    }
    return said | {key: value for key, value in more.items() if value}


def _read_case(name: str, said: Mapping[str, Any], then: str) -> NodeFailure:
    standing = CheckState(
        check=name,
        state=said["state"],
        since=float(said["since"]),
        says=str(said["says"]),
        then=then,
        broken=str(said.get("broken", "")),
        fails=int(said.get("fails", 0)),
        passes=int(said.get("passes", 0)),
        relapses=int(said.get("relapses", 0)),
    )
    return NodeFailure(standing, int(said.get("job", 0)), float(said.get("at", 0)), str(said.get("log", "")))


def _past(past: ResolvedFailure) -> dict[str, Any]:
    said = {"node": past.node, "since": int(past.since), "until": int(past.until), "says": past.says[:_SHORT]}
    return said | {key: value for key, value in (("job", past.job), ("relapses", past.relapses)) if value}


def _read_past(said: Mapping[str, Any]) -> ResolvedFailure:
    return ResolvedFailure(
        str(said["node"]),
        float(said["since"]),
        float(said["until"]),
        str(said["says"]),
        int(said.get("job", 0)),
        int(said.get("relapses", 0)),
    )
