"""slurmd and worker pods are killed at random moments of jobs: the jobs end as Slurm says, and nothing is left behind.

`make soak` does the same a hundred times.
"""

from collections.abc import Iterator

import pytest

from tests.chance import drawn
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, is_ready, local
from tests.soak.kills import FOLDERS, KILLS, USERS, inside, is_up, leaks, look, pod_of, run, submit

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
    seed = drawn()
    tally = run(lab, what, nodes, REPEATS, seed)
    assert tally.kills == REPEATS
    assert tally.wrong == [], f"seed {seed}"
    assert tally.leaks == [], f"seed {seed}"
    assert sum(tally.ends.values()) == REPEATS * len(USERS)
    assert set(tally.ends) <= {"CANCELLED", "NODE_FAIL", "FAILED"}, tally.ends
    lab.timings.note(f"{what} killed under jobs → back, the longest of {REPEATS}", max(tally.recovered))


def test_a_container_that_begins_again_has_nothing_of_the_steps_before_it(lab: Lab, nodes: list[str]) -> None:
    """When slurmd's container dies, the steps end with it, and neither a socket nor a script nor a record of theirs is left for the next one."""
    if not lab.target.is_local:
        pytest.skip("nobody kills a container's first process from inside")
    node = nodes[0]
    bare, job = look(lab, node), submit(lab, node, "alice")
    lab.until("its steps run", lambda: f"_{job}.1" in inside(lab, node, f"{FOLDERS} || true"), 60)
    local("pod", "kill", f"{lab.namespace}/{pod_of(lab, node)}", "slurmd")
    lab.until(
        "another container runs", lambda: starts(lab, node) == 1 and is_ready(lab.look("pod", pod_of(lab, node))), 90
    )
    lab.ssh("root", f"scancel {job}")
    lab.until("the node takes jobs", lambda: is_up(lab, node) and not lab.ssh("alice", f"squeue -h -w {node}"), 150)
    assert leaks(lab, node, bare) == []


def starts(lab: Lab, node: str) -> int:
    """How often the container of slurmd was started anew."""
    found = lab.look("pod", pod_of(lab, node))["status"]["containerStatuses"]
    return int(next(each["restartCount"] for each in found if each["name"] == "slurmd"))
