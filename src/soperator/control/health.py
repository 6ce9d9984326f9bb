"""Carrying out what follows from checks: after the policy over workers, with a fresh answer of Slurm's about each node that is touched."""

from dataclasses import dataclass, replace

from soperator.api.change import seconds, share
from soperator.control import ending, replacement
from soperator.control.ground import follows
from soperator.control.read import read_healthcheck
from soperator.control.workers import Workers
from soperator.decide import book as books
from soperator.decide import findings, health
from soperator.decide.health import Policy, Verdict
from soperator.decide.runs import Book
from soperator.decide.workers import Seen
from soperator.render import checks
from soperator.render.model import HealthCheck
from soperator.runtime.status import Condition
from soperator.slurmrest.client import SlurmError


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
    if not (checks.is_on(workers.cluster.spec) or deep) or seen.nodes is None:
        return Told()
    most = share(workers.nodeset.spec.size, spec.max_out)
    policy = Policy(spec.checks == "Drain" or bool(deep), most, seconds(spec.interval), seconds(spec.replace.after))
    found = findings.findings(deep)

    def judged(looked: Seen) -> Verdict:
        return health.decide(findings.with_findings(looked, found, spec.checks) if deep else looked, policy)

    verdict = judged(seen)
    touched = {seen.name(each.index) for each in (*verdict.actions, *verdict.moves)}
    if not touched or workers.client is None:
        return Told(verdict)
    try:
        fresh = seen.on({**seen.nodes, **await workers.client.only(touched)})
    except SlurmError as error:
        return Told(replace(verdict, actions=(), moves=()), str(error))
    again = judged(fresh)
    taken = [each for each in again.actions if seen.name(each.index) in touched]
    failed = await workers.take(taken)
    for move in again.moves if policy.drains else ():
        failed = await replacement.replace(workers, move) or failed
    return Told(again, failed)
