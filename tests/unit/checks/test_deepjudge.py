import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soperator.checks.deep_check import read_deep, shipped_deep
from soperator.checks.deep_evaluate import judge, named, of_node
from tests.examples import examples

CHECKS = {each.name: each for each in shipped_deep()}
CPU = CHECKS["cpu"]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(["w-1", "", "w-1 w-2", "9"]),
    lambda inner: st.dictionaries(st.sampled_from(["of", "gflops", "wrong", "x"]), inner, max_size=3),
    max_leaves=4,
)


def cpu(node: str, gflops: float, **more: object) -> dict[str, object]:
    return {"of": node, "gflops": gflops, "slowest": 99.0, "cores": 8, "wrong": 0, "which": -1} | more


def test_a_slow_node_is_named_with_its_number_and_its_peers():
    """The evidence holds the value, the median, and how the sentence is."""
    peers = [cpu(f"w-{number}", 100 + number) for number in range(4)]
    (found,) = judge(CPU, [cpu("w-9", 40)], peers, ["w-9"])
    assert (found.outcome, found.nodes) == ("fail", ("w-9",))
    assert found.message == "w-9 computes 40.0 Gflop/s, its peers 101.0"
    assert found.values == {"of": "w-9", "gflops": 40, "peers": 101}


def test_a_node_as_fast_as_its_peers_passes():
    """No finding is a pass."""
    peers = [cpu(f"w-{number}", 100 + number) for number in range(4)]
    assert judge(CPU, [cpu("w-9", 101)], peers, ["w-9"]) == []


def test_what_was_measured_anew_takes_the_place_of_the_older_reading():
    """A repaired node is not judged by what it had been."""
    peers = [cpu(f"w-{number}", 100) for number in range(4)] + [cpu("w-9", 10)]
    assert judge(CPU, [cpu("w-9", 99)], peers, ["w-9"]) == []


def test_a_node_without_a_reading_is_broken_and_never_passes():
    """Neither is what a job says of nodes that it did not have."""
    found = judge(CPU, [cpu("w-1", 100), cpu("w-7", 1)], (), ["w-1", "w-2"])
    assert [(each.outcome, each.nodes) for each in found] == [("broken", ("w-2",)), ("unsure", ())]


def test_wrong_results_fail_a_node_without_any_peer():
    """A limit needs nobody to compare with."""
    found = judge(CPU, [cpu("w-1", 100, wrong=1, which=5)], (), ["w-1"])
    assert found[0].message == "1 of 8 cores of w-1 compute wrongly, the first is CPU 5"


def test_few_nodes_without_a_limit_are_told_to_be_too_few():
    """A check that cannot find anything does not look as if it passed."""
    (found,) = judge(CPU, [cpu("w-1", 100)], [cpu("w-2", 10)], ["w-1"])
    assert (found.outcome, found.nodes) == ("unsure", ())
    assert "2 readings of cpu are too few to compare: at least 4 are required" in found.message


def test_two_camps_are_told():
    """Half of the nodes at half of the speed is nobody's fault."""
    readings = [cpu(f"w-{number}", 100 if number % 2 else 50) for number in range(8)]
    (found,) = judge(CPU, readings, (), [f"w-{number}" for number in range(8)])
    assert (found.outcome, found.nodes) == ("unsure", ())
    assert "gflops of 4 of 8 is more than 10 % below the better values" in found.message


def test_limits_of_the_machine_and_of_the_spec():
    """Eight H100 below 460 GB/s fail by the table; a limit of the spec goes before it; four GPUs are not judged by the number for eight."""
    nccl = CHECKS["nccl"]
    reading = {"of": "w-1", "busbw": 450.0, "wrong": 0, "ranks": 8, "nodes": 1, "model": "NVIDIA H100 80GB HBM3"}
    assert "450.0 GB/s, less than 460" in judge(nccl, [reading])[0].message
    assert [each.outcome for each in judge(nccl, [reading], limits={"nccl_busbw_8": 440})] == ["unsure"]
    assert [each.outcome for each in judge(nccl, [reading | {"ranks": 4}])] == ["unsure"]


def test_a_slow_gpu_is_told_from_the_others_of_its_node():
    """Eight GPUs are a crowd of their own; the finding names GPU and node."""
    readings = [
        {"of": "w-1", "part": f"GPU {number}", "tflops": 300 if number == 3 else 600, "wrong": 0, "rounds": 8}
        for number in range(8)
    ]
    (found,) = judge(CHECKS["burn"], readings, (), ["w-1"])
    assert found.message == "GPU 3 of w-1 computes 300 Tflop/s, its peers 600"
    assert found.nodes == ("w-1",)


def test_a_slow_pair_names_two_suspects():
    """Which of them it is, is for the search to find."""
    pairs = [{"of": f"a-{number} b-{number}", "gbps": 90.0, "latency": 20.0} for number in range(4)]
    (found,) = judge(CHECKS["network"], [{"of": "b-9 a-9", "gbps": 9.0, "latency": 21.0}], pairs)
    assert found.nodes == ("b-9", "a-9")


def test_a_group_too_long_for_a_line_gets_its_names_back():
    """`*` are all nodes of the job."""
    assert named([{"of": "*", "busbw": 1.0}, {"of": "a"}], ["a", "b"]) == [{"of": "a b", "busbw": 1.0}, {"of": "a"}]


def test_a_sentence_that_does_not_fit_is_broken_and_no_failure():
    """A file with a typing error accuses nobody."""
    rule = {"when": {"x": {"above": 0}}, "says": "{y} is missing"}
    check = read_deep("own", {"about": "a", "per": "node", "program": "own", "time": 1, "fail": [rule]})
    (found,) = judge(check, [{"of": "w-1", "x": 1}], (), ["w-1"])
    assert found.outcome == "broken"


@settings(max_examples=examples(40))
@given(st.lists(ANYTHING, max_size=5), st.lists(ANYTHING, max_size=5), st.sampled_from(list(CHECKS.values())))
def test_whatever_a_job_says_is_judged_without_an_error(readings, peers, check):
    """A reading comes from a worker, whose root can write anything."""
    for found in judge(check, readings, peers, ["w-1"]):
        assert len(found.message) <= 300
        assert set(found.nodes) <= {"w-1"}


def printed(*readings: object) -> str:
    return "some words before\n" + json.dumps({"soperator": 1, "readings": list(readings)}) + "\n"


def test_a_job_of_one_node_is_answered_with_a_verdict_and_its_readings():
    """The readings become peers of the next ones; those of other nodes are dropped."""
    peers = [cpu(f"w-{number}", 100) for number in range(4)]
    slow = of_node(CPU, printed(cpu("w-9", 40), cpu("w-0", 1)), "w-9", peers)
    assert (slow.verdict.outcome, slow.verdict.values["peers"]) == ("fail", 100)
    assert slow.readings == (cpu("w-9", 40),)
    well = of_node(CPU, printed(cpu("w-9", 99)), "w-9", peers)
    assert (well.verdict.outcome, well.unsure) == ("pass", "")
    assert of_node(CPU, printed(cpu("w-9", 99)), "w-9").unsure.startswith("1 readings of cpu are too few")


def test_several_bad_gpus_of_a_node_are_one_failure_that_counts_them():
    """The first is named."""
    gpus = [{"of": "w-1", "part": f"GPU {number}", "tflops": 600, "wrong": 1, "rounds": 8} for number in range(8)]
    answer = of_node(CHECKS["burn"], printed(*gpus), "w-1")
    assert answer.verdict.message == "GPU 0 of w-1 computed 1 of 8 products wrongly (and 7 more)"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        "1",
        '{"soperator": 1}',
        '{"soperator": 1, "readings": 5}',
        '{"soperator": 2, "readings": []}',
        "[" * 9000,
    ],
)
def test_what_is_no_answer_is_broken(text):
    """A program that ended well and said nothing has not passed anybody."""
    assert of_node(CPU, text, "w-1").verdict.outcome == "broken"


def test_an_answer_without_a_reading_of_the_node_is_broken():
    """What it says of others is no word about it."""
    assert of_node(CPU, printed(cpu("w-2", 9)), "w-1").verdict.outcome == "broken"
