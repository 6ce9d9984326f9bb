"""The policy over keys, case by case, and against daemons that are told one after the other and interrupted anywhere."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soperator.policy.cluster.key_rotation import (
    LIFE,
    SKEW,
    RotationSnapshot,
    RotationStep,
    decide,
)
from soperator.reconcile.keys.key_rotation import RotationAnswers
from soperator.slurm.keys import RotationRecord, known, rotated
from tests.examples import examples

QUIET = RotationSnapshot("slurm", "", RotationRecord(), "", "", 1000.0)


def at(stage, request="b", **seen):
    """A rotation at a stage, with the key of REST made."""
    return replace(QUIET, request=request, record=RotationRecord("b", stage, 1000.0), rest="b", **seen)


class TestDecide:
    """One situation, one answer."""

    @pytest.mark.parametrize("request_", ["", "a"])
    def test_nothing_is_done_without_a_new_request(self, request_):
        """Neither without a word nor with the one that was carried out."""
        assert decide(replace(QUIET, request=request_, record=RotationRecord("a"))) == RotationStep()

    def test_a_new_word_begins_a_rotation(self):
        """The new key is made known first; munge's only laid ready."""
        assert decide(replace(QUIET, request="b", record=RotationRecord("a"))).note == RotationRecord("b", "Known")
        assert decide(replace(QUIET, kind="munge", request="b")).note == RotationRecord("b", "Laid")

    @pytest.mark.parametrize("stage", ["Known", "Signing", "Alone"])
    def test_a_stage_is_left_when_every_daemon_is_so_far(self, stage):
        """One that is not so far is named, and waited for."""
        step = decide(at(stage, waits="1 of 2 are so far; pod w-1 does not answer"))
        assert step.note is None
        assert step.why.endswith("1 of 2 are so far; pod w-1 does not answer")
        assert decide(at(stage)).note is not None

    def test_rest_gets_its_key_before_the_stage_in_which_it_changes_is_left(self):
        """The key of REST changes with the one that signs, and only once."""
        assert decide(replace(at("Signing"), rest="a")).make_rest
        assert decide(at("Signing")) == RotationStep(
            RotationRecord("b", "Settling", 1000.0), why=decide(at("Signing")).why
        )

    def test_the_former_key_stays_until_what_it_signed_has_expired(self):
        """Its time counts from the moment when nobody signed with it any more, and no time of day shortens or lengthens it."""
        for now in (1000, 5000, -5000):
            assert decide(at("Settling", now=now, lasted=LIFE)).note is None
            assert decide(at("Settling", now=now, lasted=LIFE + SKEW)).note == RotationRecord("b", "Alone")

    def test_a_daemon_that_came_late_begins_the_time_anew(self):
        """It may have signed with the former key a moment ago."""
        assert decide(at("Settling", waits="w-9", lasted=200.0)).note is None
        answers = RotationAnswers(taken={"w-9": 1110.0})
        record = at("Settling").record
        assert [answers.lasted(record, now) for now in (1120.0, 1199.0)] == [0.0, 79.0]
        answers.taken["w-8"] = 1150.0
        assert answers.lasted(record, 1199.0) == 49.0

    @pytest.mark.parametrize("request_", ["", "c"])
    def test_what_has_begun_is_finished(self, request_):
        """A request that was withdrawn, or followed by another, half-way."""
        assert decide(at("Known", request_)).note == RotationRecord("b", "Signing")
        assert decide(at("Alone", request_)).note == RotationRecord("b")

    def test_a_stage_of_the_other_kind_is_told_and_left_alone(self):
        """Nobody knows what such a Secret holds."""
        assert decide(at("Laid")) == RotationStep(
            why="rotation b is at stage Laid, which auth.type slurm does not have"
        )


@dataclass
class Daemon:
    """One that signs with its first key, and believes all that it has."""

    keys: dict[str, bytes]
    read: int
    took: float = 0.0

    @property
    def signs(self):
        return next(iter(self.keys))


@dataclass
class World:
    """A Secret with its versions, daemons that have read one of them, and what they have signed."""

    content: dict[str, bytes] = field(default_factory=lambda: {"slurm.key": b"a" * 32})
    record: RotationRecord = field(default_factory=RotationRecord)
    rest: str = ""
    versions: list[dict[str, bytes]] = field(default_factory=list)
    daemons: dict[int, Daemon] = field(default_factory=dict)
    tokens: list[tuple[str, float]] = field(default_factory=list)
    now: float = 0.0
    #: How wrong the operator's clock is.
    off: float = 0.0
    answers: RotationAnswers = field(default_factory=RotationAnswers)
    reported: set[int] = field(default_factory=set)

    def start(self, name, behind=0):
        """A pod starts with what its Node has, which may be the version before the newest."""
        number = max(0, len(self.versions) - 1 - behind)
        self.daemons[name] = Daemon(dict(known(self.versions[number])), number)

    def newest(self):
        return len(self.versions) - 1

    def tell(self, name):
        """The operator's command in the daemon's container."""
        if self.daemons[name].read != self.newest():
            self.daemons[name] = Daemon(dict(known(self.content)), self.newest(), self.now)

    def sign(self):
        """Everybody signs something now; what has expired is forgotten."""
        self.tokens = [each for each in self.tokens if each[1] > self.now]
        self.tokens += [(each.signs, self.now + LIFE) for each in self.daemons.values()]

    def step(self, request):
        """One pass of an operator that knows only what is noted."""
        behind = [name for name, each in self.daemons.items() if each.read != self.newest()]
        waits = "" if not behind or not self.record.stage else str(behind)
        self.answers.taken.update({str(name): each.took for name, each in self.daemons.items()})
        lasted = 0.0 if waits else self.answers.lasted(self.record, self.now)
        step = decide(RotationSnapshot("slurm", request, self.record, self.rest, waits, self.now + self.off, lasted))
        if step.make_rest:
            self.rest = self.record.request
        if step.note is not None:
            self.content = rotated(self.content, step.note, step.note.request.encode() * 32)
            self.record = step.note
            if step.note.stage in ("Known", "Signing", "Alone") and self.content != self.versions[-1]:
                self.versions.append(self.content)
        return behind

    def check(self):
        """What anybody signed, everybody believes."""
        for each in self.daemons.values():
            assert {kid for kid, _ in self.tokens} <= set(each.keys)


EVENTS = st.lists(
    st.one_of(
        st.just(("pass",)),
        st.just(("round",)),
        st.tuples(st.just("tell"), st.integers(0, 3)),
        st.tuples(st.just("start"), st.integers(0, 5), st.booleans()),
        st.tuples(st.just("wait"), st.floats(1, 60)),
        st.tuples(st.just("another operator"), st.floats(-9999, 9999)),
    ),
    max_size=40,
)


def happen(world, event):
    """One thing of all that may happen at any time."""
    match event:
        case ("pass",):
            world.step("b")
        case ("round",):
            for name in world.step("b"):
                world.tell(name)
        case ("tell", name):
            world.tell(name)
        case ("start", name, stale):
            fresh = all(each.read == world.newest() for each in world.daemons.values())
            world.start(name, behind=1 if stale and (not fresh or world.record.stage == "Settling") else 0)
        case ("another operator", off):
            world.answers, world.off = RotationAnswers(), off
        case ("wait", seconds):
            world.now += seconds
    world.sign()
    world.check()


@settings(max_examples=examples(200), deadline=None)
@given(EVENTS, st.floats(1, 40), st.floats(0, 100))
def test_what_one_signs_all_believe_whenever_it_is_interrupted(events, pace, late):
    """Passes, commands, new pods with stale files and time in any order: no token is ever refused, and in the end one key is left."""
    world = World()
    world.versions.append(world.content)
    for name in range(4):
        world.start(name)
    for event in events:
        happen(world, event)
    while world.record != RotationRecord("b"):
        happen(world, ("round",))
        happen(world, ("wait", pace))
        entered = world.answers.entered.get(world.record)
        if world.record.stage == "Settling" and late and entered is not None and world.now > entered + late:
            happen(world, ("start", 7, True))
            late = 0
        assert world.now < 4000
    assert world.rest == "b"
    assert {tuple(each.keys) for each in world.daemons.values()} == {("b",)}
