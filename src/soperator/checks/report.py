"""The report of a worker's checks: one short JSON text in the field `extra` of its Slurm node.

The operator reads it with every list of nodes, so it needs neither a further request nor a daemon. The worker writes it only when it changes, and a
check keeps the message with which its state began. An empty list means that all checks passed; no report means that they never ran. Source:
docs/decisions/0049.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from soperator.checks.check import THEN
from soperator.checks.check_state import CheckState

#: Slurm's field has no limit of its own; each node's is in every answer about all nodes.
LONGEST = 1500
_SENTENCE, _SHORT = 200, 60
_FORMAT = 1
_STATES = ("suspect", "failing", "recovering", "broken")


@dataclass(frozen=True)
class ResolvedCheck:
    """A failure that has ended: its check, its message, its start and its end."""

    check: str
    since: float
    until: float
    message: str


@dataclass(frozen=True)
class Report:
    """The checks of a node that do not pass, failing checks first.

    `at` is when that last changed, in seconds since 1970. `more` is the number of checks left out for space. `last` is the most recent failure that
    has ended, as evidence. `renewed` is when the unchanged report was last written again, 0 if never.
    """

    at: float
    checks: tuple[CheckState, ...] = ()
    more: int = 0
    last: ResolvedCheck | None = None
    renewed: float = 0.0

    @property
    def reported_at(self) -> float:
        """When the checks ran last according to the report, in seconds since 1970."""
        return max(self.at, self.renewed)

    def in_state(self, *states: str) -> list[CheckState]:
        """Return the checks that are in one of the given states."""
        return [each for each in self.checks if each.state in states]


_ORDER = {"failing": 0, "recovering": 1, "broken": 2, "suspect": 3}


def report_of(standings: Sequence[CheckState], now: float, last: ResolvedCheck | None = None) -> Report:
    """Return the report on all checks; checks that drain the node come first."""
    order = sorted(standings, key=lambda each: (_ORDER[each.state], not each.takes_out, each.since, each.check))
    return Report(round(now, 1), tuple(order), last=last)


def write(report: Report) -> str:
    """Return the report as text of at most `LONGEST` characters: it drops numbers first, then shortens messages, then only counts checks."""
    checks = report.checks
    for kept in (checks, tuple(replace(each, values={}) for each in checks)):
        if len(text := _text(replace(report, checks=kept))) <= LONGEST:
            return text
    short = [replace(each, values={}, message=each.message[:_SHORT], broken=each.broken[:_SHORT]) for each in checks]
    while len(text := _text(replace(report, checks=tuple(short), more=len(checks) - len(short)))) > LONGEST:
        short.pop()
    return text


def timeless(report: Report) -> str:
    """Return the text of a report without its times, to compare it with another."""
    return write(replace(report, at=0.0, renewed=0.0))


def read(text: str) -> Report | None:
    """Return the report that a text holds; None if there is none, or if another program wrote the text."""
    try:
        said = json.loads(text) if text.lstrip().startswith("{") else None
        if not isinstance(said, dict) or said.get("soperator") != _FORMAT:
            return None
        found = tuple(_standing(str(name), each) for name, each in said["checks"].items())
        more, last = int(said.get("more", 0)), _ended(said.get("last"))
        return Report(float(said["at"]), found, more, last, float(said.get("renewed", 0)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _text(report: Report) -> str:
    checks = {each.check: _table(each) for each in report.checks}
    more = {"more": report.more} if report.more else {}
    last = {"last": _last(report.last)} if report.last else {}
    times = {"at": report.at} | ({"renewed": round(report.renewed, 1)} if report.renewed else {})
    return json.dumps({"soperator": _FORMAT, **times, "checks": checks, **more, **last}, separators=(",", ":"))


def _last(ended: ResolvedCheck) -> dict[str, Any]:
    since, until = round(ended.since, 1), round(ended.until, 1)
    return {"check": ended.check[:64], "since": since, "until": until, "says": ended.message[:_SHORT]}


def _ended(said: Mapping[str, Any] | None) -> ResolvedCheck | None:
    if not said:
        return None
    return ResolvedCheck(str(said["check"]), float(said["since"]), float(said["until"]), str(said["says"])[:_SHORT])


def _table(each: CheckState) -> dict[str, Any]:
    said: dict[str, Any] = {"state": each.state, "since": round(each.since, 1), "says": each.message[:_SENTENCE]}
    if each.on_failure != "drain":
        said["then"] = each.on_failure
    if each.broken:
        said["broken"] = each.broken[:_SENTENCE]
    if each.state == "recovering":
        said["passes"] = each.passes
    if each.values:
        said["values"] = dict(each.values)
    return said


def _standing(name: str, said: Mapping[str, Any]) -> CheckState:
    if said["state"] not in _STATES:
        raise ValueError(said["state"])
    return CheckState(
        check=name,
        state=said["state"],
        since=float(said["since"]),
        message=str(said["says"])[:_SENTENCE],
        on_failure=said["then"] if said.get("then") in THEN else "drain",
        values=dict(said.get("values", {})),
        broken=str(said.get("broken", ""))[:_SENTENCE],
        passes=int(said.get("passes", 0)),
    )
