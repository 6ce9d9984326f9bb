"""What deep checks found, beside what the nodes report themselves: so one policy over health decides on both.

A node's report is added to: a deep check that fails is one more check that does not pass, and a failure of one that is over may be the one that
ended last. Where quick checks are off the report is that alone.
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
    """What is known of each node through deep checks: how they stand, and the failure that ended last."""

    standings: Mapping[str, tuple[CheckState, ...]]
    ended: Mapping[str, ResolvedCheck]


def findings(books: Iterable[tuple[str, CheckHistory]]) -> Findings:
    """What the books of checks, each with its name, hold."""
    standings: dict[str, tuple[CheckState, ...]] = {}
    ended: dict[str, ResolvedCheck] = {}
    for name, book in books:
        for node, case in book.cases.items():
            standings[node] = (*standings.get(node, ()), case.standing)
        for past in book.ended:
            if past.node not in ended or ended[past.node].until < past.until:
                ended[past.node] = ResolvedCheck(name, past.since, past.until, past.says)
    return Findings(standings, ended)


def withdrawn(book: CheckHistory, now: float) -> CheckHistory:
    """The book of a check that is being deleted: all that failed it does so no more."""
    bad = [(name, case.standing) for name, case in book.cases.items() if case.standing.is_bad]
    return replace(
        book, cases={}, ended=(*book.ended, *(ResolvedFailure(name, each.since, now, each.says) for name, each in bad))
    )


def with_findings(seen: WorkerSnapshot, found: Findings, quick: Literal["Off", "Report", "Drain"]) -> WorkerSnapshot:
    """What is seen, with each node's report as quick checks and deep checks have it together.

    `quick` is what follows quick checks; where it is not Drain, theirs only tell.
    """
    if seen.nodes is None:
        return seen
    names = [seen.name(index) for index in seen.pods]
    nodes = {name: _with(seen.nodes[name], found, quick, seen.now) for name in names if name in seen.nodes}
    return replace(seen, nodes={**seen.nodes, **nodes})


def _with(node: SlurmNode, found: Findings, quick: str, now: float) -> SlurmNode:
    standings, ended = found.standings.get(node.name, ()), found.ended.get(node.name)
    if quick == "Drain" and not standings and ended is None:
        return node
    report = node.report if quick != "Off" else Report(float(node.started), renewed=now)
    if report is None:
        report = Report(float(node.started), renewed=now) if standings or ended else None
    if report is None:
        return node
    own = report.checks if quick == "Drain" else tuple(replace(each, then="report") for each in report.checks)
    last = max((each for each in (report.last, ended) if each), key=lambda each: each.until, default=None)
    return replace(node, report=replace(report, checks=(*own, *_counting(node, standings)), last=last))


def _counting(node: SlurmNode, standings: Iterable[CheckState]) -> Iterable[CheckState]:
    """Those that matter to a node: one that is out does not wait for a check that was only about to fail, or that does not work."""
    is_out = drain_reasons.is_of_check(node)
    return [each for each in standings if not is_out or each.is_bad]
