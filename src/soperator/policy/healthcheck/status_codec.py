"""Reads and writes the history of a deep check in the status of its HealthCheck, which is its only memory.

Nodes are grouped by the second of their last run, so that five thousand nodes are a few host lists. If there are too many groups, the two nearest are
merged under the earlier second, so that some nodes run the check a little too early, but never too late.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
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


def time_text(at: float) -> str:
    """Return a time as Kubernetes writes it, rounded down to the second."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(text: object) -> float:
    """Return a time in seconds since 1970; 0 if there is none."""
    return datetime.fromisoformat(str(text)).timestamp() if text else 0.0


def write(history: CheckHistory) -> dict[str, Any]:
    """Return the fields of the status, each within the bounds of its schema."""
    failures = sorted(history.failures.items(), key=lambda each: (each[1].check_state.since, each[0]))[:MOST_NODES]
    return {
        "lastRequest": history.request,
        "highestJob": max([history.highest_job, *(each.job for each in history.runs)]),
        "dueAfterRepair": compress(history.due_after_repair),
        "runs": [_run(each) for each in history.runs],
        "lastRuns": [{"time": time_text(at), "nodes": compress(nodes)} for at, nodes in _times(history.last_runs)],
        "unhealthyNodes": [_case(name, each) for name, each in failures],
        "endedFailures": [_past(each) for each in history.ended[-MOST_ENDED:]],
        "readings": [_reading(each) for each in history.readings[-MOST_READINGS:]],
        "findings": [_note(each) for each in history.findings[-MOST_NOTES:]],
        **({"completedRequests": list(history.completed_requests)} if history.completed_requests else {}),
        **({"lastRequestTime": time_text(history.request_time)} if history.request_time else {}),
        **({"comparison": _round(history.comparison)} if history.comparison else {}),
    }


def read_found(name: str, status: Mapping[str, Any], then: str = "drain") -> CheckHistory:
    """Return the results in a status: the nodes that do not pass, and the failures that have ended."""
    return CheckHistory(
        failures={str(each["node"]): _read_case(name, each, then) for each in status.get("unhealthyNodes", ())},
        ended=tuple(_read_past(each) for each in status.get("endedFailures", ())),
    )


def read(name: str, status: Mapping[str, Any], then: str = "drain") -> CheckHistory:
    """Return the history in a status, empty if it has none. It lacks the name of the check and the consequence of a failure (`on_failure`)."""
    return replace(
        read_found(name, status, then),
        last_runs={name: _time(each["time"]) for each in status.get("lastRuns", ()) for name in expand(each["nodes"])},
        runs=tuple(
            Run(int(each["job"]), nodes[0], _time(each["submitTime"]), bool(each.get("retest")), tuple(nodes[1:]))
            for each in status.get("runs", ())
            if (nodes := expand(each["nodes"]))
        ),
        due_after_repair=frozenset(expand(status.get("dueAfterRepair", ""))),
        request=str(status.get("lastRequest", "")),
        completed_requests=tuple(status.get("completedRequests", ())),
        request_time=_time(status.get("lastRequestTime")),
        highest_job=int(status.get("highestJob", 0)),
        readings=tuple(_read_reading(each) for each in status.get("readings", ())),
        comparison=_read_round(status["comparison"]) if status.get("comparison") else None,
        findings=tuple(
            RoundNote(_time(each["time"]), tuple(expand(each["nodes"])), str(each["message"]))
            for each in status.get("findings", ())
        ),
    )


def _round(each: ComparisonRound) -> dict[str, Any]:
    fields = {"startTime": time_text(each.at), "nodes": compress(each.nodes)}
    more = {
        "wholeGroup": each.whole,
        "testedNode": each.tested,
        "lastResultTime": time_text(each.moved) if each.moved else "",
        "readings": [_reading(reading) for reading in each.readings[-MOST_PAIRS:]],
        "unreadPairs": [{"nodes": compress(both), "count": count} for both, count in sorted(each.broken.items())][
            :MOST_PAIRS
        ],
        "message": each.message[:_SHORT],
    }
    return fields | {key: value for key, value in more.items() if value}


def _read_round(fields: Mapping[str, Any]) -> ComparisonRound:
    return ComparisonRound(
        at=_time(fields["startTime"]),
        nodes=tuple(expand(fields["nodes"])),
        whole=bool(fields.get("wholeGroup")),
        tested=str(fields.get("testedNode", "")),
        moved=_time(fields.get("lastResultTime")),
        readings=tuple(_read_reading(each) for each in fields.get("readings", ())),
        broken={pair(*expand(each["nodes"])): int(each["count"]) for each in fields.get("unreadPairs", ())},
        message=str(fields.get("message", "")),
    )


def _note(each: RoundNote) -> dict[str, Any]:
    return {"time": time_text(each.at), "nodes": compress(each.nodes), "message": each.message[:_SHORT]}


def _reading(reading: Reading) -> dict[str, Any]:
    words = {
        "nodes": compress(nodes_of(reading)),
        **{key: reading[key] for key in ("part", "model") if reading.get(key)},
    }
    numbers = [(key, repr(float(value))) for key, value in reading.items() if is_number(value) and isfinite(value)]
    return {**words, "values": dict(numbers[:_VALUES])}


def _read_reading(fields: Mapping[str, Any]) -> Reading:
    words = {key: str(fields[key]) for key in ("part", "model") if fields.get(key)}
    return {
        "of": " ".join(expand(fields["nodes"])),
        **words,
        **{str(key): float(value) for key, value in fields.get("values", {}).items()},
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
    fields = {"job": run.job, "nodes": compress(run.nodes), "submitTime": time_text(run.at)}
    return fields | ({"retest": True} if run.retest else {})


def _case(node: str, failure: NodeFailure) -> dict[str, Any]:
    each = failure.check_state
    fields = {
        "node": node,
        "state": each.state.capitalize(),
        "since": time_text(each.since),
        "message": each.message[:_SHORT],
    }
    more = {
        "unknownReason": each.broken[:_SHORT],
        "failures": each.fails,
        "passes": each.passes,
        "relapses": each.relapses,
        "job": failure.job,
        "lastRunTime": time_text(failure.at) if failure.at else "",
        "log": failure.log[-_LOG:],
    }
    return fields | {key: value for key, value in more.items() if value}


def _read_case(name: str, fields: Mapping[str, Any], then: str) -> NodeFailure:
    standing = CheckState(
        check=name,
        state=fields["state"].lower(),
        since=_time(fields["since"]),
        message=str(fields["message"]),
        on_failure=then,
        broken=str(fields.get("unknownReason", "")),
        fails=int(fields.get("failures", 0)),
        passes=int(fields.get("passes", 0)),
        relapses=int(fields.get("relapses", 0)),
    )
    return NodeFailure(
        standing, int(fields.get("job", 0)), _time(fields.get("lastRunTime")), str(fields.get("log", ""))
    )


def _past(past: ResolvedFailure) -> dict[str, Any]:
    fields = {
        "node": past.node,
        "since": time_text(past.since),
        "until": time_text(past.until),
        "message": past.message[:_SHORT],
    }
    return fields | {key: value for key, value in (("job", past.job), ("relapses", past.relapses)) if value}


def _read_past(fields: Mapping[str, Any]) -> ResolvedFailure:
    return ResolvedFailure(
        str(fields["node"]),
        _time(fields["since"]),
        _time(fields["until"]),
        str(fields["message"]),
        int(fields.get("job", 0)),
        int(fields.get("relapses", 0)),
    )
