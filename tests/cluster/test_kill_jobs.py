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
NODES = ["kill-0", "kill-1", "kill-2"]
SIZE = {"requests": {"cpu": "50m", "memory": "2Gi"}, "limits": {"cpu": "2"}}


@pytest.fixture(scope="module")
def nodes(lab: Lab) -> Iterator[list[str]]:
    """Nodes of their own, on which two jobs fit."""
    for user in USERS:
        make_user(lab, user)
    done = lab.apply("NodeSet", "kill", {"cluster": lab.cluster, "replicas": len(NODES), "resources": SIZE})
    assert done.returncode == 0, done.stderr
    lab.wait_available()
    yield NODES
    lab.ssh("root", f"scancel -w {','.join(NODES)}")
    lab.kubectl("delete", "nodeset", "kill", "--ignore-not-found", "--timeout=90s")
    lab.wait_available()


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
