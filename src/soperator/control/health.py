"""Carrying out what follows from checks: after the policy over workers, with a fresh answer of Slurm's about each node that is touched."""

from dataclasses import dataclass, replace

from soperator.api.change import seconds, share
from soperator.control import replacement
from soperator.control.workers import Workers
from soperator.decide import health
from soperator.decide.health import Policy, Verdict
from soperator.decide.workers import Seen
from soperator.render import checks
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


async def act(workers: Workers, seen: Seen) -> Told:
    """Decide and take the actions; where Slurm does not answer there is none."""
    spec = workers.cluster.spec.health
    if not checks.is_on(workers.cluster.spec) or seen.nodes is None:
        return Told()
    most = share(workers.nodeset.spec.replicas, spec.max_out)
    policy = Policy(spec.checks == "Drain", most, seconds(spec.interval), seconds(spec.replace.after))
    verdict = health.decide(seen, policy)
    touched = {seen.name(each.index) for each in (*verdict.actions, *verdict.moves)}
    if not touched or workers.client is None:
        return Told(verdict)
    try:
        fresh = seen.on({**seen.nodes, **await workers.client.only(touched)})
    except SlurmError as error:
        return Told(replace(verdict, actions=(), moves=()), str(error))
    again = health.decide(fresh, policy)
    taken = [each for each in again.actions if seen.name(each.index) in touched]
    failed = await workers.take(taken)
    for move in again.moves if policy.drains else ():
        failed = await replacement.replace(workers, move) or failed
    return Told(again, failed)
