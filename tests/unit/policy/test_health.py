from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soperator.checks.report import Report, ResolvedCheck
from soperator.policy.drain_reasons import LASTING
from soperator.policy.health.policy import (
    HealthState,
    NodeHealth,
    decide,
    health,
)
from soperator.policy.workers.types import (
    AnnotatePod,
    DrainNode,
    Resume,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.node import SlurmNode
from tests.examples import examples
from tests.unit.policy.checked import (
    NOW,
    POLICY,
    WELL,
    actions,
    bad,
    node,
    out,
    pod,
    seen,
)


def test_a_node_that_fails_a_check_is_drained_in_the_checks_words():
    """The reason begins as all of ours do, and says which check and what is wrong."""
    assert actions(node(report=bad())) == [DrainNode(0, "soperator: check disk-full: /tmp is 97 % full")]


@pytest.mark.parametrize(
    "report",
    [None, WELL, bad(state="suspect"), bad(state="broken"), bad(on_failure="report"), bad(state="recovering")],
    ids=["none", "well", "suspect", "broken", "report", "recovering"],
)
def test_nothing_else_drains_a_node(report):
    """No report, a suspicion, a check that does not work, one that is only told: the node stays in service."""
    assert actions(node(report=report)) == []


def test_where_checks_only_tell_no_node_is_drained_and_the_fault_is_told():
    """The sentence names the node, the check and its words."""
    verdict = decide(seen(node(report=bad())), replace(POLICY, drains=False))
    assert verdict.actions == ()
    assert verdict.said == "1 in service fail: w-0 (Failing: disk-full: /tmp is 97 % full)"


def test_beyond_the_budget_nodes_stay_in_service_and_an_alarm_is_raised():
    """Those that have failed longest go; a check that fails everywhere empties no cluster."""
    nodes = [node(n, report=bad(since=NOW - n)) for n in range(5)]
    verdict = decide(seen(*nodes), POLICY)
    assert [each.index for each in verdict.actions] == [4, 3]
    assert "3 more fail but stay in service, because health.maxUnhealthy is 2" in verdict.said


def test_nodes_that_are_out_count_against_the_budget():
    """Also those that are on their way back."""
    assert actions(out(0), out(1, bad(state="recovering")), node(2, report=bad()), now=NOW - 95) == []


def test_a_drain_of_somebody_else_is_left_alone():
    """Neither a person's nor one of a rollout is put over, or undone when the checks pass."""
    for reason in ("maintenance by eve", "soperator: new pod template", "check disk-full: forged", ""):
        for report in (bad(), WELL, replace(WELL, last=ResolvedCheck("disk-full", 0, NOW, ""))):
            assert actions(node(0, "DRAIN", reason=reason, report=report)) == []


def test_a_node_comes_back_when_its_runner_saw_the_end_of_the_failure():
    """Enough passes in a row are the runner's to count."""
    over = Report(NOW - 1, last=ResolvedCheck("disk-full", NOW - 200, NOW - 1, "full"))
    assert actions(out(0, over), now=NOW - 95) == [Resume(0, "its checks pass again")]


def test_a_new_pods_runner_has_to_be_content_for_a_while():
    """It does not know of the drain, and its first look may be too early."""
    fresh = Report(NOW - 50)
    assert actions(out(0, fresh), pods=[pod(0, noted=out().reason)]) == []
    assert actions(out(0, fresh), pods=[pod(0, noted=out().reason)], now=NOW + 190) == [
        Resume(0, "its checks pass again")
    ]
    assert decide(seen(out(0, fresh), pods=[pod(0, noted=out().reason)]), POLICY).again == pytest.approx(190)


@pytest.mark.parametrize(
    "report",
    [
        bad(),
        bad(state="recovering"),
        bad(state="suspect"),
        bad(state="broken"),
        bad("plan", "broken", on_failure="report"),
        Report(0, more=1),
    ],
)
def test_a_node_stays_out_as_long_as_anything_speaks_against_it(report):
    """So it does without a report."""
    ended = replace(report, last=ResolvedCheck("disk-full", 0, NOW + 1e5, ""))
    assert not [each for each in actions(out(0, ended), now=NOW + 1e5) if isinstance(each, Resume)]
    silent = replace(out(), report=None)
    assert not [each for each in actions(silent, now=NOW + 1e5) if isinstance(each, Resume)]


def test_a_drain_that_lasts_is_written_on_the_pod_and_wiped_off_when_the_checks_pass():
    """So that it is known later who took it back."""
    assert actions(out()) == [AnnotatePod(0, f"w-0: {out().reason}", protected=True, noted=out().reason)]
    noted = pod(0, noted=out().reason)
    assert actions(out(), pods=[noted]) == []
    assert actions(node(report=WELL), pods=[noted]) == [
        AnnotatePod(0, "w-0: its checks pass", protected=True, noted="")
    ]


def test_whom_an_administrator_resumed_is_left_alone_until_the_checks_pass():
    """The note says that we had drained it, and somebody has decided otherwise."""
    noted = pod(0, noted=out().reason)
    assert actions(node(report=bad()), pods=[noted]) == []
    assert actions(node(report=bad(state="recovering")), pods=[noted]) == []
    assert [type(each) for each in actions(node(report=WELL), pods=[noted])] == [AnnotatePod]


def test_a_pod_that_may_be_evicted_is_protected_before_its_node_takes_jobs():
    """And one that is to leave its Node does not come back for that."""
    over = Report(NOW, last=ResolvedCheck("disk-full", 0, NOW, ""))
    [first] = actions(out(0, over), pods=[pod(0, protected=False)])
    assert (first.protected, type(first)) == (True, AnnotatePod)
    assert not [each for each in actions(out(0, over), pods=[pod(0, leave="maintenance")]) if isinstance(each, Resume)]


def test_without_a_fresh_answer_nothing_is_done():
    """Silence of Slurm is no news of a node."""
    assert decide(replace(seen(node(report=bad())), nodes=None), POLICY).actions == ()


@pytest.mark.parametrize(
    ("given_node", "state", "check"),
    [
        (node(report=None), HealthState.UNCHECKED, ""),
        (node(), HealthState.HEALTHY, ""),
        (node(report=bad(state="suspect")), HealthState.SUSPECT, "disk-full"),
        (node(report=bad(state="broken")), HealthState.SUSPECT, "disk-full"),
        (node(report=bad()), HealthState.FAILING, "disk-full"),
        (node(report=bad(on_failure="report")), HealthState.FAILING, "disk-full"),
        (node(0, "DRAIN", reason="by hand", report=bad()), HealthState.FAILING, "disk-full"),
        (out(base="ALLOCATED"), HealthState.DRAINING, "disk-full"),
        (out(), HealthState.OUT, "disk-full"),
        (out(0, bad(state="recovering")), HealthState.TESTING, "disk-full"),
        (out(0, WELL), HealthState.TESTING, "disk-full"),
        (replace(out(), report=None), HealthState.OUT, "disk-full"),
        (
            node(report=replace(WELL, last=ResolvedCheck("disk-full", 0, NOW - 9, "full"))),
            HealthState.RETURNED,
            "disk-full",
        ),
        (node(report=replace(WELL, last=ResolvedCheck("disk-full", 0, NOW - 9999, "full"))), HealthState.HEALTHY, ""),
    ],
)
def test_a_node_is_in_the_state_that_its_report_and_its_drain_make(given_node, state, check):
    """Each of the states, by the check that it is about."""
    found = health(given_node, NOW, 1e9)
    assert (found.state, found.check) == (state, check)


def test_a_runner_that_says_nothing_any_more_is_told():
    """It renews its report every ten intervals; a node of which nothing was heard for long is suspect, and does not come back."""
    mute = replace(WELL, at=NOW - 9000, renewed=NOW - POLICY.silence - 1)
    assert (
        "w-0 (Suspect: runner: no check has been reported since 1970-01-12T13:2"
        in decide(seen(node(report=mute)), POLICY).said
    )
    heard = replace(mute, renewed=NOW - POLICY.silence + 9)
    verdict = decide(seen(node(report=heard)), POLICY)
    assert (verdict.said, verdict.again) == ("", pytest.approx(9.1))
    over = replace(mute, last=ResolvedCheck("disk-full", 0, NOW, ""))
    assert [each for each in actions(out(0, over)) if isinstance(each, Resume)] == []


def test_a_node_whose_runner_never_said_a_word_is_told():
    """A slurmd that began long ago has had the time for it; one that has just begun has not."""
    mute = replace(node(report=None), started=int(NOW - POLICY.silence - 1))
    assert decide(seen(mute), POLICY).said == "1 have never reported a check: see the log of slurmd: w-0 (Unchecked)"
    assert decide(seen(replace(mute, started=int(NOW - 60))), POLICY).said == ""


def test_a_state_is_told_with_its_evidence():
    """By a word, the check and its sentence."""
    assert (
        NodeHealth(HealthState.OUT, 0, "disk-full", "/tmp is 97 % full").summary == "Out: disk-full: /tmp is 97 % full"
    )


# -- generated histories ----------------------------------------------------------------------------------------------


@dataclass
class Town:
    """Four nodes with runners that count as the real one does, a person with scontrol, and an operator that remembers nothing."""

    now: float = NOW
    nodes: dict[int, SlurmNode] = field(default_factory=lambda: {n: node(n, at=0) for n in range(4)})
    pods: dict[int, WorkerPod] = field(default_factory=lambda: {n: pod(n) for n in range(4)})
    sick: set[int] = field(default_factory=set)
    persons: set[int] = field(default_factory=set)
    decided: set[int] = field(default_factory=set)

    def operate(self, policy=POLICY):
        view = WorkerSnapshot(
            "w", 4, "t", dict(self.pods), {each.name: each for each in self.nodes.values()}, now=self.now
        )
        verdict = decide(view, policy)
        for each in verdict.actions:
            self.take(each)
        assert len(self.out()) <= policy.most
        return verdict

    def take(self, action):
        index = action.index
        was = self.nodes[index]
        match action:
            case DrainNode():
                assert index in self.sick
                assert not was.is_draining, "a drain was put over another"
                assert index not in self.decided, "an administrator was fought"
                drained = {"states": was.states | {"DRAIN"}, "reason": action.why, "reason_at": self.now}
                self.nodes[index] = replace(was, **drained, reason_by="slurm")
            case Resume():
                assert index not in self.persons, "a person's drain was undone"
                assert index not in self.sick, "a sick node came back"
                self.nodes[index] = replace(was, states=was.states - {"DRAIN"})
            case AnnotatePod():
                self.pods[index] = replace(self.pods[index], noted=action.noted, protected=action.protected)

    def out(self):
        return [n for n, each in self.nodes.items() if each.is_draining and n not in self.persons]

    def falls_sick(self, index):
        self.sick.add(index)
        self.report(index, bad(since=self.now))

    def gets_well(self, index):
        was = self.nodes[index].report
        last = ResolvedCheck("disk-full", self.now - 10, self.now, "full") if was and was.checks else was and was.last
        self.sick.discard(index)
        self.decided.discard(index)
        self.report(index, Report(self.now, last=last))

    def falls_silent(self, index):
        self.report(index, None)

    def report(self, index, said):
        self.nodes[index] = replace(self.nodes[index], report=said)

    def person_drains(self, index):
        self.persons.add(index)
        was = self.nodes[index]
        said = {"reason": "soperator: check disk-full: by hand", "reason_at": self.now, "reason_by": "root"}
        self.nodes[index] = replace(was, states=was.states | {"DRAIN"}, **said)

    def person_resumes(self, index):
        if self.nodes[index].is_draining:
            if index not in self.persons and index in self.sick and self.pods[index].noted:
                self.decided.add(index)
            self.persons.discard(index)
            was = self.nodes[index]
            self.nodes[index] = replace(was, states=was.states - {"DRAIN"})

    def passes(self, _):
        self.now += LASTING + 1

    def operates(self, _):
        self.operate()


EVENTS = st.sampled_from(
    ["falls_sick", "gets_well", "falls_silent", "person_drains", "person_resumes", "passes", "operates"]
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(EVENTS, st.integers(0, 3)), max_size=40))
def test_whatever_happens_no_person_is_fought_the_budget_holds_and_all_ends_well(events):
    """After any history, with every node well and nobody's drain left, all nodes are back, and then nothing is done any more."""
    town = Town()
    for what, index in events:
        getattr(town, what)(index)
    for index in range(4):
        town.gets_well(index)
        if index in town.persons:
            town.person_resumes(index)
    for _ in range(30):
        town.operate()
        town.now += 60
    assert town.out() == []
    assert town.operate().actions == ()
    assert all(each.noted == "" for each in town.pods.values())


@settings(max_examples=examples(50), deadline=None)
@given(st.sets(st.integers(0, 3), min_size=1), st.integers(0, 4))
def test_sick_nodes_are_drained_as_far_as_the_budget_goes_in_one_decision(sick, most):
    """No second look is needed."""
    town = Town()
    for index in sick:
        town.falls_sick(index)
    town.operate(replace(POLICY, most=most))
    assert len(town.out()) == min(len(sick), most)
