"""The keyed queue: never two workers per key, and no key lost."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from soperator.runtime.workqueue import (
    CALM,
    FIRST,
    LONGEST,
    Queue,
)
from tests.examples import examples

KEYS = st.sampled_from([("ns", name) for name in "abcd"])
A = ("ns", "a")


@dataclass
class FakeTimer:
    """A call that a FakeClock will make."""

    at: float
    call: Any
    live: bool = True

    def cancel(self) -> None:
        """Take it back."""
        self.live = False

    def when(self) -> float:
        """Return its time."""
        return self.at


@dataclass
class FakeClock:
    """Time that moves when told."""

    now: float = 0.0
    timers: list[FakeTimer] = field(default_factory=list)

    def time(self) -> float:
        """Return now."""
        return self.now

    def call_later(self, delay: float, callback: Any, key: Any) -> FakeTimer:
        """Schedule a call."""
        timer = FakeTimer(self.now + delay, lambda: callback(key))
        self.timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Move on, and make the calls that are due."""
        self.now += seconds
        due = [timer for timer in self.timers if timer.at <= self.now]
        self.timers = [timer for timer in self.timers if timer.at > self.now]
        for timer in due:
            if timer.live:
                timer.call()


class Workers(RuleBasedStateMachine):
    """Any order of events, passes, failures and time."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.queue = Queue(self.clock, lambda: 1.0)
        self.active: set[Any] = set()
        self.owed: set[Any] = set()

    @rule(key=KEYS)
    def event(self, key: Any) -> None:
        """Something happened to a key."""
        self.queue.add(key)
        self.owed.add(key)

    @rule(key=KEYS, seconds=st.floats(0, 600))
    def schedule(self, key: Any, seconds: float) -> None:
        """A key is wanted later."""
        self.queue.after(key, seconds)
        self.owed.add(key)

    @rule()
    def take(self) -> None:
        """A worker asks."""
        key = self.queue.take()
        if key is not None:
            assert key not in self.active, "two workers hold one key"
            self.active.add(key)
            self.owed.discard(key)

    @precondition(lambda self: self.active)
    @rule(data=st.data(), failed=st.booleans(), again=st.none() | st.floats(0, 100))
    def finish(self, data: Any, failed: bool, again: float | None) -> None:
        """A worker ends its pass."""
        key = data.draw(st.sampled_from(sorted(self.active)))
        self.active.discard(key)
        self.queue.done(key, failed=failed, again=again)
        if failed or again is not None:
            self.owed.add(key)

    @rule(seconds=st.floats(0, 400))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.clock.advance(seconds)

    @invariant()
    def counts_agree(self) -> None:
        """The queue knows what is being worked on."""
        assert self.queue.active == len(self.active)

    def teardown(self) -> None:
        """Every key that is owed a pass gets one in the end."""
        for key in [*self.active]:
            self.active.discard(key)
            self.queue.done(key)
        self.clock.advance(LONGEST * 3)
        while (key := self.queue.take()) is not None:
            self.queue.done(key)
            self.owed.discard(key)
        assert not self.owed, f"lost: {self.owed}"


TestWorkers = Workers.TestCase
TestWorkers.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)


def taken(queue: Queue) -> Any:
    """Take a key that must be there."""
    key = queue.take()
    assert key is not None
    return key


def test_fifty_events_are_one_pass() -> None:
    """Events on a key that is being worked on add up to a single further pass."""
    queue = Queue(FakeClock())
    queue.add(A)
    taken(queue)
    for _ in range(50):
        queue.add(A)
    assert queue.take() is None
    queue.done(A)
    assert taken(queue) == A
    queue.done(A)
    assert queue.take() is None


def test_failures_wait_twice_as_long_each_time() -> None:
    """The back-off doubles from half a second to five minutes and a success resets it."""
    clock = FakeClock()
    queue = Queue(clock, lambda: 1.0)
    waits = []
    queue.add(A)
    for _ in range(12):
        taken(queue)
        queue.done(A, failed=True)
        waits.append(clock.timers[-1].at - clock.now)
        clock.advance(LONGEST)
    assert waits == [pytest.approx(min(LONGEST, FIRST * 2**n)) for n in range(12)]
    taken(queue)
    queue.done(A)
    assert queue.failures(A) == 0


def test_an_event_during_a_failing_pass_shortens_the_wait_to_five_seconds_and_does_not_skip_it() -> None:
    """A failing pass that wakes itself does not spin."""
    clock = FakeClock()
    queue = Queue(clock, lambda: 1.0)
    queue.add(A)
    for _ in range(8):
        taken(queue)
        queue.add(A)
        queue.done(A, failed=True)
        wait = min(CALM, FIRST * 2.0 ** (queue.failures(A) - 1))
        clock.advance(wait * 0.9)
        assert queue.take() is None
        clock.advance(wait * 0.2)


def test_an_event_does_not_wait_for_the_timer() -> None:
    """An event makes a key ready at once, and its timer is gone when the pass begins."""
    clock = FakeClock()
    queue = Queue(clock)
    queue.after(A, 60)
    queue.add(A)
    taken(queue)
    assert queue.waiting == 0
    queue.done(A)
    clock.advance(120)
    assert queue.take() is None


def test_the_earlier_of_two_timers_wins() -> None:
    """A later wish never postpones an earlier one."""
    clock = FakeClock()
    queue = Queue(clock)
    queue.after(A, 10)
    queue.after(A, 60)
    clock.advance(10)
    assert queue.take() == A


def test_keys_come_in_the_order_of_their_events() -> None:
    """No key overtakes another."""
    queue = Queue(FakeClock())
    for name in "cab":
        queue.add(("ns", name))
    assert [taken(queue)[1] for _ in range(3)] == ["c", "a", "b"]


async def test_closing_wakes_every_worker() -> None:
    """Workers that wait for a key are told that there will be none, and ready keys stay."""
    queue = Queue()
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.close()
    assert await asyncio.gather(*workers) == [None, None, None]
    queue.add(A)
    assert await queue.get() is None


def test_what_wakes_a_resting_key_wakes_it_once_and_later() -> None:
    """Events during the rest are one pass at its end; a key that has rested comes at once."""
    clock = FakeClock()
    queue = Queue(clock)
    queue.add(A)
    assert queue.take() == A
    queue.add(A)
    queue.done(A, rest=2.0)
    queue.add(A)
    clock.advance(1.9)
    assert queue.take() is None
    clock.advance(0.1)
    assert queue.take() == A
    queue.done(A, rest=1.0)
    clock.advance(1.0)
    queue.add(A)
    assert queue.take() == A


@pytest.mark.looptime
async def test_the_echo_of_a_failing_pass_s_own_status_does_not_skip_the_back_off() -> None:
    """A refusal that names a port is another sentence each time; each is written to the status, whose event comes after the pass."""
    queue, tries = Queue(chance=lambda: 1.0), 0
    queue.add(A)
    clock = asyncio.get_running_loop().time
    end = clock() + 60.0
    while clock() < end:
        if queue.take() == A:
            tries += 1
            if tries % 2:
                queue.add(A)  # it may also come while the pass still runs
            queue.done(A, failed=True, rest=0.02)
            queue.add(A)
        await asyncio.sleep(0.05)
    assert tries <= 16


def test_an_event_brings_a_failing_key_back_within_five_seconds() -> None:
    """A person who corrects a spec does not wait for a back-off that has grown to minutes."""
    clock = FakeClock()
    queue = Queue(clock, lambda: 1.0)
    queue.add(A)
    for _ in range(12):
        taken(queue)
        queue.done(A, failed=True)
        clock.advance(LONGEST)
    taken(queue)
    queue.done(A, failed=True)
    queue.add(A)
    clock.advance(5.1)
    assert taken(queue) == A
