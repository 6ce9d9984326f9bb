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
from soperator.policy.completed_requests import is_repeated, with_completed
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


def begin(history: CheckHistory, settings: CheckPolicy, targets: Iterable[CheckTarget], now: float) -> CheckHistory:
    """Return the history for these nodes, with a new request and the nodes out of service, without nodes that no longer exist."""
    known = {each.name: each for each in targets}
    completed = with_completed(history.completed_requests, history.request)
    request = history.request if is_repeated(settings.request, completed) else settings.request or history.request
    is_new = request != history.request
    latest_run = (
        float(int(now) - 1) if is_new else now
    )  # so that runs of this second do not count as the requested ones
    away = (
        {name for name, each in known.items() if each.is_away and name not in history.failures}
        if settings.after_repair
        else set()
    )
    return replace(
        history,
        last_runs={name: min(at, latest_run) for name, at in history.last_runs.items() if name in known},
        failures={name: each for name, each in history.failures.items() if name in known},
        due_after_repair=frozenset((history.due_after_repair | away) & known.keys())
        if settings.after_repair
        else frozenset(),
        readings=tuple(each for each in history.readings if known.keys() >= set(nodes_of(each))),
        comparison=history.comparison if settings.shared else None,
        findings=tuple(each for each in history.findings if known.keys() >= set(each.nodes)) if settings.shared else (),
        request=request,
        request_time=now if is_new else history.request_time,
        completed_requests=tuple(with_completed(completed, request)),
    )


def fold(
    history: CheckHistory, settings: CheckPolicy, ended: Iterable[RunResult], nodes: Mapping[str, SlurmNode]
) -> tuple[CheckHistory, tuple[RedrainNode, ...]]:
    """Return the history after these runs have ended, and the actions to take before it is written.

    A run that is missing in the history was counted before. A run that tested a drained node, which still fails and is not drained, stays in the
    history until the node is drained.
    """
    closes: list[RedrainNode] = []
    for each in ended:
        if each.run not in history.runs:
            continue
        if each.run.others:  # of a former spec, whose check measured several nodes
            history = replace(history, runs=tuple(run for run in history.runs if run.job != each.run.job))
            continue
        after = count(history, settings, each)
        if found := nodes_to_redrain(after, settings, each.run, nodes):
            closes += found
        else:
            history = after
    return history, tuple(closes)


def nodes_to_redrain(
    history: CheckHistory, settings: CheckPolicy, run: Run, nodes: Mapping[str, SlurmNode]
) -> list[RedrainNode]:
    """Return the nodes that were opened for a test, still do not pass, and are not drained."""
    found = [(name, nodes.get(name), history.failures.get(name)) for name in run.nodes] if run.retest else []
    return [
        RedrainNode(name, drain_reasons.for_check(settings.name, failure.check_state.message))
        for name, node, failure in found
        if failure and node and not node.is_draining and not node.is_down
    ]


def count(history: CheckHistory, settings: CheckPolicy, each: RunResult) -> CheckHistory:
    """Return the history after a run on one node has ended."""
    node, runs = each.run.node, tuple(run for run in history.runs if run.job != each.run.job)
    if each.verdict is None and each.is_repeated:
        return replace(history, runs=runs)
    history = replace(
        history,
        runs=runs,
        last_runs={**history.last_runs, node: each.run.at},
        due_after_repair=history.due_after_repair - {node},
    )
    history = replace(history, readings=_newest(history, node, each.readings))
    if each.verdict is None:
        return history
    before = history.failures.get(node)
    after = check_state.fold(
        settings.check, before.check_state if before else None, each.verdict, each.at, _recovery(history, node)
    )
    if after and after.state == "broken":
        after = replace(after, fails=1 + (before.check_state.fails if before else 0))
    others = {name: failure for name, failure in history.failures.items() if name != node}
    if after is None:
        was_bad = before is not None and before.check_state.is_bad
        past = (
            [
                ResolvedFailure(
                    node,
                    before.check_state.since,
                    each.at,
                    before.check_state.message,
                    each.run.job,
                    before.check_state.relapses,
                )
            ]
            if before and was_bad
            else []
        )
        return replace(history, failures=others, ended=(*history.ended, *past))
    log = each.log if each.verdict.outcome != "pass" or before is None else before.log
    return replace(history, failures={**others, node: NodeFailure(after, each.run.job, each.at, log)})


def _newest(history: CheckHistory, node: str, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Return the readings after new ones of a node replace its former ones; the oldest beyond the limit are dropped."""
    if not readings:
        return history.readings
    return (*(each for each in history.readings if each["of"] != node), *readings)[-MOST_READINGS:]


def _recovery(history: CheckHistory, node: str) -> Recovery | None:
    found = next((each for each in reversed(history.ended) if each.node == node), None)
    return Recovery(found.until, found.relapses) if found else None


def decide(
    history: CheckHistory,
    settings: CheckPolicy,
    targets: Iterable[CheckTarget],
    now: float,
    waits: frozenset[int] = frozenset(),
) -> CheckPlan:
    """Return the actions. `waits` are the jobs that, by Slurm's last answer, wait for their node."""
    known = {each.name: each for each in targets}
    room = min(settings.most, MOST - len(history.failures)) - len(history.runs)
    due = due_now(history, settings, known, now)
    free = [each for each in due if is_free(each, now)]
    tests = retests_due(history, settings, known, now)
    begun = [*(Submit(name, retest=True) for name in tests), *(Submit(each.name) for each in free)][: max(0, room)]
    left = len(due) - sum(not each.retest for each in begun)
    return CheckPlan(
        (*of_runs(history, settings, known, now, waits), *begun),
        message(history, settings, left),
        requeue_after(history, settings, known, left, now),
    )


def is_free(target: CheckTarget, now: float) -> bool:
    """Return whether a run may start on a node."""
    return bool(target.is_free and target.node and now - target.node.last_busy >= QUIET)


def due_now(
    history: CheckHistory, settings: CheckPolicy, known: Mapping[str, CheckTarget], now: float
) -> list[CheckTarget]:
    """Return the nodes that are due, busy or not: first those that failed the check, then those whose last run is the oldest."""
    if settings.suspended:
        return []
    opened = latest(settings.schedule, now, settings.since) if settings.schedule else None
    called = max(opened or 0.0, history.request_time)
    runs = {name for each in history.runs for name in each.nodes}
    due = [each for each in known.values() if each.name not in runs and _is_due(history, settings, each, now, called)]
    return sorted(due, key=lambda each: (each.name not in history.failures, history.last_runs.get(each.name, 0.0)))


def retests_due(
    history: CheckHistory, settings: CheckPolicy, known: Mapping[str, CheckTarget], now: float
) -> list[str]:
    """Return the drained nodes that are due for a test."""
    runs = {name for each in history.runs for name in each.nodes}
    wanted = [
        name for name in history.failures if name not in runs and _wants_test(history, settings, known.get(name), now)
    ]
    return [] if settings.suspended else wanted


def of_runs(
    history: CheckHistory, settings: CheckPolicy, known: Mapping[str, CheckTarget], now: float, waits: frozenset[int]
) -> Iterator[Action]:
    """Yield the actions for runs in progress: cancel a run whose node another job has; for a test, resume the node, and drain it again when the
    job runs on it.
    """
    for run in history.runs:
        waiting, found = run.job in waits, {name: known[name].node for name in run.nodes if name in known}
        if waiting and now - run.at > PATIENCE:
            yield Cancel(run)
            continue
        for name, node in found.items() if run.retest else ():
            failure, others = history.failures.get(name), [each for other, each in found.items() if other != name]
            if node is None or failure is None:
                continue
            if waiting and may_open(known[name], settings) and not any(each is None or each.is_busy for each in others):
                yield ResumeNode(name)
            elif not waiting and node.is_busy and not node.is_draining and not node.is_down:
                yield RedrainNode(name, drain_reasons.for_check(settings.name, failure.check_state.message))


def may_open(target: CheckTarget, settings: CheckPolicy) -> bool:
    """Return whether a node may be opened for a test: a check has drained it, nothing runs on it, and no other check keeps it drained.

    If a quick check fails, no deep check opens the node, because quick checks also run on a drained node. Of several deep checks the first by name is
    tested, because the node stays drained while it fails.
    """
    node = target.node
    if node is None or not node.is_drained or node.is_down or not drain_reasons.is_of_check(node):
        return False
    if any(other < settings.name for other in target.deep):
        return False
    if not target.quick:
        return True
    if node.report is None:
        return drain_reasons.check_of(node)[0] in {settings.name, *target.every}
    return not any(
        each.takes_out and each.check != settings.name for each in node.report.in_state("failing", "recovering")
    )


def _wants_test(history: CheckHistory, settings: CheckPolicy, target: CheckTarget | None, now: float) -> bool:
    """Return whether a drained node is due for a test; a worker that must move to another machine is due only after it has moved."""
    if settings.retest is None or target is None or target.node is None or not target.ready:
        return False
    failure = history.failures[target.name]
    if settings.on_failure == "replace" and target.born <= failure.check_state.since:
        return False
    return may_open(target, settings) and (now - failure.at >= settings.retest or target.born > failure.at)


def _is_due(history: CheckHistory, settings: CheckPolicy, target: CheckTarget, now: float, called: float) -> bool:
    """Return whether a node is due for the check; `called` is the time of the last request for all nodes."""
    if target.node is None or target.is_away:
        return False
    last, failure = history.last_runs.get(target.name), history.failures.get(target.name)
    if failure and (
        failure.check_state.state in ("suspect", "recovering") or _may_be_chance(failure.check_state, settings)
    ):
        return True
    return (
        (settings.after_creation and (last is None or target.born > last))
        or target.name in history.due_after_repair
        or called > (last or 0.0)
        or (
            settings.idle is not None
            and _idle(target, now) >= settings.idle[0]
            and now - (last or 0.0) >= settings.idle[1]
        )
    )


def _may_be_chance(each: CheckState, settings: CheckPolicy) -> bool:
    """Return whether a broken run is repeated, as a failure is: Slurm may have lost the job during a reconfigure."""
    return each.state == "broken" and each.fails < settings.confirm


def _idle(target: CheckTarget, now: float) -> float:
    """Return the seconds for which a node has been idle."""
    return now - max(target.node.last_busy, target.born) if target.node and not target.node.is_busy else 0.0


def requeue_after(
    history: CheckHistory, settings: CheckPolicy, known: Mapping[str, CheckTarget], left: int, now: float
) -> float | None:
    """Return the seconds until the decision may change without an event."""
    moments = [5.0] if history.runs or left else []
    for name, failure in history.failures.items():
        node = known[name].node if name in known else None
        if settings.retest is not None and node and node.is_draining:
            moments.append(max(1.0, failure.at + settings.retest - now))
    if settings.schedule or settings.idle:
        moments.append(30.0)
    return min(moments, default=None)


def message(history: CheckHistory, settings: CheckPolicy, left: int) -> str:
    """Return a message about the progress; `left` are the nodes that are due and do not run the check yet."""
    parts = ["suspended"] if settings.suspended else []
    if len(history.failures) + len(history.runs) >= MOST:
        parts.append(
            f"{len(history.failures)} nodes do not pass, so no further run starts: find out whether the check is wrong"
        )
    if history.runs:
        parts.append(f"{sum(len(each.nodes) for each in history.runs)} run it")
    if left > 0:
        parts.append(f"{left} are due and wait until they are idle, or for maxParallel")
    return "; ".join(parts)
