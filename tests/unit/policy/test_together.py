"""Rounds of pairs and groups, in generated histories in which the operator dies at every step, users take nodes and jobs make way."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soperator.checks.deep_check import shipped_deep
from soperator.checks.evaluate import Verdict
from soperator.policy.healthcheck import multi_node, single_node
from soperator.policy.healthcheck import status_codec as status_codec
from soperator.policy.healthcheck.invariants import violation
from soperator.policy.healthcheck.pairwise_search import pair
from soperator.policy.healthcheck.types import (
    Cancel,
    CheckHistory,
    CheckPolicy,
    CheckTarget,
    RedrainNode,
    ResumeNode,
    Run,
    RunResult,
    Shared,
    Submit,
)
from soperator.slurm.node import SlurmNode
from tests.examples import examples

NAMES = tuple(f"w-{index}" for index in range(8))
CHECKS = {each.name: each for each in shipped_deep()}
REASON = "soperator: check net: slow"
VALUE = {"network": "gbps", "allreduce": "busbw"}


def wish(name, **more):
    given = {"most": 6, "retest": 30.0, "confirm": 2, "passes": 2} | more
    return CheckPolicy("net", shared=Shared(CHECKS[name], given.pop("limits", {})), **given)


@dataclass
class Lan:
    """Slurm, its nodes and the jobs of the check: a job reads the slowest of its nodes and of the ways between them."""

    wish: CheckPolicy
    names: tuple = NAMES
    nodes: dict = field(default_factory=dict)
    jobs: dict = field(default_factory=dict)
    now: float = 1000.0
    bad: set = field(default_factory=set)
    ways: set = field(default_factory=set)
    mute: set = field(default_factory=set)
    status: dict = field(default_factory=dict)
    learned: bool = True

    def __post_init__(self):
        self.nodes = {name: SlurmNode(name, frozenset({"IDLE"})) for name in self.names}

    def set(self, name, *, drop=(), add=(), **more):
        self.nodes[name] = replace(self.nodes[name], states=(self.nodes[name].states - set(drop)) | set(add), **more)

    def alive(self):
        return [job for job in self.jobs.values() if job["is"] in ("waits", "runs")]

    def step(self):
        """Jobs that can begin do."""
        for job in self.alive():
            if job["is"] == "waits" and not any(
                self.nodes[n].is_busy or self.nodes[n].is_draining for n in job["nodes"]
            ):
                job["is"] = "runs"
                for name in job["nodes"]:
                    self.set(name, drop={"IDLE"}, add={"ALLOCATED"})

    def end(self, job, how="over"):
        """A job ends, with what its nodes read now."""
        ran, nodes = job["is"] == "runs", job["nodes"]
        pairs = [pair(one, other) for one in nodes for other in nodes if one < other]
        slow = self.bad & set(nodes) or self.ways & set(pairs)
        job |= {"is": how, "reads": None if self.mute & set(nodes) else 1.0 if slow else 10.0, "at": self.now}
        for name in nodes if ran else ():
            self.set(name, drop={"ALLOCATED"}, add={"IDLE"}, last_busy=self.now)

    def ended(self, run):
        job = self.jobs[run.job]
        if job["is"] == "gone":
            return RunResult(run, self.now, None)
        if job["reads"] is None:
            return RunResult(run, job["at"], Verdict("broken", "exit code 2: no route"))
        value = {VALUE[self.wish.shared.check.name]: job["reads"], "wrong": 0.0, "nodes": float(len(run.nodes))}
        return RunResult(run, job["at"], Verdict("pass"), readings=({"of": " ".join(run.nodes), **value},))

    def targets(self):
        return [CheckTarget(name, 0.0, True, each) for name, each in self.nodes.items()]

    @property
    def history(self):
        return status_codec.read(self.wish.name, self.status, self.wish.on_failure)

    def turn(self, dies=99):
        """One pass; it dies after so many acts, before the book is written."""
        history = single_node.begin(self.history, self.wish, self.targets(), self.now)
        if not self.learned:
            new = [(number, job) for number, job in self.jobs.items() if number > history.highest_job]
            history = replace(
                history,
                runs=(*history.runs, *(Run(n, j["nodes"][0], j["at"], j["retest"], j["nodes"][1:]) for n, j in new)),
            )
        over = [self.ended(run) for run in history.runs if self.jobs[run.job]["is"] not in ("waits", "runs")]
        waits = frozenset(run.job for run in history.runs if self.jobs[run.job]["is"] == "waits")
        history, closes = multi_node.fold(history, self.wish, over, self.nodes)
        history = multi_node.advance(history, self.wish, self.targets(), self.now)
        plan = multi_node.decide(history, self.wish, self.targets(), self.now, waits)
        assert violation(history, self.wish, self.targets(), plan.actions) == ""
        begun = []
        for number, act in enumerate([*closes, *plan.actions]):
            if number >= dies:
                self.learned = False
                return
            begun += self.take(act)
        self.status, self.learned = status_codec.write(replace(history, runs=(*history.runs, *begun))), True

    def take(self, act):
        match act:
            case RedrainNode(name, why):
                self.set(name, add={"DRAIN"}, reason=why, reason_at=self.now)
            case ResumeNode(name):
                assert self.nodes[name].is_drained
                self.set(name, drop={"DRAIN"}, reason="")
            case Cancel(run):
                self.end(self.jobs[run.job], "gone")
            case Submit():
                tested = [name for name in act.nodes if self.nodes[name].is_draining]
                assert bool(tested) == act.retest
                assert not any(self.nodes[name].is_busy for name in act.nodes)
                number = len(self.jobs) + 1
                self.jobs[number] = {"is": "waits", "nodes": act.nodes, "retest": act.retest, "at": self.now}
                return [Run(number, act.node, self.now, act.retest, act.others)]
        return []

    def health(self):
        """What policy.health does with cases, without its budget."""
        history = self.history
        for name, node in self.nodes.items():
            failure, tests = (
                history.failures.get(name),
                any(job["retest"] and name in job["nodes"] for job in self.alive()),
            )
            if failure and failure.check_state.state == "failing" and not node.is_draining and not tests:
                self.set(name, add={"DRAIN"}, reason=REASON, reason_at=self.now)
            elif failure is None and node.is_draining and not tests:
                self.set(name, drop={"DRAIN"}, reason="")

    def quiet(self, turns=60):
        """Time goes by and jobs end; nobody disturbs."""
        for _ in range(turns):
            self.turn()
            self.step()
            self.turn()
            for job in self.alive():
                if job["is"] == "runs":
                    self.end(job)
            self.turn()
            self.health()
            self.now += 20.0

    def stands(self):
        """The sane, whatever happened."""
        alive = self.alive()
        held = [name for job in alive for name in job["nodes"]]
        assert len(set(held)) == len(held)
        assert len(held) <= self.wish.most

    def states(self):
        return {name: each.check_state.state for name, each in self.history.failures.items()}


def test_a_bad_node_among_many_is_found_by_pairs_and_confirmed():
    """Two rounds: the first makes it suspect, the second, with others for company, failing; it is drained, and tested until it is repaired."""
    lan = Lan(wish("network"), bad={"w-3"})
    lan.quiet(8)
    assert lan.states() == {"w-3": "failing"}
    failure = lan.history.failures["w-3"]
    assert failure.check_state.message.startswith("gbps 1 with w-")
    assert "others reach 10: slow with each of " in failure.check_state.message
    assert "gbps=1" in failure.log
    assert set(lan.history.last_runs) == set(NAMES)
    lan.quiet(12)
    assert lan.states() == {"w-3": "failing"}
    lan.bad = set()
    lan.quiet(20)
    assert lan.states() == {}
    assert not lan.nodes["w-3"].is_draining
    assert [each.node for each in lan.history.ended] == ["w-3"]


def test_a_round_of_pairs_costs_half_a_job_for_each_node_and_is_not_repeated():
    """Sixty nodes, all well: thirty jobs, and then nothing is due."""
    lan = Lan(wish("network", most=20), names=tuple(f"w-{n}" for n in range(60)))
    lan.quiet(30)
    assert len(lan.jobs) == 30
    assert set(lan.history.last_runs) == set(lan.names)


def test_a_slow_way_between_two_good_nodes_is_told_and_accuses_nobody():
    """It stands in the notes until a later round finds it well."""
    lan = Lan(wish("network"), ways={("w-2", "w-3")})
    lan.quiet(6)
    assert lan.states() == {}
    assert [each.message for each in lan.history.findings] == [
        "the path between w-2 and w-3 is slow, but both nodes are healthy"
    ]
    lan.ways = set()
    lan.wish = replace(lan.wish, request="again")
    lan.quiet(6)
    assert lan.history.findings == ()


def test_a_group_that_passes_is_one_job_and_one_that_fails_is_told_apart_by_pairs():
    """With a limit the group judges itself; the bad one of it is found, confirmed and drained."""
    lan = Lan(wish("allreduce", most=8, limits={"tcp_busbw": 5.0}))
    lan.quiet(4)
    assert [len(job["nodes"]) for job in lan.jobs.values()] == [8]
    assert set(lan.history.last_runs) == set(NAMES)
    lan.bad, lan.wish = {"w-5"}, replace(lan.wish, request="again")
    lan.quiet(10)
    assert lan.states() == {"w-5": "failing"}
    assert "less than 5; the same with each of " in lan.history.failures["w-5"].check_state.message
    assert [len(job["nodes"]) for job in lan.jobs.values()][1:3] == [8, 2]


def test_groups_are_compared_with_each_other_and_the_first_ones_by_pairs():
    """Without a limit a group has nothing to be compared with until there are four of its size."""
    names = tuple(f"w-{n}" for n in range(24))
    lan = Lan(wish("allreduce", most=4), names=names)
    lan.quiet(40)
    assert set(lan.history.last_runs) == set(names)
    assert len([job for job in lan.jobs.values() if len(job["nodes"]) == 4]) == 6
    assert len([job for job in lan.jobs.values() if len(job["nodes"]) == 2]) == 6  # of the first three groups
    assert lan.history.findings == ()


def test_a_slow_group_in_which_nobody_is_slow_is_told():
    """What all share is nobody's fault."""
    lan = Lan(wish("allreduce", most=8, limits={"tcp_busbw": 5.0}), ways={("w-0", "w-7")})
    lan.quiet(6)
    assert lan.states() == {}
    (note,) = lan.history.findings
    assert note.message.startswith("all-reduce over 8 nodes passes 1.000 GB/s, less than 5; no single node and no path")


def test_a_node_with_which_no_job_gives_a_reading_is_broken_and_the_others_pass():
    """The group breaks through it, and so does every pair with it."""
    lan = Lan(wish("allreduce", most=8, limits={"tcp_busbw": 5.0}), mute={"w-6"})
    lan.quiet(10)
    assert lan.states() == {"w-6": "broken"}
    assert lan.history.failures["w-6"].check_state.message == "exit code 2: no route"
    assert set(lan.history.last_runs) == set(NAMES)


@pytest.mark.parametrize("limits", [{}, {"tcp_gbps": 5.0}])
def test_two_nodes_cannot_be_told_apart_and_are_not_measured_for_ever(limits):
    """It is told, and nobody fails."""
    lan = Lan(wish("network", limits=limits), names=("w-0", "w-1"), bad={"w-0"})
    lan.quiet(10)
    assert lan.states() == {}
    assert len(lan.jobs) == 1
    assert len(lan.history.findings) == 1


def test_a_round_does_not_wait_for_ever_for_a_node_that_a_user_has():
    """Who was measured by then is judged; the others stay due, and are measured when they are free."""
    lan = Lan(wish("network", most=2))
    lan.turn()
    lan.set("w-7", drop={"IDLE"}, add={"ALLOCATED"})
    lan.quiet(40)
    assert set(lan.history.last_runs) == set(NAMES) - {"w-7"}
    lan.set("w-7", drop={"ALLOCATED"}, add={"IDLE"})
    lan.quiet(40)
    assert set(lan.history.last_runs) == set(NAMES)


def test_what_was_submitted_before_the_operator_died_is_not_submitted_again():
    """No round stands in the status, and two jobs that nobody wrote down: they are a round of their own."""
    lan = Lan(wish("network", most=8))
    lan.turn(dies=2)
    assert lan.history.comparison is None
    lan.step()
    for job in lan.alive():
        lan.end(job)
    lan.turn()
    assert set(lan.history.last_runs) == {"w-0", "w-1", "w-2", "w-3"}
    lan.quiet(10)
    assert len(lan.jobs) == 4
    assert set(lan.history.last_runs) == set(NAMES)


def test_a_test_that_ends_before_it_was_seen_leaves_no_bad_node_in_service():
    """The node was opened and its job ran and ended at once: it is drained again before the result counts."""
    lan = Lan(wish("network"), bad={"w-3"})
    while not any(job["retest"] for job in lan.alive()):
        lan.quiet(1) if not lan.nodes["w-3"].is_draining else lan.turn()
        lan.now += 1.0
    lan.turn()
    assert not lan.nodes["w-3"].is_draining
    lan.step()
    (job,) = [job for job in lan.alive() if job["retest"]]
    lan.end(job)
    lan.turn()
    assert lan.nodes["w-3"].is_draining
    lan.turn()
    assert len(lan.history.comparison.readings) == 1


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["turn", "wait", "end", "user", "leave", "break", "mend", "drain"]),
        st.integers(0, 7),
        st.integers(0, 5),
    ),
    max_size=60,
)


def happen(lan, event, index, dies):
    name = NAMES[index]
    running = [job for job in lan.alive() if job["is"] == "runs" and name in job["nodes"]]
    match event:
        case "turn":
            lan.turn(dies if dies < 4 else 99)
        case "wait":
            lan.now += 40.0
        case "end" if running:
            lan.end(running[0])
        case "user" if not lan.nodes[name].is_draining and not [job for job in running if job["retest"]]:
            for job in running:
                lan.end(job, "gone")
            lan.set(name, drop={"IDLE"}, add={"ALLOCATED"})
        case "leave" if not running and lan.nodes[name].is_busy:
            lan.set(name, drop={"ALLOCATED"}, add={"IDLE"}, last_busy=lan.now)
        case "break" if len(lan.bad | {name}) <= 2:
            lan.bad.add(name)
        case "mend":
            lan.bad.discard(name)
        case "drain":
            lan.health()
    lan.step()


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(EVENTS, st.sampled_from(["network", "allreduce"]), st.sets(st.sampled_from(NAMES), max_size=1))
def test_whatever_happens_no_node_has_two_and_at_the_end_the_bad_one_is_drained(events, name, bad):
    """Also where the operator dies between two acts: when all is quiet again every node ran it, and only who is bad fails."""
    lan = Lan(wish(name, limits={"tcp_busbw": 5.0} if name == "allreduce" else {}))
    for event, index, dies in events:
        happen(lan, event, index, dies)
        lan.stands()
    lan.bad = set(bad)
    for node in NAMES:
        if lan.nodes[node].is_busy and not [job for job in lan.alive() if node in job["nodes"]]:
            lan.set(node, drop={"ALLOCATED"}, add={"IDLE"})
    lan.quiet(60)
    lan.wish = replace(lan.wish, request="once more")
    lan.quiet(30)
    assert set(lan.history.last_runs) == set(NAMES)
    assert {node for node, state in lan.states().items() if state in ("failing", "recovering")} == set(bad)
    tested = {node for job in lan.alive() if job["retest"] for node in job["nodes"]} & set(lan.states())
    assert {node for node, each in lan.nodes.items() if each.is_draining} | tested == set(bad)


@given(st.sets(st.sampled_from(NAMES), min_size=2), st.booleans(), st.sampled_from(["", "w-3"]))
def test_a_round_is_read_as_it_was_written(nodes, whole, tested):
    """With readings of pairs, and pairs that broke."""
    names = tuple(sorted(nodes))
    readings = ({"of": " ".join(names[:2]), "gbps": 9.5, "job": 7.0},)
    found = multi_node.ComparisonRound(10.0, names, whole, tested, 12.0, readings, {pair(*names[:2]): 2}, "why")
    history = CheckHistory(
        runs=(Run(7, names[0], 11.0, False, names[1:]),),
        comparison=found,
        findings=(multi_node.RoundNote(9.0, names, "so"),),
    )
    assert replace(status_codec.read("", status_codec.write(history)), highest_job=0) == history
