"""The jobs of the simulated day, drawn from a seeded distribution, and the same day with nodes that boot in no time."""

import heapq
import math
import random
from dataclasses import dataclass, field

from soperator.policy.workers.types import OnDemand

DAY = 86400.0
SEED = 20261122
BOOT, SUSPEND, REQUEUE = 60.0, 10.0, 120.0
#: Nodes at most, and the share of the jobs that may run there.
SETS = {"cpu": 120, "gpu": 60, "big": 30}
#: Where a job may run, in the order of Slurm's weights, and how often that is asked for.
CHOICES = ((("cpu",), 50), (("gpu",), 20), (("cpu", "big"), 20), (("gpu", "big"), 10))
SIZES = ((1, 60), (2, 20), (4, 15), (8, 5))
#: From when until when, in hours, a set gets no more machines than that.
SHORTAGES = (("gpu", 9.0, 10.5, 20), ("cpu", 13.0, 14.0, 40), ("big", 16.0, 18.0, 0))
WISH = OnDemand(least=0, most=0, idle=300, resume=300, backoff=300)


@dataclass(frozen=True)
class Job:
    """A job: its submit time and run time in seconds, its number of nodes, and the NodeSets that it may use."""

    number: int
    queued: float
    length: float
    nodes: int
    sets: tuple[str, ...]


def jobs(count: int, seed: int = SEED) -> list[Job]:
    """Return the jobs of a day by submit time: few at night, most in the afternoon; half of them run longer than 35 min."""
    dice = random.Random(seed)
    moments: list[float] = []
    while len(moments) < count:
        moment = dice.uniform(0, DAY * 0.85)
        if dice.random() < 0.15 + 0.85 * max(0.0, math.sin(math.pi * (moment / DAY - 0.25) / 0.6)):
            moments.append(moment)
    return [_job(dice, number, moment) for number, moment in enumerate(sorted(moments))]


def _job(dice: random.Random, number: int, moment: float) -> Job:
    sets = dice.choices([each for each, _ in CHOICES], [share for _, share in CHOICES])[0]
    nodes = dice.choices([each for each, _ in SIZES], [share for _, share in SIZES])[0]
    length = min(4 * 3600.0, max(60.0, dice.lognormvariate(math.log(2100), 1.0)))
    return Job(number, moment, length, nodes, sets)


@dataclass
class Result:
    """The results of a simulated day."""

    ended: int = 0
    waited: list[float] = field(default_factory=list)
    needless: list[int] = field(default_factory=list)
    requeued: int = 0
    node_hours: float = 0.0
    curve: list[tuple[float, int, int]] = field(default_factory=list)


def ideal(todo: list[Job]) -> Result:
    """Simulate the same scheduler with nodes that boot in no time and stop as soon as no job needs them, and with unlimited machines."""
    result, free = Result(), dict(SETS)
    ends: list[tuple[float, int, str, int]] = []
    queue: list[Job] = []
    moments = [(job.queued, 0, job) for job in todo]
    while moments or ends or queue:
        now = min([*(each[0] for each in moments[:1]), *(each[0] for each in ends[:1])])
        while ends and ends[0][0] <= now:
            _, _, name, nodes = heapq.heappop(ends)
            free[name] += nodes
        while moments and moments[0][0] <= now:
            queue.append(moments.pop(0)[2])
        left: list[Job] = []
        for job in queue:
            name = next((each for each in job.sets if free[each] >= job.nodes), "")
            if not name:
                left.append(job)
                continue
            free[name] -= job.nodes
            heapq.heappush(ends, (now + job.length, job.number, name, job.nodes))
            result.waited.append(now - job.queued)
            result.node_hours += job.nodes * job.length / 3600
            result.ended += 1
        queue = left
    return result
