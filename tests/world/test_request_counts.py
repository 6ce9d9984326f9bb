"""How many requests the operator sends for one cluster from its creation until it is idle: exact numbers, so that a change shows each further one."""

from collections import Counter

from soperator.kube import kinds
from tests.world.harness import Town, operating
from tests.world.test_cluster import CLUSTER, WORKERS

#: By verb and kind, for one cluster with two workers and an empty jail. A patch of a child creates it.
START = {
    "create configmaps": 1,  # the anchor
    "patch configmaps": 7,  # the files, their copy, login's files, a mount plan; slurmctld's generation is noted twice: files and anchor
    "create secrets": 6,  # three, and a copy of each
    "patch services": 4,
    "patch networkpolicies": 5,
    "patch poddisruptionbudgets": 2,
    "patch statefulsets": 2,
    "patch deployments": 1,
    "patch jobs": 1,
    "create pods": 2,
    "patch slurmclusters": 5,  # the finalizer, and four statuses: progress, the jail, available, all workers
    "patch nodesets": 3,  # the finalizer, and two statuses: progress, ready
    "create events": 3,
}
#: Whether somebody else's object has the name is asked before each first apply (docs/decisions/0137).
FIRST_LOOKS = {
    "get configmaps": 4,
    "get services": 4,
    "get networkpolicies": 5,
    "get poddisruptionbudgets": 2,
    "get statefulsets": 2,
    "get deployments": 1,
    "get jobs": 1,
}


def counted(town: Town) -> dict[str, int]:
    """The operator's requests by verb and kind, without lists and watches."""
    asked = [each for each in town.fake.requests if each.verb not in ("list", "watch")]
    return dict(Counter(f"{each.verb} {each.where.plural}" for each in asked))


async def test_a_cluster_that_starts_costs_exactly_so_many_requests():
    """No object is read that the operator has just written, and nothing is written that says nothing new; then there is silence."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, WORKERS)
        await town.settle(quiet=15)
        assert counted(town) == START | FIRST_LOOKS
        assert sum(START.values()) <= 1.4 * len(town.fake.world.objects)
        assert town.status(kinds.NODESET, "worker")["idle"] == 2


async def test_a_restarted_operator_writes_nothing():
    """It reads what has no digest in the caches, Slurm's files and the keys, and finds everything as it is."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        await town.settle(quiet=15)
    town.fake.requests.clear()
    async with operating(town):
        await town.settle(quiet=15)
    assert counted(town) == {"get configmaps": 2, "get secrets": 6}
