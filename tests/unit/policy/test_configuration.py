"""The policy over Slurm's configuration, case by case and against a simulated slurmctld, with an operator that is killed anywhere."""

import itertools
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soperator.policy.cluster import slurm_config
from soperator.policy.cluster.config_invariants import violation
from soperator.policy.cluster.slurm_config import (
    AGAIN,
    FALLEN,
    PATIENCE,
    TRIES,
    ConfigProgress,
    ConfigSnapshot,
    ConfigStep,
    LoginGeneration,
    Trial,
    Unanswered,
    has_read,
    pause,
)
from soperator.slurm.settings.state import ConfigState, read_state
from tests.examples import examples

GOOD = ConfigState("a", "a", 0, "a", 0)
SEEN = ConfigSnapshot("a", GOOD, 100)
WRITTEN = replace(GOOD, generation="b", since=100, asked="")


def decide(seen):
    """The step of the policy, which keeps the invariants of the transaction in every test here."""
    step = slurm_config.decide(seen)
    assert violation(seen, step) == ""
    return step


@pytest.mark.parametrize(
    ("seen", "step", "words"),
    [
        (
            SEEN,
            ConfigStep("write", replace(GOOD, generation="b")),
            "generation b would replace another without a trial",
        ),
        (
            ConfigSnapshot("b", ConfigState(), 7, has_run=True),
            ConfigStep("write", ConfigState("b")),
            "generation b would replace another without a trial",
        ),
        (
            replace(SEEN, state=replace(GOOD, refused="b"), trial=Trial("passed")),
            ConfigStep("write", replace(GOOD, generation="b")),
            "generation b would be written, although slurmctld exited with it",
        ),
        (SEEN, ConfigStep("restore", replace(GOOD, generation="c")), "generation c would be restored"),
        (SEEN, ConfigStep("note", replace(GOOD, good="b")), "generation b would count as good"),
        (
            replace(SEEN, trial=Trial("passed")),
            ConfigStep("write", ConfigState("b", "b")),
            "the last good generation a would be forgotten",
        ),
    ],
)
def test_a_step_that_would_do_harm_is_named(seen, step, words):
    """Whatever decided it: the operator then writes nothing."""
    assert violation(seen, step).startswith(words)


def act(seen):
    return decide(seen).act


class TestDecide:
    """One situation, one answer."""

    def test_what_is_wanted_and_read_needs_nothing(self):
        """No trial, no request, no sentence."""
        assert decide(SEEN).act == "rest"
        assert decide(SEEN).why == ""

    def test_the_first_configuration_is_written_without_a_trial(self):
        """Nothing runs that it could harm, and its daemons read it as they start; a correction of one that never ran is no different."""
        for state in (ConfigState(), ConfigState("x", asked="x")):
            step = decide(ConfigSnapshot("a", state, 7, fixed="ports"))
            assert (step.act, step.state) == ("write", ConfigState("a", "", 7, "a", 7, fixed="ports"))

    def test_another_one_is_tried_first(self):
        """A trial is made, waited for, made anew when it was lost, and only a pass writes."""
        asked = replace(SEEN, wanted="b")
        trials = (None, Trial(""), Trial("lost", "its Node is gone"), Trial("refused", "no such key"), Trial("passed"))
        assert [act(replace(asked, trial=each)) for each in trials] == ["try", "rest", "drop", "rest", "write"]
        refused = decide(replace(asked, trial=Trial("refused", "no such key")))
        assert (refused.reason, "no such key" in refused.why) == ("Refused", True)

    def test_what_is_written_keeps_the_name_of_the_last_good_one(self):
        """It is what a roll-back restores."""
        step = decide(replace(SEEN, wanted="b", trial=Trial("passed")))
        assert (step.state.generation, step.state.good, step.state.asked) == ("b", "a", "")

    def test_slurmctld_is_asked_only_when_its_pod_sees_the_files(self):
        """Before that the kubelet is nudged; after it slurmctld is asked once, and its word ends the change."""
        seen = ConfigSnapshot("b", WRITTEN, 101)
        assert act(replace(seen, heard=ConfigProgress("a", "a"))) == "nudge"
        step = decide(replace(seen, heard=ConfigProgress("b", "a")))
        assert (step.act, step.state.asked, step.state.asked_at) == ("ask", "b", 101)
        waits = replace(seen, state=step.state, heard=ConfigProgress("b", "a"))
        assert act(waits) == "rest"
        done = decide(replace(waits, heard=ConfigProgress("b", "b")))
        assert (done.act, done.state.good) == ("note", "b")

    def test_a_slurmctld_that_started_with_it_is_still_told_to_hand_it_out(self):
        """The other daemons have not heard of it."""
        assert act(ConfigSnapshot("b", WRITTEN, 101, heard=ConfigProgress("b", "b"))) == "ask"

    def test_one_that_does_not_come_back_gets_the_former_files(self):
        """After its time, with the words with which it ended; the refused one is remembered."""
        seen = ConfigSnapshot("b", replace(WRITTEN, asked="b", asked_at=102), 103, fallen="boom")
        assert act(seen) == "rest"
        step = decide(replace(seen, now=102 + FALLEN))
        assert step.act == "restore"
        assert (step.state.generation, step.state.good, step.state.refused, step.state.refusal) == (
            "a",
            "a",
            "b",
            "boom",
        )
        again = decide(ConfigSnapshot("b", replace(step.state, asked="a"), 500))
        assert (again.act, again.reason) == ("rest", "RolledBack")
        assert "boom" in again.why
        assert act(ConfigSnapshot("c", replace(step.state, asked="a"), 500)) == "try"

    def test_a_first_configuration_that_runs_already_is_good_before_another_is_tried(self):
        """An edit in the first seconds of a cluster is a change like any other."""
        begun = ConfigState("a", asked="a")
        assert act(ConfigSnapshot("b", begun, 9, heard=ConfigProgress("a", "a"))) == "note"
        assert act(ConfigSnapshot("b", begun, 9, heard=ConfigProgress("b", "a"))) == "note"

    @pytest.mark.parametrize("heard", [None, ConfigProgress("", ""), ConfigProgress("a", "a"), ConfigProgress("b", "")])
    def test_nothing_is_taken_back_without_a_sign(self, heard):
        """A slurmctld whose Node is silent, or that was never asked, is no sign, however long it takes."""
        assert act(ConfigSnapshot("b", WRITTEN, 9999, heard=heard)) in ("rest", "nudge")

    def test_one_that_was_asked_and_keeps_the_former_is_a_sign(self):
        """So is one that does not answer any more."""
        asked = ConfigSnapshot("b", replace(WRITTEN, asked="b", asked_at=101), 101 + PATIENCE)
        assert [act(replace(asked, heard=each)) for each in (ConfigProgress("b", "a"), ConfigProgress("b", ""))] == [
            "restore"
        ] * 2

    def test_a_pod_that_waits_to_be_restarted_is_replaced_after_a_roll_back(self):
        """The kubelet would wait for minutes; one that has fallen with the former files too is left to it."""
        seen = ConfigSnapshot("a", replace(GOOD, asked="", since=100), 101, fallen="boom", is_fallen_new=False)
        assert act(seen) == "revive"
        assert act(replace(seen, is_fallen_new=True)) == "rest"

    def test_daemons_that_have_not_read_it_are_asked_again_some_times(self):
        """Then they are told."""
        seen = replace(SEEN, behind=["w-1"], now=AGAIN)
        assert act(replace(seen, now=1)) == "rest"
        assert act(seen) == "ask"
        last = decide(replace(seen, state=replace(GOOD, tries=TRIES)))
        assert (last.act, last.reason) == ("rest", "Behind")
        assert "w-1" in last.why

    def test_a_daemon_has_read_what_was_handed_out_before_it_began(self):
        """Times are told by the second."""
        state = replace(GOOD, asked_at=100.9)
        assert [has_read(each, state) for each in (0.0, 98, 99, 100, 500)] == [True, False, True, True, True]

    def test_who_does_not_say_what_it_has_is_asked_ever_more_seldom(self):
        """At once, a second later, then at times that grow, and in the end every five minutes; who has it is not asked at all."""
        state, asked, now = replace(GOOD, asked_at=1000.0), [], 1000.0
        said = LoginGeneration()
        while now < 5000:
            if said.is_due(state, now):
                asked.append(now - state.asked_at)
                said = LoginGeneration("", now)
            now += pause(state, now) / 4
        assert asked[:2] == [0, 1]
        assert len(asked) < 30
        assert max(late - early for early, late in itertools.pairwise(asked)) < 400
        assert not LoginGeneration("a", 0).is_due(state, now)

    def test_a_slurmctld_that_does_not_answer_is_queried_ever_more_seldom(self):
        """At once, after a second, then after as long as it has not answered, in the end every five minutes."""
        now, asked, last = 100.0, [0.0], Unanswered("", 100.0, 100.0)
        while len(asked) < 14:
            now += last.wait(now)
            assert last.wait(now) == 0.0
            last = Unanswered("", last.since, now)
            asked.append(now - last.since)
        assert asked == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 812, 1112, 1412]


@given(
    st.builds(ConfigState, *[st.text(max_size=4), st.text(max_size=4), st.floats(0, 9), st.text(max_size=4)]), st.text()
)
def test_what_is_written_is_read_back_and_nonsense_is_nothing(state, nonsense):
    """The annotation may have been edited by hand."""
    assert read_state(state.text()) == state
    assert isinstance(read_state(nonsense), ConfigState)


@dataclass
class World:
    """The ConfigMap with its state, slurmctld and the trial. Names that begin with r are refused by any slurmctld, with k by the real one."""

    state: ConfigState = field(default_factory=ConfigState)
    wanted: str = "a"
    now: float = 0
    trial: str = ""
    mounted: str = ""
    running: str = ""
    fallen: str = ""
    born: float = 0
    kept: set[str] = field(default_factory=set)

    def starts(self):
        self.running, self.fallen = (self.mounted, "") if self.mounted[:1] not in "rk" else ("", "boom")

    def look(self):
        trial = None
        if self.trial == self.wanted:
            trial = Trial("refused" if self.trial[:1] == "r" else "passed")
        heard = None if self.fallen else ConfigProgress(self.mounted, self.running)
        return ConfigSnapshot(
            self.wanted,
            self.state,
            self.now,
            trial=trial,
            heard=heard,
            fallen=self.fallen,
            is_fallen_new=self.born >= self.state.since,
        )

    def step(self, killed):
        """Act as the operator does, or as one that is killed before it has written what it did."""
        seen = self.look()
        step = decide(seen)
        if step.act == "write":
            self.kept.add(seen.wanted)
            assert not self.state.good or (seen.trial and seen.trial.end == "passed")
        if step.act == "restore":
            assert self.state.good in self.kept
        if step.act in ("write", "restore", "note") and not killed:
            self.state = step.state
        if step.act == "ask":
            self.starts()
            self.state = self.state if killed else step.state
        if step.act == "try":
            self.trial = self.wanted
        if step.act == "nudge":
            self.mounted = self.state.generation
        if step.act == "revive":
            self.mounted, self.born = self.state.generation, self.now
            self.starts()
        assert not self.state.good or self.state.good[0] not in "rk"

    def event(self, what):
        if what == "kubelet":
            self.mounted = self.state.generation
        if what == "crash" and self.mounted:
            self.starts()
        if what in ("a", "b", "c", "r", "k"):
            self.wanted = what


EVENTS = st.sampled_from(["step", "killed", "kubelet", "crash", "wait", "a", "b", "c", "r", "k"])


@given(st.lists(EVENTS, max_size=60), st.sampled_from("abcrk"))
@settings(max_examples=examples(400), deadline=None)
def test_whatever_happens_slurmctld_ends_with_what_is_wanted_or_the_last_good_one(events, last):
    """Through kills of the operator, crashes and edits at any point; a configuration that slurmctld refuses is never called good."""
    world = World()
    for what in events:
        world.now += PATIENCE if what == "wait" else 1
        world.event(what)
        if what in ("step", "killed"):
            world.step(what == "killed")
    was_good = world.state.good
    world.wanted = last
    for _ in range(30):
        for _ in range(4):
            world.now += 1
            world.step(killed=False)
        world.now += PATIENCE
        world.event("kubelet")
        if world.fallen or not world.running:
            world.starts()
    if last in "rk":
        assert world.state.good != last
        assert not was_good or world.running == world.state.generation == world.state.good
    else:
        assert (world.running, world.state.generation, world.state.good) == (last, last, last)


class TestAClockThatWasAhead:
    """An operator on another machine wrote when the files were written, and told; its clock was a day ahead, and the present one is right."""

    LATER = 86400.0
    NEW = ConfigState("b", "a", since=LATER, asked="b", asked_at=LATER)

    def test_a_slurmctld_that_ended_gets_its_former_files_at_once(self):
        """And not in a day."""
        step = decide(ConfigSnapshot("b", self.NEW, 60.0, fallen="fatal: bad line"))
        assert (step.act, step.state.generation, step.state.since) == ("restore", "a", 60.0)

    def test_a_slurmctld_that_runs_with_others_is_told_once_more_and_has_its_time(self):
        """From then on the times are right."""
        heard = ConfigProgress(mounted="b", running="a")
        step = decide(ConfigSnapshot("b", self.NEW, 60.0, heard=heard))
        assert (step.act, step.state.since, step.state.asked_at) == ("ask", 60.0, 60.0)
        assert decide(ConfigSnapshot("b", step.state, 62.0, heard=heard)).act == "rest"
        assert decide(ConfigSnapshot("b", step.state, 95.0, heard=heard)).act == "restore"

    def test_a_daemon_that_is_behind_is_asked_again(self):
        """It is not waited for until tomorrow."""
        state = ConfigState("b", "b", since=self.LATER, asked="b", asked_at=self.LATER)
        assert decide(ConfigSnapshot("b", state, 60.0, behind=("worker-0",))).act == "ask"
