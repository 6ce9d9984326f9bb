"""When a change of places is worth a new topology.conf."""

from hypothesis import given
from hypothesis import strategies as st

from soperator.policy.cluster.topology import (
    COMING,
    GONE,
    QUIET,
    TopologyPlan,
    TopologySnapshot,
    choose,
    with_found_nodes,
)

A, B, NOWHERE = ("a",), ("b",), ("",)


def seen(former, nodes, age=0.0, is_settled=False):
    """A look so many seconds after the last change."""
    return TopologySnapshot(TopologyPlan(former, 1000.0 - age), nodes, is_settled, 1000.0, 1)


def test_nodes_that_come_are_gathered_until_all_have_come():
    """One more every second makes no file every second; the last one does, or a minute."""
    assert choose(seen({"n-0": A}, {"n-0": A, "n-1": B}, age=30)).places == {"n-0": A}
    assert choose(seen({"n-0": A}, {"n-0": A, "n-1": B}, age=30)).again == COMING - 30
    assert choose(seen({"n-0": A}, {"n-0": A, "n-1": B}, QUIET, is_settled=True)).places == {"n-0": A, "n-1": B}
    assert choose(seen({"n-0": A}, {"n-0": A, "n-1": B}, COMING)).places == {"n-0": A, "n-1": B}


def test_a_node_that_slurm_forgot_is_taken_out_soon():
    """Else it would come back, the file be the same, and slurmctld not read it."""
    assert choose(seen({"n-0": A, "n-1": A}, {"n-0": A}, GONE)).places == {"n-0": A}
    assert choose(seen({"n-0": A, "n-1": A}, {"n-0": A}, GONE - 1)).again == 1


def test_a_node_that_was_forgotten_and_is_back_leaves_the_file_once():
    """slurmctld has it under another number than the one for which it read the file."""
    absent = choose(seen({"n-0": A, "n-1": A}, {"n-0": A}, 1))
    back = choose(TopologySnapshot(absent, {"n-0": A, "n-1": A}, True, 1000.0 + GONE, 1))
    assert (back.places, back.again) == ({"n-0": A}, QUIET)
    assert choose(TopologySnapshot(back, {"n-0": A, "n-1": A}, True, back.at + QUIET, 1)).places == {"n-0": A, "n-1": A}


def test_a_node_whose_pod_is_being_made_anew_stays_where_it_was():
    """A rollout writes a file where a pod has moved, and no other; a node of which nothing is known lies nowhere."""
    assert choose(seen({"n-0": A}, {"n-0": None}, 500)).places == {"n-0": A}
    assert choose(seen({}, {"n-0": None}, 500)).places == {"n-0": NOWHERE}


def test_other_levels_are_other_places():
    """What was known by the former levels is nothing by the present ones."""
    assert choose(TopologySnapshot(TopologyPlan({"n-0": ("a", "b")}), {"n-0": None}, True, 1000.0, 1)).places == {
        "n-0": NOWHERE
    }


NODES = st.dictionaries(st.sampled_from(["n-0", "n-1", "n-2", "n-3"]), st.sampled_from([None, A, B]))


@given(st.lists(st.tuples(NODES, st.booleans(), st.floats(0, 30))), NODES)
def test_whatever_happened_the_file_names_all_nodes_in_the_end_and_never_changes_too_often(history, last):
    """Two files are at least the shortest pause apart, and what is left standing still for a minute is what the file says."""
    former, now = TopologyPlan({}), 0.0
    for nodes, is_settled, passed in history:
        now += passed
        made = choose(TopologySnapshot(former, nodes, is_settled, now, 1))
        if made.places != former.places:
            assert now - former.at >= QUIET
            assert made.at == now
        former = made
    for _ in range(2):
        now += COMING + 1
        former = choose(TopologySnapshot(former, last, False, now, 1))
    assert former.places.keys() == last.keys()
    assert [node for node, place in last.items() if place and former.places[node] != place] == []


NAMES = st.frozensets(st.sampled_from(["n-0", "n-1", "n-2", "n-3"]))


@given(st.lists(st.tuples(NAMES, NAMES, st.booleans(), st.floats(0, 30))), NAMES)
def test_whatever_slurmctld_lost_unseen_it_has_every_node_in_the_end(history, last):
    """A slurmctld that restarts loses records, and the nodes are back before anybody looks: then it reads the file twice more."""
    placed, now, read, readings = TopologyPlan({}), 0.0, frozenset(), 0
    quiet = (last, frozenset(), False, COMING + 1)
    for known, lost, is_settled, passed in [*history, quiet, quiet, quiet]:
        now += passed
        if lost:
            read, readings = (placed.places.keys() & known) - lost, readings + 1
        if placed.asked != str(readings):
            placed = with_found_nodes(placed, str(readings), placed.places.keys() & known, read)
        former, placed = placed, choose(TopologySnapshot(placed, dict.fromkeys(known, A), is_settled, now, 1))
        if placed.places != former.places:
            read, readings = placed.places.keys() & known, readings + 1
    assert read == last


def test_a_node_that_slurmctld_never_finds_is_not_tried_for_ever():
    """It leaves the file once; when it has been found, it may be missed again."""
    first = with_found_nodes(TopologyPlan({"n-0": A, "n-1": A}), "1", {"n-0", "n-1"}, ["n-0"])
    assert first.gone == {"n-1"}
    left = choose(TopologySnapshot(first, {"n-0": A, "n-1": A}, True, 1000.0, 1))
    back = choose(TopologySnapshot(left, {"n-0": A, "n-1": A}, True, 1000.0 + QUIET, 1))
    assert (left.places, back.places) == ({"n-0": A}, {"n-0": A, "n-1": A})
    assert with_found_nodes(back, "3", {"n-0", "n-1"}, ["n-0"]).gone == frozenset()
    found = with_found_nodes(back, "3", {"n-0", "n-1"}, ["n-0", "n-1"])
    assert with_found_nodes(found, "4", {"n-0", "n-1"}, ["n-0"]).gone == {"n-1"}
