"""The few questions that we ask of a Slurm node."""

import msgspec
import pytest

from soperator.slurm.node import RestNode, SlurmNode, read_node
from soperator.slurm.quantity import cpus, memory_mib, quantity


@pytest.mark.parametrize(
    ("states", "drained"),
    [
        ({"IDLE", "DRAIN"}, True),
        ({"DOWN", "DRAIN"}, True),
        ({"ALLOCATED", "DRAIN"}, False),
        ({"MIXED", "DRAIN"}, False),
        ({"IDLE", "COMPLETING", "DRAIN"}, False),
        ({"IDLE"}, False),
        (set(), False),
    ],
)
def test_drained_needs_the_flag_and_nothing_that_runs(states, drained):
    """DRAIN alone is not enough, nor is being idle, and no state at all is busy."""
    assert SlurmNode("n", frozenset(states)).is_drained is drained


def test_a_node_is_read_from_the_rest_answer():
    """Name, states and reason come from v0.0.42's fields."""
    said = b'"reason": "soperator: scale-in", "reason_set_by_user": "slurm", "boot_time": {"number": 5}'
    found = read_node(msgspec.json.decode(b'{"name": "w-0", "state": ["IDLE", "DRAIN"], ' + said + b"}", type=RestNode))
    assert (found.name, found.is_drained, found.is_ours, found.boot_time) == ("w-0", True, True, 5)


@pytest.mark.parametrize("state", ["DRAIN", "DOWN"])
@pytest.mark.parametrize("signer", [None, ""])
def test_a_reason_whose_signer_has_no_name_is_a_persons(state, signer):
    """slurmrestd knows the users of its image, among them SlurmUser; a node without a reason has no signer either."""
    record = RestNode("w-0", frozenset({"IDLE", state}), "soperator: scale-in", reason_set_by_user=signer)
    found = read_node(record)
    assert (found.is_administrators, found.is_ours) == (True, False)
    assert not read_node(msgspec.structs.replace(record, reason="")).is_administrators


def test_what_slurmd_adds_to_gres_makes_no_other_node():
    """A node that sleeps again is as it was made, although its GRES name sockets and its shards the type of their GPU."""
    shapes = [
        read_node(RestNode("l4-0", gres=gres)).shape
        for gres in ("gpu:l4:2,shard:16", "gpu:l4:2(S:0-1),shard:l4:16(S:0)")
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    ("states", "up"), [({"IDLE"}, True), ({"MIXED"}, True), ({"IDLE", "NOT_RESPONDING"}, False), ({"DOWN"}, False)]
)
def test_a_node_is_up_when_it_is_registered_and_answers(states, up):
    """A node that does not respond is not up, whatever its base state."""
    assert SlurmNode("n", frozenset(states)).is_up is up


@pytest.mark.parametrize(("text", "value"), [("500m", 0.5), ("2", 2), ("1Gi", 2**30), ("1.5G", 1.5e9)])
def test_quantities_mean_what_kubernetes_says(text, value):
    """Milli, decimal and binary units."""
    assert quantity(text) == value


def test_a_node_has_whole_cpus_and_mebibytes():
    """Half a CPU is one CPU to Slurm, which knows no less; memory is rounded down."""
    assert (cpus({"cpu": "500m"}), cpus({}), memory_mib({"memory": "1.5Gi"})) == (1, None, 1536)


def test_what_is_no_quantity_is_refused():
    """The text is named."""
    with pytest.raises(ValueError, match="'2 cows'"):
        quantity("2 cows")


def test_a_node_whose_state_is_not_told_counts_as_busy():
    """Nothing may be done to it on the strength of an answer that says nothing."""
    assert SlurmNode("w-0", frozenset()).is_busy
    assert SlurmNode("w-0", frozenset({"DRAIN"})).is_busy
    assert not SlurmNode("w-0", frozenset({"IDLE", "DRAIN"})).is_busy
