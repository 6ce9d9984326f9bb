"""Deep checks on real nodes: what they measure, and that they tell a throttled worker, a slow card and a slow way from each other."""

from collections.abc import Iterator

import pytest

from soperator.checks import deep_evaluate
from soperator.checks.deep_check import command, shipped_deep
from tests.cluster import deeps
from tests.cluster.deeps import Bench
from tests.cluster.lab import Lab

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def bench(lab: Lab, alice: str) -> Iterator[Bench]:
    """Four nodes of their own; fewer could not be compared."""
    with lab.pair_nodes("deep", 4, patience=120) as nodes:
        yield Bench(lab, nodes, alice)


def test_every_part_of_a_node_is_measured_by_an_ordinary_user(bench: Bench) -> None:
    """Cores and memory are right, the scratch and the jail keep what is written, and nothing fails or is broken."""
    for name, given in (
        ("cpu", {"seconds": 1}),
        ("memory", {"seconds": 0.5, "mib": 64}),
        ("disk", {"mib": 16}),
        ("jail", {"mib": 8, "files": 20}),
    ):
        check = next(each for each in shipped_deep() if each.name == name)
        words = {**check.given, **given}
        (reading,) = bench.run(deeps.replace(check, given=words), bench.nodes[:1])
        assert (reading["of"], reading["wrong"]) == (bench.nodes[0], 0), reading
        assert {each.outcome for each in deep_evaluate.judge(check, [reading], (), bench.nodes[:1])} <= {"unsure"}


def test_what_a_program_needs_and_has_not_is_told_and_is_no_result(bench: Bench) -> None:
    """The jail of this cluster has no PyTorch: the step ends with exit code 2 and says so."""
    words = f"srun -w {bench.nodes[0]} {command(next(each for each in shipped_deep() if each.name == 'burn'))[0]} burn"
    said = bench.lab.ssh(bench.user, f"{words} 2>&1; echo ended with $?")
    assert "deep: burn: needs PyTorch in the jail" in said
    assert "ended with 2" in said


def test_a_throttled_worker_is_found_among_its_peers_and_by_pairs(bench: Bench) -> None:
    """`cpu` names it at once; all-reduce over all is slow, its sums are right, and pairs tell that it is this node and no way."""
    cpu, ring = deeps.shipped("cpu", "gflops", seconds=1), deeps.shipped("allreduce", "busbw", seconds=1, mib=4)
    before = bench.best(ring)
    with deeps.throttled(bench.nodes[2]):
        bench.bad_nodes(cpu, {bench.nodes[2]})
        during = bench.best(ring)
        assert before["wrong"] == during["wrong"] == 0
        assert float(during["busbw"]) < float(before["busbw"])
        bench.search(ring, bad=(bench.nodes[2],))


def test_a_slow_card_is_told_from_a_slow_way(bench: Bench) -> None:
    """A node that is slow with everyone is bad; two that are slow only with each other are not, and the path between them is named."""
    network = deeps.shipped("network", "gbps", seconds=0.5)
    with deeps.slow_card(bench.nodes[1]):
        bench.search(network, bad=(bench.nodes[1],))
    with deeps.slow_way(bench.nodes[2], bench.nodes[3]):
        bench.search(network, links=((bench.nodes[2], bench.nodes[3]),))
