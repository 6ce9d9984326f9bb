"""Deep checks whose job measures several nodes: a whole group first, then pairs that identify the bad node, or the bad path between two nodes.

Nodes are compared in rounds, one at a time. A round is a set of nodes of one NodeSet that were idle together:

```
   due ──▶ round ──▶ (group) one job of all ── pass ─────────────────▶ all pass
                          │ fails, is broken, or has nothing to be compared with
                          ▼
                     disjoint pairs, as pairwise_search selects them ──▶ a bad node fails, a slow path is reported, others pass
```

A separate round with some healthy nodes confirms a failure or tests a drained node. The rules of `single_node` decide which nodes are due, how
failures count, and how a drained node is opened for a test. Its invariants also hold, even if the operator dies at every step: at most
`CheckPolicy.most` nodes at once, no two jobs on a node, only idle nodes. A preempted job is repeated.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from soperator.api.healthcheck import MOST_NOTES, MOST_READINGS
from soperator.checks import catalog, deep_evaluate, outliers
from soperator.checks.check import Reading, Value, is_number
from soperator.checks.deep_check import limit_of
from soperator.checks.evaluate import Verdict, fails, limits_of
from soperator.policy.healthcheck import pairwise_search, single_node
from soperator.policy.healthcheck.pairwise_search import Pair, Search, pair
from soperator.policy.healthcheck.round_selection import begin
from soperator.policy.healthcheck.types import (
    CheckHistory,
    CheckPlan,
    CheckPolicy,
    CheckTarget,
    ComparisonRound,
    RedrainNode,
    RoundNote,
    Run,
    RunResult,
    Shared,
    Submit,
)
from soperator.slurm.node import SlurmNode

#: Seconds for which a round waits for busy nodes before it ends with the results so far.
STUCK = 600.0
#: How often a pair, and with how many partners a node, may give no reading before it is skipped.
_BROKEN = 2
_LOG = 8


def fold(
    history: CheckHistory, settings: CheckPolicy, ended: Iterable[RunResult], nodes: Mapping[str, SlurmNode]
) -> tuple[CheckHistory, tuple[RedrainNode, ...]]:
    """Return the history after these runs have ended, and the actions to take before it is written; as in `single_node`."""
    closes: list[RedrainNode] = []
    history = _with_all(history, settings)
    for each in ended:
        if each.run not in history.runs:
            continue
        if found := single_node.nodes_to_redrain(history, settings, each.run, nodes):
            closes += found
        else:
            history = _fold(history, settings, each)
    return history, tuple(closes)


def _fold(history: CheckHistory, settings: CheckPolicy, each: RunResult) -> CheckHistory:
    history = replace(history, runs=tuple(run for run in history.runs if run.job != each.run.job))
    found, ran = history.comparison, each.run.nodes
    if found is None or (each.verdict is None and each.is_repeated):
        return history
    says = each.verdict.message if each.verdict else "somebody ended its job"
    found = replace(found, moved=max(found.moved, each.at))
    is_read = each.verdict is not None and each.verdict.outcome == "pass"
    readings = tuple({**reading, "job": float(each.run.job)} for reading in each.readings) if is_read else ()
    if found.whole and set(ran) == set(found.nodes):
        return _of_whole(history, settings, replace(found, whole=False), each, readings, says)
    if len(ran) != 2:
        return history
    if readings:
        return replace(history, comparison=replace(found, readings=(*found.readings, *readings)))
    times = found.broken.get(pair(*ran), 0) + 1
    return replace(history, comparison=replace(found, broken={**found.broken, pair(*ran): times}, message=says))


def _of_whole(
    history: CheckHistory,
    settings: CheckPolicy,
    found: ComparisonRound,
    each: RunResult,
    readings: tuple[Reading, ...],
    says: str,
) -> CheckHistory:
    """Return the round after the job of the whole group: all nodes pass, or pairs are measured next. A bad node spoils the readings of all others,
    so no node fails here.
    """
    shared = _shared(settings)
    alike = [one for one in history.readings if len(deep_evaluate.nodes_of(one)) == len(found.nodes)]
    alike = [one for one in alike if set(deep_evaluate.nodes_of(one)) != set(found.nodes)]
    limits = _limits(shared, readings)
    has_peers = len(alike) + 1 >= outliers.LEAST
    can_tell = all(has_peers or limit_of(shared.check, one, limits) is not None for one in shared.check.deviations)
    bad = deep_evaluate.judge(shared.check, readings, alike, found.nodes, shared.limits)
    if readings and not any(one.outcome == "fail" for one in bad):
        former = [one for one in history.readings if set(deep_evaluate.nodes_of(one)) != set(found.nodes)]
        history = replace(history, readings=(*former, *readings)[-MOST_READINGS:])
    if readings and can_tell and not bad:
        return _passed(replace(history, comparison=None), settings, found, each)
    both = readings if len(found.nodes) == 2 else ()
    said = (bad[0].message if bad else "") if readings else says
    return replace(history, comparison=replace(found, readings=both, message=said))


def _passed(history: CheckHistory, settings: CheckPolicy, found: ComparisonRound, each: RunResult) -> CheckHistory:
    for name in found.nodes:
        run = Run(each.run.job, name, found.at)
        history = single_node.count(history, settings, RunResult(run, each.at, Verdict("pass")))
    return replace(history, findings=_kept(history, found.nodes))


def advance(history: CheckHistory, settings: CheckPolicy, targets: Iterable[CheckTarget], now: float) -> CheckHistory:
    """Return the history with a finished round evaluated and the next round started; unchanged for a check of single nodes."""
    if settings.shared is None:
        return history
    known = {each.name: each for each in targets}
    if history.runs:
        return history
    found = history.comparison
    if found and found.tested and not _is_drained(known.get(found.tested)):
        history = replace(history, comparison=None)  # somebody has decided
    elif found and found.whole:
        can_begin = not settings.suspended and all(
            _usable(found, settings, known.get(each), now) for each in found.nodes
        )
        history = history if can_begin else replace(history, comparison=None)
    elif found:
        wanted = _search(found, settings, _present(found, settings, known, now)).runs
        can_go_on = any(all(_usable(found, settings, known.get(each), now) for each in both) for both in wanted)
        is_stuck = not can_go_on and now - max(found.moved, found.at) > STUCK
        if settings.suspended or is_stuck or _search(found, settings, found.nodes).done:
            history = _conclude(replace(history, comparison=None), settings, found, now)
    if history.comparison is None and not settings.suspended and len(history.failures) < single_node.MOST:
        history = replace(history, comparison=begin(history, settings, known, now))
    return history


def _with_all(history: CheckHistory, settings: CheckPolicy) -> CheckHistory:
    """Return the history with the runs that its round lacks, because the operator may have died before it wrote the newest one."""
    names, known = {name for each in history.runs for name in each.nodes}, history.comparison
    if known is None and history.runs:
        at = min(each.at for each in history.runs)
        tests = [name for each in history.runs if each.retest for name in each.nodes if name in history.failures]
        is_whole = _shared(settings).check.per == "group" and len(history.runs) == 1 and not tests
        return replace(
            history, comparison=ComparisonRound(at, tuple(sorted(names)), is_whole, tests[0] if tests else "", at)
        )
    if known and not names <= set(known.nodes):
        return replace(
            history, comparison=replace(known, nodes=(*known.nodes, *sorted(names - set(known.nodes))), whole=False)
        )
    return history


def _is_drained(target: CheckTarget | None) -> bool:
    return bool(target and target.node and target.node.is_draining)


def decide(
    history: CheckHistory,
    settings: CheckPolicy,
    targets: Iterable[CheckTarget],
    now: float,
    waits: frozenset[int] = frozenset(),
) -> CheckPlan:
    """Return the actions; as in `single_node`."""
    known = {each.name: each for each in targets}
    left = len(single_node.due_now(history, settings, known, now))
    begun = [] if settings.suspended else _next(history, settings, known, now)
    requeue_after = single_node.requeue_after(history, settings, known, left + bool(history.comparison), now)
    message = single_node.message(history, settings, left)
    return CheckPlan((*single_node.of_runs(history, settings, known, now, waits), *begun), message, requeue_after)


def _next(history: CheckHistory, settings: CheckPolicy, known: Mapping[str, CheckTarget], now: float) -> list[Submit]:
    found, busy = history.comparison, {name for each in history.runs for name in each.nodes}
    if found is None:
        return []
    if found.whole:
        ready = not history.runs and all(_usable(found, settings, known.get(each), now) for each in found.nodes)
        return [Submit(found.nodes[0], others=found.nodes[1:])] if ready else []
    begun: list[Submit] = []
    present = {*_present(found, settings, known, now), *busy} & set(found.nodes)
    for one, other in _search(found, settings, present).runs:
        is_ready = not {one, other} & busy and all(
            _usable(found, settings, known.get(each), now) for each in (one, other)
        )
        if is_ready and len(busy) + 2 <= settings.most:
            begun.append(Submit(one, found.tested in (one, other), (other,)))
            busy.update((one, other))
    return begun


def _usable(found: ComparisonRound, settings: CheckPolicy, target: CheckTarget | None, now: float) -> bool:
    """Return whether a run of this round may start on a node; the node under test is drained for it."""
    if target is None or target.node is None or not target.ready:
        return False
    if target.name == found.tested and target.node.is_draining:
        return single_node.may_open(target, settings)
    return single_node.is_free(target, now)


def _present(found: ComparisonRound, settings: CheckPolicy, known: Mapping[str, CheckTarget], now: float) -> set[str]:
    """Return the nodes of a round that count: those that were measured or are free for it."""
    return _measured(found) | {name for name in found.nodes if _usable(found, settings, known.get(name), now)}


def _measured(found: ComparisonRound) -> set[str]:
    return {name for each in found.readings for name in deep_evaluate.nodes_of(each)} & set(found.nodes)


def _without_reading(found: ComparisonRound) -> set[str]:
    """Return the nodes without a reading in any of their tried pairs."""
    tried: dict[str, set[Pair]] = {}
    for both, times in found.broken.items():
        for name in both:
            tried.setdefault(name, set()).update([both] if times >= _BROKEN else [])
    most = min(_BROKEN, len(found.nodes) - 1)
    return {name for name, each in tried.items() if len(each) >= most} - _measured(found)


def _search(
    found: ComparisonRound, settings: CheckPolicy, names: Iterable[str], avoid: Collection[Pair] = ()
) -> Search:
    shared = _shared(settings)
    left = {both for both, times in found.broken.items() if times >= _BROKEN} | set(avoid)
    limits = _limits(shared, found.readings)
    readings = [_marked(shared, limits, each) for each in found.readings]
    return pairwise_search.search_check(shared.check, set(names) - _without_reading(found), readings, limits, left)


def _marked(shared: Shared, limits: Mapping[str, Value], reading: Reading) -> Reading:
    """Return the reading; if it is invalid, for example by wrong sums, its compared values are set to the worst."""
    compared = {each.value: 0.0 if each.side == "below" else 1e300 for each in shared.check.deviations}
    plain = [each.plain for each in shared.check.rules if not each.deviates and not compared.keys() & each.plain.when]
    return {**reading, **compared} if any(fails(each, reading, limits, {}) for each in plain) else reading


def _limits(shared: Shared, readings: Sequence[Reading]) -> Mapping[str, Value]:
    machines = {name: {key: each.value for key, each in found.items()} for name, found in catalog.machines().items()}
    return {**(limits_of(readings[0], machines) if readings else {}), **shared.limits}


def _conclude(history: CheckHistory, settings: CheckPolicy, found: ComparisonRound, now: float) -> CheckHistory:
    """Return the consequences of the measurements; nodes that were not measured stay due."""
    measured, avoid = _measured(found), set[Pair]()
    while (search := _search(found, settings, measured, avoid)).runs:
        avoid.update(search.runs)
    for name in sorted(measured | _without_reading(found)):
        own = [each for each in found.readings if name in deep_evaluate.nodes_of(each)]
        run = Run(int(float(own[-1].get("job", 0))) if own else 0, name, found.at, name == found.tested)
        verdict = _verdict(settings, found, search, name)
        log = "\n".join(_line(each) for each in own[-_LOG:])
        history = single_node.count(history, settings, RunResult(run, now, verdict, log, is_repeated=False))
        if verdict is None and (failure := history.failures.get(name)):
            history = replace(history, failures={**history.failures, name: replace(failure, at=now)})
    return replace(history, findings=(*_kept(history, found.nodes), *_notes(found, search, now))[-MOST_NOTES:])


def _verdict(settings: CheckPolicy, found: ComparisonRound, search: Search, name: str) -> Verdict | None:
    if name in search.bad:
        return Verdict("fail", _failed_limit(settings, found, search, name))
    if name in search.doubtful:
        return None
    return Verdict("pass") if name in _measured(found) else Verdict("broken", found.message or "it gave no reading")


def _failed_limit(settings: CheckPolicy, found: ComparisonRound, search: Search, name: str) -> str:
    """Return the message about a bad node: the threshold that its readings fail, or its worst reading compared with the others."""
    mine = [each for each in found.readings if name in deep_evaluate.nodes_of(each)]
    for one in deep_evaluate.judge(_shared(settings).check, mine, (), (), _limits(_shared(settings), mine)):
        if one.outcome == "fail":
            return f"{one.message}; the same with each of {len(mine)} partners"
    for each in _shared(settings).check.deviations:
        rates = pairwise_search.rates(each, found.readings)
        own = {both: rate for both, rate in rates.items() if name in both}
        others = [rate for both, rate in rates.items() if not set(both) & {*search.bad, *search.doubtful}]
        if (
            own
            and others
            and all(outliers.is_worse(rate, outliers.better(others, each), each) for rate in own.values())
        ):
            both = (min if each.side == "below" else max)(own, key=lambda both: own[both])
            partner = next(other for other in both if other != name)
            better = outliers.better(others, each)
            return (
                f"{each.value} {own[both]:.4g} with {partner}, others reach {better:.4g}: slow with each of {len(own)}"
            )
    return f"slow with each of {len(mine)} others"


def _line(reading: Reading) -> str:
    """Return a reading as text for a message."""
    numbers = [f"{key}={float(value):.6g}" for key, value in reading.items() if key != "job" and is_number(value)]
    return f"{reading['of']}: {' '.join(numbers)}"


def _kept(history: CheckHistory, nodes: Collection[str]) -> tuple[RoundNote, ...]:
    """Return the notes that a round over these nodes does not affect."""
    return tuple(each for each in history.findings if not set(each.nodes) <= set(nodes))


def _notes(found: ComparisonRound, search: Search, now: float) -> list[RoundNote]:
    notes = [
        RoundNote(now, each, f"the path between {each[0]} and {each[1]} is slow, but both nodes are healthy")
        for each in search.links
    ]
    if search.doubtful:
        notes.append(RoundNote(now, search.doubtful, search.message))
    elif found.message and not search.bad and not search.links and not _without_reading(found) and len(found.nodes) > 2:
        notes.append(
            RoundNote(now, found.nodes, f"{found.message}; no single node and no path between two nodes is slow")
        )
    return notes


def _shared(settings: CheckPolicy) -> Shared:
    assert settings.shared is not None, "a check of single nodes belongs to single_node"
    return settings.shared
