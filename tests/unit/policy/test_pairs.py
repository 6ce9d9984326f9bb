from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from soperator.checks.deep_check import Deviation, shipped_deep
from soperator.policy.healthcheck.pairwise_search import (
    Search,
    pair,
    search,
    search_check,
)

GBPS = Deviation("gbps", "below", 25)
LATENCY = Deviation("latency", "above", 100)


def names(count: int) -> list[str]:
    return [f"w-{number:03}" for number in range(count)]


class Town:
    """Nodes and ways between them with their speeds, and a search that is played to its end."""

    def __init__(self, count, slow=(), links=(), noise=0.0, deviation=GBPS, limit=None):
        self.nodes, self.slow, self.links, self.noise = names(count), set(slow), {pair(*each) for each in links}, noise
        self.deviation, self.limit, self.measured, self.rounds = deviation, limit, {}, 0

    def rate(self, one, other):
        bad = {one, other} & self.slow or pair(one, other) in self.links
        speed = (40.0 if bad else 100.0) * (1 + self.noise * ((int(one[2:]) * 5 + int(other[2:]) * 3) % 7 / 7 - 0.5))
        return speed if self.deviation.side == "below" else 10_000 / speed

    def play(self) -> Search:
        while not (found := search(self.nodes, self.measured, self.deviation, self.limit)).done:
            both = [node for each in found.runs for node in each]
            assert len(both) == len(set(both)), "pairs that run side by side share a node"
            assert not set(found.runs) & set(self.measured), "a pair is measured twice"
            self.rounds += 1
            self.measured |= {each: self.rate(*each) for each in found.runs}
        return found


@given(st.integers(3, 60), st.data(), st.sampled_from([GBPS, LATENCY]))
def test_one_slow_node_is_found_in_three_rounds(count, data, deviation):
    """Whoever it is, in any number of nodes from three on, and nobody else is called bad; an odd number costs a round more."""
    bad = data.draw(st.sampled_from(names(count)))
    town = Town(count, [bad], noise=0.1, deviation=deviation)
    found = town.play()
    assert found.bad == (bad,)
    assert not found.links
    assert town.rounds <= 2 + count % 2 + (count == 3)
    assert len(town.measured) <= count // 2 + 2 + count % 2 + 1


@given(st.integers(4, 60), st.data())
def test_a_slow_way_is_told_from_a_slow_node(count, data):
    """Where both ends are fast with others, neither is bad."""
    link = pair(*data.draw(st.sampled_from(list(combinations(names(count), 2)))))
    town = Town(count, links=[link])
    town.measured = {link: town.rate(*link)}
    found = town.play()
    assert found.bad == ()
    assert found.links == (link,)
    assert f"{link[0]} and {link[1]}" in found.message


@given(st.integers(9, 60), st.data())
def test_several_slow_nodes_are_found_and_no_good_one(count, data):
    """Up to a quarter, in at most five rounds, also where they meet each other first."""
    bad = data.draw(st.sets(st.sampled_from(names(count)), max_size=count // 4))
    town = Town(count, bad, noise=0.1)
    assert set(town.play().bad) == bad
    assert town.rounds <= 5


@given(st.integers(0, 40), st.data(), st.floats(0, 1.5))
def test_a_node_that_was_fast_with_anyone_is_never_called_bad(count, data, noise):
    """Whatever nodes and ways are slow, and the search ends."""
    nodes = names(count)
    bad = data.draw(st.sets(st.sampled_from(nodes))) if nodes else set()
    ways = list(combinations(nodes, 2))
    links = data.draw(st.sets(st.sampled_from(ways), max_size=10)) if ways else set()
    town = Town(count, bad, links, noise)
    found = town.play()
    assert not found.runs
    target = 100 * (1 + noise)
    fast = {node for both, rate in town.measured.items() if rate > target for node in both}
    assert not fast & set(found.bad)
    assert len(found.bad) <= count / 3


def test_equal_nodes_are_measured_once():
    """Where nothing is slow there is one round of disjoint pairs, and nothing to say."""
    town = Town(1000, noise=0.1)
    assert town.play() == Search()
    assert town.rounds == 1
    assert len(town.measured) == 500


def test_half_that_is_slow_accuses_nobody():
    """Two kinds of machines in one set are told."""
    town = Town(8, names(4))
    found = town.play()
    assert found.bad == ()
    assert "too many to be bad machines" in found.message


def test_two_nodes_are_told_to_be_too_few():
    """Of two that are slow together nobody knows which one it is, and without a limit not even that."""
    assert "at least 3 are required, or a threshold" in Town(2, names(1)).play().message
    found = Town(2, names(1), limit=80).play()
    assert found.bad == ()
    assert "without a healthy node to compare with: w-000, w-001" in found.message


def test_a_limit_finds_what_all_share():
    """Where no pair reaches it, nobody is known to be well, so nobody is accused, and the search ends all the same."""
    town = Town(10, names(10), limit=80)
    found = town.play()
    assert found.bad == ()
    assert "without a healthy node to compare with" in found.message
    assert town.rounds <= 4


def test_a_pair_that_gives_no_answer_is_left_out():
    """Another partner takes its place."""
    nodes = names(4)
    assert (nodes[0], nodes[1]) not in search(nodes, {}, GBPS, avoid=[(nodes[1], nodes[0])]).runs


def test_a_limit_of_the_spec_takes_the_place_of_what_others_reach():
    """Its name is that by which the check's rule asks for it: three of eight are slow, which would be too many without it."""
    network = next(each for each in shipped_deep() if each.name == "network")
    town = Town(8, names(3))
    for limits, wanted in ((None, ()), ({"tcp_gbps": 80.0}, ("w-000", "w-001", "w-002"))):
        readings: list[dict[str, object]] = []
        while not (found := search_check(network, town.nodes, readings, limits)).done:
            readings += [{"of": " ".join(each), "gbps": town.rate(*each), "latency": 9.0} for each in found.runs]
        assert found.bad == wanted


def test_a_check_is_searched_by_all_that_it_compares():
    """A slow message is found though the bandwidth is the same everywhere."""
    network = next(each for each in shipped_deep() if each.name == "network")
    town = Town(6, names(1), deviation=LATENCY)
    readings = []
    for _ in range(5):
        found = search_check(network, town.nodes, readings)
        readings += [{"of": " ".join(each), "gbps": 9.0, "latency": town.rate(*each) ** 2} for each in found.runs]
    assert found.done
    assert found.bad == ("w-000",)
    assert "slow with every other: w-000" in found.message
