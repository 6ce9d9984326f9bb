"""Finds which of many nodes is slow, or which path between two of them, by measuring pairs.

A pair is as slow as the slowest of its two nodes and the path between them. So the best rate that a node reaches with any partner is its own rate,
and a pair that is slower than both of its nodes has a slow path:

1. The first round measures all nodes in disjoint pairs, in parallel. A node in a fast pair is healthy.
2. The second round measures each node of a slow pair with a healthy node. If both are fast then, the path between the two is slow; a node that is
   slow with two healthy nodes is bad.

This takes two rounds for any number of nodes, and a third if two bad nodes were a pair; halving a group takes log n rounds, and finds only one bad
machine. Nothing is remembered: the next pairs follow from the rates so far. Source: docs/decisions/0057.

Invariants, each tested by generated clusters:
- A node that was fast with any partner is never called bad; a node that is slow with all is found if most others are healthy.
- Pairs that run at the same time are disjoint, no pair is measured twice, and the search ends.
- If more than a third would be bad, no node is called bad: another cause is more likely (their location, or what they share).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from soperator.checks import deep_evaluate, outliers
from soperator.checks.check import Reading, Value, is_number
from soperator.checks.deep_check import DeepCheck, Deviation, limit_of

Pair = tuple[str, str]
#: The number of healthy partners with which a node must be slow to count as bad.
_WITNESSES = 2
_NAMED = 3


@dataclass(frozen=True)
class Search:
    """The pairs to measure next, in parallel; the bad nodes; the slow paths; a message; and the nodes that have no healthy partner left.

    The search is done if no pair is left.
    """

    runs: tuple[Pair, ...] = ()
    bad: tuple[str, ...] = ()
    links: tuple[Pair, ...] = ()
    message: str = ""
    doubtful: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether no pair is left to measure."""
        return not self.runs


def search_check(
    check: DeepCheck,
    nodes: Iterable[str],
    readings: Iterable[Reading],
    limits: Mapping[str, Value] | None = None,
    avoid: Collection[Pair] = (),
) -> Search:
    """Return the search over the pairs' readings, for the first compared value whose search is not done.

    `avoid` are pairs without an answer. A threshold of the spec, by its name, replaces the rate of the better pairs.
    """
    wanted, found = list(nodes), list(readings)
    searches = []
    for each in check.deviations:
        known = rates(each, found)
        if found and not known:
            continue  # the program does not measure it here
        mute = [
            pair(*both) for one in found if len(both := deep_evaluate.nodes_of(one)) == 2 and pair(*both) not in known
        ]
        searches.append(search(wanted, known, each, limit_of(check, each, limits or {}), [*avoid, *mute]))
        if searches[-1].runs:
            return Search(searches[-1].runs, message=searches[-1].message)
    bad = sorted({node for each in searches for node in each.bad})
    links = sorted({link for each in searches for link in each.links if not set(link) & set(bad)})
    doubtful = sorted({node for each in searches for node in each.doubtful} - set(bad))
    said = "; ".join(dict.fromkeys(each.message for each in searches if each.message))
    return Search((), tuple(bad), tuple(links), said, tuple(doubtful))


def rates(deviation: Deviation, readings: Iterable[Reading]) -> dict[Pair, float]:
    """Return the value of each measured pair; the newest if it has several."""
    found: dict[Pair, float] = {}
    for each in readings:
        value = each.get(deviation.value)
        if deep_evaluate.is_sound(each) and len(both := deep_evaluate.nodes_of(each)) == 2 and is_number(value):
            found[pair(*both)] = float(value)
    return found


def pair(one: str, other: str) -> Pair:
    """Return two nodes in their order."""
    return (one, other) if one <= other else (other, one)


def search(
    nodes: Iterable[str],
    measured: Mapping[Pair, float],
    deviation: Deviation,
    limit: float | None = None,
    avoid: Collection[Pair] = (),
) -> Search:
    """Return the result of the pairs measured so far.

    `limit` is the rate that every pair has to reach; without it, the rate of the better pairs reduced by the tolerated share.
    """
    wanted = sorted(set(nodes))
    view = _View(wanted, {both: each for both, each in measured.items() if set(both) <= set(wanted)}, deviation, limit)
    runs = tuple(_next(view, {pair(*each) for each in avoid}))
    if runs:
        return Search(
            runs,
            message=f"{len(runs)} pairs are not measured yet; of {len(wanted)} nodes {len(view.well)} are healthy",
        )
    return _conclusion(view, limit)


class _View:
    """The best rate of each node."""

    def __init__(
        self, nodes: Sequence[str], measured: Mapping[Pair, float], deviation: Deviation, limit: float | None
    ) -> None:
        self.nodes, self.measured, self.deviation = nodes, measured, deviation
        self.partners: dict[str, set[str]] = {node: set() for node in nodes}
        best: dict[str, float] = {}
        choose = max if deviation.side == "below" else min
        for (one, other), rate in measured.items():
            for node, partner in ((one, other), (other, one)):
                self.partners[node].add(partner)
                best[node] = choose(best.get(node, rate), rate)
        self.target = limit
        if limit is None and best:
            self.target = outliers.better(list(best.values()), deviation)
        self.has_limit = limit is not None
        self.well = {node for node, rate in best.items() if not self.is_slow(rate)}
        self.suspects = [node for node in nodes if node in best and node not in self.well]

    def is_slow(self, rate: float) -> bool:
        """Return whether a rate is worse than required."""
        if self.target is None:
            return False
        if self.has_limit:
            return rate < self.target if self.deviation.side == "below" else rate > self.target
        return outliers.is_worse(rate, self.target, self.deviation)

    def is_bad(self, node: str) -> bool:
        """Return whether a suspect was slow with enough healthy nodes."""
        return len(self.partners[node] & self.well) >= _WITNESSES


def _next(view: _View, avoid: Collection[Pair]) -> Iterator[Pair]:
    used: set[str] = set()

    def meet(node: str, others: Iterable[str]) -> Iterator[Pair]:
        for other in others:
            if (
                other != node
                and not {node, other} & used
                and other not in view.partners[node]
                and pair(node, other) not in avoid
            ):
                used.update((node, other))
                yield pair(node, other)
                return

    fresh = [node for node in view.nodes if not view.partners[node]]
    for node in fresh:
        yield from meet(node, fresh)
    if len(view.nodes) == _WITNESSES + 1 and not fresh:  # the bad one of three may be in both pairs that were measured
        yield from meet(view.nodes[0], view.nodes)
        yield from meet(view.nodes[1], view.nodes)
    tested = [*sorted(view.well), *view.suspects]
    for node in fresh:
        yield from meet(node, tested)
    waiting = [node for node in view.suspects if not view.is_bad(node)]
    for node in waiting:
        if view.well:
            yield from meet(node, sorted(view.well))
        elif len(view.partners[node]) < _WITNESSES:
            yield from meet(node, waiting)


def _conclusion(view: _View, limit: float | None) -> Search:
    bad = tuple(node for node in view.suspects if view.is_bad(node))
    links = tuple(both for both, rate in sorted(view.measured.items()) if set(both) <= view.well and view.is_slow(rate))
    doubtful = [node for node in view.suspects if node not in bad]
    if limit is None and len(bad) > outliers.MINORITY * len(view.nodes):
        return Search(
            (),
            (),
            links,
            f"{len(bad)} of {len(view.nodes)} nodes are slower with all others: too many to be bad machines",
            tuple(view.suspects),
        )
    if limit is None and len(view.nodes) <= _WITNESSES:
        return Search(
            message=f"{len(view.nodes)} nodes have too few peers: at least {_WITNESSES + 1} are required, or a threshold",
            doubtful=tuple(view.nodes),
        )
    said = [
        *([f"slow with every other: {_names(bad)}"] if bad else []),
        *([f"slow only with each other: {_names(' and '.join(each) for each in links)}"] if links else []),
        *([f"slow, without a healthy node to compare with: {_names(doubtful)}"] if doubtful else []),
    ]
    return Search((), bad, links, "; ".join(said), tuple(doubtful))


def _names(found: Iterable[str]) -> str:
    names = list(found)
    return ", ".join([*names[:_NAMED], *([f"and {len(names) - _NAMED} more"] if names[_NAMED:] else [])])
