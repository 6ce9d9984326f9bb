"""slurmd and worker pods are killed at random moments of jobs: the jobs end as Slurm says, and nothing is left behind.

`make soak` does the same a hundred times.
"""

import random
from collections.abc import Iterator

import pytest

from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab
from tests.soak.kills import KILLS, USERS, run

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

REPEATS = 5


@pytest.fixture(scope="module")
def nodes(lab: Lab) -> Iterator[list[str]]:
    """Nodes of their own, on which two jobs fit."""
    for user in USERS:
        make_user(lab, user)
    with lab.pair_nodes("kill", 3, patience=90) as names:
        yield names


@pytest.mark.parametrize("what", KILLS)
def test_a_kill_leaves_nothing_behind(lab: Lab, nodes: list[str], what: str) -> None:
    """After each kill the node is back by itself; a job outlives slurmd, and ends with its pod."""
    seed = random.randrange(2**31)
    tally = run(lab, what, nodes, REPEATS, seed)
    assert tally.kills == REPEATS
    assert tally.wrong == [], f"seed {seed}"
    assert tally.leaks == [], f"seed {seed}"
    assert sum(tally.ends.values()) == REPEATS * len(USERS)
    assert set(tally.ends) <= {"CANCELLED", "NODE_FAIL", "FAILED"}, tally.ends
    lab.timings.note(f"{what} killed under jobs → back, the longest of {REPEATS}", max(tally.recovered))
