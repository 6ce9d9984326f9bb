"""Things break while an MPI job, an array and an interactive shell run: nothing is lost or run twice, and it is said what is wrong.

`make chaos` plays all cases, several times each (tests/faults).
"""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab
from tests.faults.case import Stage, play
from tests.faults.cases import FEW, named
from tests.faults.crowd import crowd_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

USER = "carol"


@pytest.fixture(scope="module")
def stage(lab: Lab) -> Iterator[Stage]:
    """Nodes of their own, and the jobs that run through all cases."""
    if not lab.target.is_local:
        pytest.skip("a foreign cluster is not broken on purpose")
    make_user(lab, USER)
    with crowd_of(lab, USER, f"/home/{USER}/ledger") as crowd:
        stage = Stage(lab, crowd)
        with stage.reading():
            yield stage


@pytest.mark.parametrize("name", FEW)
def test_no_job_is_lost_or_run_twice(stage: Stage, name: str) -> None:
    """Whatever breaks, the jobs end by themselves, once; a condition says what is wrong, and all is as before in time."""
    result = play(stage, named(name))
    assert result.wrong == []
    assert result.verdict.jobs > 2
    stage.lab.timings.note(f"{name} → as before", result.seconds)


def test_what_ran_through_all_faults_ends_by_itself(stage: Stage) -> None:
    """Of all that was submitted nothing is missing in the jail."""
    stage.crowd.finish()
    verdict = stage.crowd.ledger.verdict()
    assert verdict.jobs >= 16 * len(FEW) + 2
    assert (verdict.lost, verdict.twice, verdict.unsaved, verdict.requeued) == ([], [], [], 0)
