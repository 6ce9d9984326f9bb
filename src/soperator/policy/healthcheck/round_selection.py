"""Selects the nodes for the next comparison from those that are due and idle, with enough peers, because a slow node is an outlier only among
many.
"""

from collections.abc import Iterable, Mapping, Sequence

from soperator.api.healthcheck import MOST_TOGETHER
from soperator.checks import outliers
from soperator.policy.healthcheck import single_node
from soperator.policy.healthcheck.types import (
    CheckHistory,
    CheckPolicy,
    CheckTarget,
    ComparisonRound,
)

#: Seconds until a node that does not pass, and on which a round did not decide, is compared again.
AGAIN = 600.0


def begin(
    history: CheckHistory, settings: CheckPolicy, known: Mapping[str, CheckTarget], now: float
) -> ComparisonRound | None:
    """Return the next round, of due nodes or of a drained node under test; None if not enough nodes are free."""
    due = single_node.due_now(history, settings, known, now)
    tests = sorted(single_node.retests_due(history, settings, known, now), key=lambda name: history.failures[name].at)
    late = [
        name for name in tests if settings.retest is not None and now - history.failures[name].at >= 2 * settings.retest
    ]
    for name in late:
        if found := _test(history, known, name, now):
            return found
    for members in _by_set(due):
        if found := _of_due(history, settings, known, members, now):
            return found
    return next((found for name in tests if (found := _test(history, known, name, now))), None)


def _test(history: CheckHistory, known: Mapping[str, CheckTarget], name: str, now: float) -> ComparisonRound | None:
    with_it = _partners(history, known, [name], outliers.LEAST - 1, now)
    return ComparisonRound(now, (name, *with_it), tested=name, moved=now) if with_it is not None else None


def _of_due(
    history: CheckHistory,
    settings: CheckPolicy,
    known: Mapping[str, CheckTarget],
    members: Sequence[CheckTarget],
    now: float,
) -> ComparisonRound | None:
    """Return a round of these due nodes. Failed nodes are confirmed first, among enough healthy ones; a group needs half of its nodes at once."""
    free = [each.name for each in members if single_node.is_free(each, now)]
    doubtful = [name for name in free if name in history.failures and _may_again(history, name, now)]
    if doubtful:
        chosen = doubtful[: MOST_TOGETHER // 4]
        with_it = _partners(history, known, chosen, max(outliers.LEAST - len(chosen), 2 * len(chosen)), now)
        if with_it is not None:
            return ComparisonRound(now, (*chosen, *with_it), moved=now)
    free = [name for name in free if name not in history.failures]
    alive = sum(each.name not in history.failures for each in members)
    if settings.shared and settings.shared.check.per == "group" and alive >= outliers.LEAST:
        size = min(settings.most, MOST_TOGETHER, alive)
        enough = len(free) >= max(2, -(-size // 2))
        return ComparisonRound(now, tuple(free[:size]), whole=True, moved=now) if enough else None
    chosen = free[:MOST_TOGETHER]
    with_it = _partners(history, known, chosen, outliers.LEAST - len(chosen), now) if chosen else None
    return ComparisonRound(now, (*chosen, *with_it), moved=now) if with_it is not None else None


def _may_again(history: CheckHistory, name: str, now: float) -> bool:
    """Return whether a failing node is compared now: at once the first time, and at intervals after a round without a result."""
    failure = history.failures[name]
    return int(failure.at) <= int(failure.check_state.since) or now - failure.at >= AGAIN


def _partners(
    history: CheckHistory, known: Mapping[str, CheckTarget], names: Sequence[str], many: int, now: float
) -> list[str] | None:
    """Return `count` free healthy nodes of the same NodeSet, longest unchecked first; None if enough exist but are not free."""
    if not names:
        return None
    ours = [each for each in known.values() if _set_of(each.name) == _set_of(names[0]) and each.name not in names]
    there = [each for each in ours if each.name not in history.failures and each.node and not each.is_away]
    free = sorted(
        (each.name for each in there if single_node.is_free(each, now)),
        key=lambda name: history.last_runs.get(name, 0.0),
    )
    wanted = min(max(0, many), len(there))
    is_enough = len(free) >= wanted and len(names) + wanted >= 2
    return free[:wanted] if is_enough else None


def _by_set(due: Iterable[CheckTarget]) -> list[list[CheckTarget]]:
    found: dict[str, list[CheckTarget]] = {}
    for each in due:
        found.setdefault(_set_of(each.name), []).append(each)
    return list(found.values())


def _set_of(node: str) -> str:
    return node.rpartition("-")[0]
