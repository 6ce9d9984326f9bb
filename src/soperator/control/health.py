"""Carrying out what follows from checks: after the policy over workers, with a fresh answer of Slurm's about each node that is touched."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from soperator.api.change import seconds, share
from soperator.control import ending, replacement
from soperator.control.ground import follows
from soperator.control.read import read_healthcheck
from soperator.control.workers import Workers, listed_after
from soperator.decide import book as books
from soperator.decide import drain, findings, health
from soperator.decide.health import Policy, Verdict
from soperator.decide.runs import Book
from soperator.decide.workers import Drain, Seen
from soperator.render import checks
from soperator.render.model import HealthCheck
from soperator.runtime.status import Condition
from soperator.slurmrest.client import SlurmError

#: Seconds after which a node with a suspended job is looked at again.
_SUSPENDED = 10.0


@dataclass(frozen=True)
class Told:
    """What checks came to, and what Slurm refused; nothing where no checks run."""

    verdict: Verdict | None = None
    failed: str = ""

    @property
    def conditions(self) -> list[Condition]:
        """The condition of the NodeSet in which it is told."""
        if self.verdict is None:
            return []
        said = self.verdict.said
        reason = "ChecksFail" if said else "ChecksPass"
        return [Condition("Healthy", "False" if said else "True", reason, said)]


def deep_books(workers: Workers) -> list[tuple[str, Book]]:
    """The books of the HealthChecks of the cluster, each with its name; of one that cannot be read what it says is to be told only."""
    operator, found = workers.operator, []
    for obj in operator.stores.healthchecks_of(workers.cluster.key):
        check = read_healthcheck(obj)
        then = follows(check.spec.then) if isinstance(check, HealthCheck) else "tell"
        book = books.read_found(obj.metadata.name, operator.status.mine(obj), then)
        if ending.is_ending(obj):
            book = findings.withdrawn(book, operator.wall())
        found.append((obj.metadata.name, book))
    return found


async def act(workers: Workers, seen: Seen) -> Told:
    """Decide and take the actions; where Slurm does not answer there is none."""
    spec = workers.cluster.spec.health
    deep = deep_books(workers)
    if seen.nodes is None or not (checks.is_on(workers.cluster.spec) or deep or _is_left(seen)):
        return Told()
    policy = Policy(
        drains=spec.checks == "Drain" or bool(deep),
        most=share(workers.nodeset.spec.size, spec.max_out),
        interval=seconds(spec.interval),
        replace_after=seconds(spec.replace.after),
        most_of_all=share(len(seen.nodes), spec.max_out_of_cluster),
    )
    found = findings.findings(deep)

    def judged(looked: Seen) -> Verdict:
        # Also where the last HealthCheck is gone: its drains are taken back as those of a check that has ended.
        with_deep = deep or spec.checks == "Off"
        return health.decide(findings.with_findings(looked, found, spec.checks) if with_deep else looked, policy)

    verdict = judged(seen)
    if not any(isinstance(each, Drain) for each in verdict.actions):
        return await _take(workers, seen, judged, verdict, policy.drains)
    # The nodes of all NodeSets count, so those of one cluster are drained one NodeSet after the other.
    async with workers.operator.draining.setdefault(workers.cluster.key, asyncio.Lock()):
        return await _take(workers, seen, judged, verdict, policy.drains, whole=True)


def _is_left(seen: Seen) -> bool:
    """Whether a worker is still drained for a check, though none is there any more."""
    return any(node is not None and drain.is_of_check(node) for node in map(seen.node, seen.pods))


async def _take(
    workers: Workers, seen: Seen, judged: Callable[[Seen], Verdict], verdict: Verdict, moves: bool, whole: bool = False
) -> Told:
    """Take the actions, decided again with a fresh answer about the nodes that they touch, or about all."""
    touched = {seen.name(each.index) for each in (*verdict.actions, *verdict.moves)}
    if not touched or workers.client is None or seen.nodes is None:
        return Told(verdict)
    try:
        looked = await (workers.client.nodes() if whole else workers.client.only(touched))
        fresh = seen.on({**seen.nodes, **looked})
        due = judged(fresh).moves
        if due:  # a suspended job shows in no state of its node
            since = listed_after(fresh.nodes or {}, [seen.name(each.index) for each in due], seen.now)
            fresh = fresh.with_jobs(await workers.client.jobs(since))
    except SlurmError as error:
        return Told(replace(verdict, actions=(), moves=()), str(error))
    again = judged(fresh)
    taken = [each for each in again.actions if seen.name(each.index) in touched]
    failed = await workers.take(taken)
    for move in again.moves if moves else ():
        failed = await replacement.replace(workers, move) or failed
    if len(again.moves) < len(due):
        again = replace(again, again=min(again.again or _SUSPENDED, _SUSPENDED))
    return Told(again, failed)
