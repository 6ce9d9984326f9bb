"""Deep checks of single nodes: which node runs the check next, the consequence of a run, and when a drained node is tested again.

The policy is a function of a history (kept in the HealthCheck's status), of Slurm's states of the nodes, and of the ended runs. `fold` adds ended
runs to the history, `decide` returns the actions. The history is written before any action that relies on it:

```
            due, and idle           ended: pass ─────────────▶ ran
   node ───────────────▶ run ───────┤      fail, or broken ──▶ ran, and a case (checks.standing)
     ▲                              │
     └──── not yet ─────────────────┘ ended for another reason: preempted, its node failed, Slurm lost it

   a case that fails, on a node that policy.health has drained:
   drained ──submit──▶ drained, the job waits ──Open: resume──▶ the job starts before any other ──Close: drain──▶ drained, it runs
```

Invariants, tested by generated histories in which the operator dies at every step:
- At most `CheckPolicy.most` runs at once, and never two on a node. Runs and cases together are at most `MOST`: a check that fails everywhere stops.
- A run starts only on a node that has been idle for a while, or that this check alone has drained.
- A failure counts after `confirm` failures in a row; a run that was ended from outside is neither a pass nor a failure, and is repeated. A broken
  check is also repeated, `confirm` times in total.
- A node that was opened for a test is drained again, whatever happened in between.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from soperator.api.healthcheck import MOST_READINGS
from soperator.checks import check_state
from soperator.checks.check import Reading
from soperator.checks.check_state import CheckState, Recovery
from soperator.checks.deep_evaluate import nodes_of
from soperator.policy import drain_reasons
from soperator.policy.healthcheck.types import (
    Action,
    Cancel,
    CheckHistory,
    CheckPlan,
    CheckPolicy,
    CheckTarget,
    NodeFailure,
    RedrainNode,
    ResolvedFailure,
    ResumeNode,
    Run,
    RunResult,
    Submit,
)
from soperator.policy.maintenance_window import latest
from soperator.slurm.node import SlurmNode

#: Seconds for which a node must have been idle before a run begins, so that no run delays the next job of a user.
QUIET = 10.0
#: Seconds for which a job may wait for its node before it is cancelled, because another job was faster.
PATIENCE = 60.0
#: Runs and cases together.
MOST = 400


def begin(book: CheckHistory, wish: CheckPolicy, places: Iterable[CheckTarget], now: float) -> CheckHistory:
    """Return the history for these nodes, with a new request and the nodes out of service, without nodes that no longer exist."""
    known = {each.name: each for each in places}
    is_new = bool(wish.request) and wish.request != book.request
    latest_run = (
        float(int(now) - 1) if is_new else now
    )  # so that runs of this second do not count as the requested ones
    away = (
        {name for name, each in known.items() if each.is_away and name not in book.cases}
        if wish.after_repair
        else set()
    )
    return replace(
        book,
        ran={name: min(at, latest_run) for name, at in book.ran.items() if name in known},
        cases={name: each for name, each in book.cases.items() if name in known},
        owed=frozenset((book.owed | away) & known.keys()) if wish.after_repair else frozenset(),
        readings=tuple(each for each in book.readings if known.keys() >= set(nodes_of(each))),
        round=book.round if wish.shared else None,
        notes=tuple(each for each in book.notes if known.keys() >= set(each.nodes)) if wish.shared else (),
        request=wish.request or book.request,
        asked=now if is_new else book.asked,
    )


def fold(
    book: CheckHistory, wish: CheckPolicy, ended: Iterable[RunResult], nodes: Mapping[str, SlurmNode]
) -> tuple[CheckHistory, tuple[RedrainNode, ...]]:
    """Return the history after these runs have ended, and the actions to take before it is written.

    A run that is missing in the history was counted before. A run that tested a drained node, which still fails and is not drained, stays in the
    history until the node is drained.
    """
    closes: list[RedrainNode] = []
    for each in ended:
        if each.run not in book.runs:
            continue
        if each.run.others:  # of a former spec, whose check measured several nodes
            book = replace(book, runs=tuple(run for run in book.runs if run.job != each.run.job))
            continue
        after = count(book, wish, each)
        if found := left_open(after, wish, each.run, nodes):
            closes += found
        else:
            book = after
    return book, tuple(closes)


def left_open(book: CheckHistory, wish: CheckPolicy, run: Run, nodes: Mapping[str, SlurmNode]) -> list[RedrainNode]:
    """Return the nodes that were opened for a test, still do not pass, and are not drained."""
    found = [(name, nodes.get(name), book.cases.get(name)) for name in run.nodes] if run.retest else []
    return [
        RedrainNode(name, drain_reasons.for_check(wish.name, case.standing.says))
        for name, node, case in found
        if case and node and not node.is_draining and not node.is_down
    ]


def count(book: CheckHistory, wish: CheckPolicy, each: RunResult) -> CheckHistory:
    """Return the history after a run on one node has ended."""
    node, runs = each.run.node, tuple(run for run in book.runs if run.job != each.run.job)
    if each.verdict is None and each.again:
        return replace(book, runs=runs)
    book = replace(book, runs=runs, ran={**book.ran, node: each.run.at}, owed=book.owed - {node})
    book = replace(book, readings=_newest(book, node, each.readings))
    if each.verdict is None:
        return book
    before = book.cases.get(node)
    after = check_state.fold(
        wish.check, before.standing if before else None, each.verdict, each.at, _recovery(book, node)
    )
    if after and after.state == "broken":
        after = replace(after, fails=1 + (before.standing.fails if before else 0))
    others = {name: case for name, case in book.cases.items() if name != node}
    if after is None:
        was_bad = before is not None and before.standing.is_bad
        past = (
            [
                ResolvedFailure(
                    node, before.standing.since, each.at, before.standing.says, each.run.job, before.standing.relapses
                )
            ]
            if before and was_bad
            else []
        )
        return replace(book, cases=others, ended=(*book.ended, *past))
    log = each.log if each.verdict.outcome != "pass" or before is None else before.log
    return replace(book, cases={**others, node: NodeFailure(after, each.run.job, each.at, log)})


def _newest(book: CheckHistory, node: str, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Return the readings after new ones of a node replace its former ones; the oldest beyond the limit are dropped."""
    if not readings:
        return book.readings
    return (*(each for each in book.readings if each["of"] != node), *readings)[-MOST_READINGS:]


def _recovery(book: CheckHistory, node: str) -> Recovery | None:
    found = next((each for each in reversed(book.ended) if each.node == node), None)
    return Recovery(found.until, found.relapses) if found else None


def decide(
    book: CheckHistory,
    wish: CheckPolicy,
    places: Iterable[CheckTarget],
    now: float,
    waits: frozenset[int] = frozenset(),
) -> CheckPlan:
    """Return the actions. `waits` are the jobs that, by Slurm's last answer, wait for their node."""
    known = {each.name: each for each in places}
    room = min(wish.most, MOST - len(book.cases)) - len(book.runs)
    due = due_now(book, wish, known, now)
    free = [each for each in due if is_free(each, now)]
    tests = tests_now(book, wish, known, now)
    begun = [*(Submit(name, retest=True) for name in tests), *(Submit(each.name) for each in free)][: max(0, room)]
    left = len(due) - sum(not each.retest for each in begun)
    return CheckPlan(
        (*of_runs(book, wish, known, now, waits), *begun),
        message(book, wish, left),
        again(book, wish, known, left, now),
    )


def is_free(place: CheckTarget, now: float) -> bool:
    """Return whether a run may start on a node."""
    return bool(place.is_free and place.node and now - place.node.last_busy >= QUIET)


def due_now(book: CheckHistory, wish: CheckPolicy, known: Mapping[str, CheckTarget], now: float) -> list[CheckTarget]:
    """Return the nodes that are due, busy or not: first those that failed the check, then those whose last run is the oldest."""
    if wish.suspended:
        return []
    opened = latest(wish.schedule, now, wish.since) if wish.schedule else None
    called = max(opened or 0.0, book.asked)
    runs = {name for each in book.runs for name in each.nodes}
    due = [each for each in known.values() if each.name not in runs and _is_due(book, wish, each, now, called)]
    return sorted(due, key=lambda each: (each.name not in book.cases, book.ran.get(each.name, 0.0)))


def tests_now(book: CheckHistory, wish: CheckPolicy, known: Mapping[str, CheckTarget], now: float) -> list[str]:
    """Return the drained nodes that are due for a test."""
    runs = {name for each in book.runs for name in each.nodes}
    wanted = [name for name in book.cases if name not in runs and _wants_test(book, wish, known.get(name), now)]
    return [] if wish.suspended else wanted


def of_runs(
    book: CheckHistory, wish: CheckPolicy, known: Mapping[str, CheckTarget], now: float, waits: frozenset[int]
) -> Iterator[Action]:
    """Yield the actions for runs in progress: cancel a run whose node another job has; for a test, resume the node, and drain it again when the
    job runs on it.
    """
    for run in book.runs:
        waiting, found = run.job in waits, {name: known[name].node for name in run.nodes if name in known}
        if waiting and now - run.at > PATIENCE:
            yield Cancel(run)
            continue
        for name, node in found.items() if run.retest else ():
            case, others = book.cases.get(name), [each for other, each in found.items() if other != name]
            if node is None or case is None:
                continue
            if waiting and may_open(known[name], wish) and not any(each is None or each.is_busy for each in others):
                yield ResumeNode(name)
            elif not waiting and node.is_busy and not node.is_draining and not node.is_down:
                yield RedrainNode(name, drain_reasons.for_check(wish.name, case.standing.says))


def may_open(place: CheckTarget, wish: CheckPolicy) -> bool:
    """Return whether a node may be opened for a test: a check has drained it, nothing runs on it, and no other check keeps it drained.

    If a quick check fails, no deep check opens the node, because quick checks also run on a drained node. Of several deep checks the first by name is
    tested, because the node stays drained while it fails.
    """
    node = place.node
    if node is None or not node.is_drained or node.is_down or not drain_reasons.is_of_check(node):
        return False
    if any(other < wish.name for other in place.deep):
        return False
    if not place.quick:
        return True
    if node.report is None:
        return drain_reasons.check_of(node)[0] in {wish.name, *place.every}
    return not any(each.takes_out and each.check != wish.name for each in node.report.in_state("failing", "recovering"))


def _wants_test(book: CheckHistory, wish: CheckPolicy, place: CheckTarget | None, now: float) -> bool:
    """Return whether a drained node is due for a test; a worker that must move to another machine is due only after it has moved."""
    if wish.retest is None or place is None or place.node is None or not place.ready:
        return False
    case = book.cases[place.name]
    if wish.then == "replace" and place.born <= case.standing.since:
        return False
    return may_open(place, wish) and (now - case.at >= wish.retest or place.born > case.at)


def _is_due(book: CheckHistory, wish: CheckPolicy, place: CheckTarget, now: float, called: float) -> bool:
    """Return whether a node is due for the check; `called` is the time of the last request for all nodes."""
    if place.node is None or place.is_away:
        return False
    last, case = book.ran.get(place.name), book.cases.get(place.name)
    if case and (case.standing.state in ("suspect", "recovering") or _may_be_chance(case.standing, wish)):
        return True
    return (
        (wish.after_creation and (last is None or place.born > last))
        or place.name in book.owed
        or called > (last or 0.0)
        or (wish.idle is not None and _idle(place, now) >= wish.idle[0] and now - (last or 0.0) >= wish.idle[1])
    )


def _may_be_chance(each: CheckState, wish: CheckPolicy) -> bool:
    """Return whether a broken run is repeated, as a failure is: Slurm may have lost the job during a reconfigure."""
    return each.state == "broken" and each.fails < wish.confirm


def _idle(place: CheckTarget, now: float) -> float:
    """Return the seconds for which a node has been idle."""
    return now - max(place.node.last_busy, place.born) if place.node and not place.node.is_busy else 0.0


def again(
    book: CheckHistory, wish: CheckPolicy, known: Mapping[str, CheckTarget], left: int, now: float
) -> float | None:
    """Return the seconds until the decision may change without an event."""
    moments = [5.0] if book.runs or left else []
    for name, case in book.cases.items():
        node = known[name].node if name in known else None
        if wish.retest is not None and node and node.is_draining:
            moments.append(max(1.0, case.at + wish.retest - now))
    if wish.schedule or wish.idle:
        moments.append(30.0)
    return min(moments, default=None)


def message(book: CheckHistory, wish: CheckPolicy, left: int) -> str:
    """Return a message about the progress; `left` are the nodes that are due and do not run the check yet."""
    parts = ["suspended"] if wish.suspended else []
    if len(book.cases) + len(book.runs) >= MOST:
        parts.append(f"{len(book.cases)} nodes do not pass, so no further run starts: look whether the check is wrong")
    if book.runs:
        parts.append(f"{sum(len(each.nodes) for each in book.runs)} run it")
    if left > 0:
        parts.append(f"{left} are due and wait until they are idle, or for maxParallel")
    return "; ".join(parts)
