"""Merges the results of deep checks with the nodes' own reports, so that one health policy decides on both.

A failing deep check is one more failing check in the node's report; a recovered one may be its last failure. If quick checks are off, the report has
only deep checks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from soperator.checks.check_state import CheckState
from soperator.checks.report import Report, ResolvedCheck
from soperator.policy import drain_reasons
from soperator.policy.healthcheck.types import CheckHistory, ResolvedFailure
from soperator.policy.workers.types import WorkerSnapshot
from soperator.slurm.node import SlurmNode


@dataclass(frozen=True)
class Findings:
    """The results of deep checks by node: the state of each check, and the most recent failure that has ended."""

    check_states: Mapping[str, tuple[CheckState, ...]]
    ended: Mapping[str, ResolvedCheck]


def findings(status_codec: Iterable[tuple[str, CheckHistory]]) -> Findings:
    """Merge the histories of deep checks, given by the name of the check, into results by node."""
    check_states: dict[str, tuple[CheckState, ...]] = {}
    ended: dict[str, ResolvedCheck] = {}
    for name, history in status_codec:
        for node, failure in history.failures.items():
            check_states[node] = (*check_states.get(node, ()), failure.check_state)
        for past in history.ended:
            if past.node not in ended or ended[past.node].until < past.until:
                ended[past.node] = ResolvedCheck(name, past.since, past.until, past.message)
    return Findings(check_states, ended)


def withdrawn(history: CheckHistory, now: float) -> CheckHistory:
    """Return the history of a check that is being deleted, in which no node fails."""
    bad = [(name, failure.check_state) for name, failure in history.failures.items() if failure.check_state.is_bad]
    return replace(
        history,
        failures={},
        ended=(*history.ended, *(ResolvedFailure(name, each.since, now, each.message) for name, each in bad)),
    )


def with_findings(seen: WorkerSnapshot, found: Findings, quick: Literal["Off", "Report", "Drain"]) -> WorkerSnapshot:
    """Return the observed state, with the merged report of quick checks and deep checks for each node.

    `quick` is the mode of quick checks; unless it is Drain, their failures are only reported.
    """
    if seen.nodes is None:
        return seen
    names = [seen.name(index) for index in seen.pods]
    nodes = {name: _with(seen.nodes[name], found, quick, seen.now) for name in names if name in seen.nodes}
    return replace(seen, nodes={**seen.nodes, **nodes})


def _with(node: SlurmNode, found: Findings, quick: str, now: float) -> SlurmNode:
    check_states, ended = found.check_states.get(node.name, ()), found.ended.get(node.name)
    if quick == "Drain" and not check_states and ended is None:
        return node
    report = node.report if quick != "Off" else Report(float(node.started), renewed=now)
    if report is None:
        report = Report(float(node.started), renewed=now) if check_states or ended else None
    if report is None:
        return node
    own = report.checks if quick == "Drain" else tuple(replace(each, on_failure="report") for each in report.checks)
    last = max((each for each in (report.last, ended) if each), key=lambda each: each.until, default=None)
    return replace(node, report=replace(report, checks=(*own, *_counting(node, check_states)), last=last))


def _counting(node: SlurmNode, check_states: Iterable[CheckState]) -> Iterable[CheckState]:
    """Return the checks that decide about a node: a drained node does not wait for a suspected or broken check."""
    is_out = drain_reasons.is_of_check(node)
    return [each for each in check_states if not is_out or each.is_bad]
