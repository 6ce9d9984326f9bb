"""Which records in Slurm are updated to the features and the weight of the spec."""

from dataclasses import replace

import pytest

from soperator.policy import drain_reasons
from soperator.policy.workers.node_records import with_fields
from soperator.policy.workers.policy import decide
from soperator.policy.workers.types import RecordFields, UpdateNodes, Verb, WorkerPod, WorkerSnapshot
from soperator.slurm.node import Shape, SlurmNode

NOW = 1e9
SHAPE = Shape(1, 1024, frozenset({"w"}))
WANTED = RecordFields(frozenset({"w", "blue"}), 7)
WELL = replace(SHAPE, features=frozenset({"w", "blue"}), weight=7)


def world(*shapes, states=("IDLE",), **more):
    """Workers with these shapes in Slurm, all of which the cache calls different."""
    pods = {
        number: WorkerPod(number, "new", "Running", deleting=False, ready=True, ready_since=NOW)
        for number in range(len(shapes))
    }
    nodes = {
        f"w-{number}": SlurmNode(f"w-{number}", frozenset(states), shape=shape) for number, shape in enumerate(shapes)
    }
    said = {"record": WANTED, "differing": frozenset(pods), **more}
    return WorkerSnapshot("w", len(pods), "new", pods, nodes, now=NOW, **said)


def updates(seen):
    """The updates of fields that the policy wants."""
    return [each for each in decide(seen).actions if isinstance(each, UpdateNodes) and each.verb is Verb.SET_FIELDS]


def test_all_that_differ_are_updated_in_one_request():
    """Those that are as wanted, and those of which Slurm says nothing, are left alone; the text names the first change."""
    (update,) = updates(world(SHAPE, WELL, replace(SHAPE, weight=7), None))
    assert (update.indexes, update.why) == ((0, 2), "features w → blue,w, weight 1 → 7")


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        (replace(WELL, weight=3), "weight 3 → 7"),
        (replace(WELL, features=frozenset()), "features none → blue,w"),
        (replace(WELL, features=frozenset({"w", "blue", "red"})), "features blue,red,w → blue,w"),
    ],
)
def test_the_text_names_what_changes(shape, why):
    """An Event with what was there before is all that somebody sees whose value is set back."""
    assert [each.why for each in updates(world(shape))] == [why]


@pytest.mark.parametrize("states", [("ALLOCATED",), ("IDLE", "DRAIN"), ("DOWN",), ("MIXED", "COMPLETING")])
def test_the_state_of_a_node_does_not_matter(states):
    """No job notices it, and no state or reason is touched."""
    assert len(updates(world(SHAPE, states=states))) == 1


def test_a_fresh_answer_counts_more_than_the_cache():
    """What was set meanwhile is not set again."""
    seen = world(SHAPE)
    assert updates(seen.on({"w-0": SlurmNode("w-0", frozenset({"IDLE"}), shape=WELL)})) == []


def test_nothing_is_updated_in_a_nodeset_that_ends_or_without_an_answer():
    """Nor where the spec says nothing of records."""
    assert updates(world(SHAPE, ending=drain_reasons.ENDING)) == []
    assert updates(replace(world(SHAPE), nodes=None)) == []
    assert updates(world(SHAPE, record=None)) == []


def test_features_of_a_plugin_are_left_alone():
    """Only the weight counts then."""
    assert updates(world(replace(SHAPE, weight=7), record=RecordFields(None, 7))) == []
    assert [each.why for each in updates(world(SHAPE, record=RecordFields(None, 7)))] == ["weight 1 → 7"]
    assert with_fields(SHAPE, RecordFields(None, 7)) == replace(SHAPE, weight=7)
    assert with_fields(SHAPE, WANTED) == WELL
    assert with_fields(SHAPE, None) == SHAPE
