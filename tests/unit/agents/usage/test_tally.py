"""How much CPU a job took, over processes that come and go."""

from hypothesis import given, settings
from hypothesis import strategies as st

from soperator.agents.usage.tally import ProcessCpuTime, Snapshot, Totals, gained
from tests.examples import examples

STEP, TASK, CHILD, OTHER = (10, 1), (11, 2), (12, 3), (20, 4)


def snap(spent, exact=None):
    return Snapshot({key: ProcessCpuTime(*each) for key, each in spent.items()}, exact=exact)


def test_a_job_that_is_seen_first_has_taken_what_its_processes_have():
    """Also what they did before anybody looked."""
    assert gained(None, snap({STEP: (0, None), TASK: (7.5, STEP)})) == 7.5


def test_what_an_ended_process_took_is_counted_once():
    """Its parent has it among what its children took, up to its end."""
    before = snap({STEP: (0, None), TASK: (2, STEP), CHILD: (5, TASK)})
    assert gained(before, snap({STEP: (0, None), TASK: (8.5, STEP)})) == 1.5
    assert gained(before, snap({STEP: (9, None)})) == 2


def test_a_step_that_ends_takes_nothing_away_from_the_job():
    """Its slurmstepd's parent is slurmd: what it took is counted already, and what other steps took since is."""
    before = snap({STEP: (0, None), TASK: (50, STEP), OTHER: (3, None)})
    assert gained(before, snap({OTHER: (4, None)})) == 1
    assert gained(before, snap({})) == 0


def test_another_process_of_the_same_number_is_another():
    """The moment of its start tells them apart."""
    assert gained(snap({(11, 2): (5, None)}), snap({(11, 9): (1, None)})) == 1


def test_a_cgroup_is_believed_over_the_processes():
    """The kernel's own sum has also what nobody saw; it never goes back."""
    before, now = snap({TASK: (1, None)}, 10.0), snap({TASK: (2, None)}, 14.0)
    assert gained(None, before) == 10
    assert gained(before, now) == 4
    assert gained(now, before) == 0


def test_totals_grow_and_a_job_that_is_gone_is_forgotten():
    """A job with the number of another begins anew."""
    totals = Totals()
    assert totals.add({1: snap({TASK: (1, None)}), 2: snap({OTHER: (5, None)})}) == {1: 1, 2: 5}
    assert totals.add({1: snap({TASK: (4, None)})}) == {1: 4}
    assert totals.add({1: snap({TASK: (4, None)}), 2: snap({})}) == {1: 4, 2: 0}


TREES = st.dictionaries(
    st.tuples(st.integers(1, 6), st.integers(0, 1)),
    st.tuples(st.floats(0, 100), st.none() | st.tuples(st.integers(1, 6), st.integers(0, 1))),
    max_size=6,
)


@settings(max_examples=examples(50))
@given(TREES, TREES)
def test_no_two_looks_take_anything_away(before, now):
    """Whatever the processes were, parents in a circle too."""
    assert gained(snap(before), snap(now)) >= 0
