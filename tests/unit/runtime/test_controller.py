"""Passes: how each ending is handled, and what is said."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
import structlog

from soperator.kube.errors import TooBusy
from soperator.runtime.cache.store import Key
from soperator.runtime.controller import LONGEST_REST, REST, Controller, PassOutcome, PermanentError, TransientError
from soperator.runtime.metrics import OperatorMetrics

pytestmark = pytest.mark.looptime
A: Key = ("ns", "a")


def script(*steps: PassOutcome | Exception) -> tuple[Callable[[Key], Awaitable[PassOutcome]], list[float]]:
    """Return a reconcile that ends as told, then says `still`, and the times of its passes."""
    times: list[float] = []

    async def reconcile(_: Key) -> PassOutcome:
        times.append(asyncio.get_running_loop().time())
        step = steps[len(times) - 1] if len(times) <= len(steps) else PassOutcome("still")
        if isinstance(step, Exception):
            raise step
        return step

    return reconcile, times


async def run_for(controller: Controller, seconds: float) -> None:
    """Run a controller for so long, with one key added."""
    controller.queue.add(A)
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(seconds)
    controller.queue.close()
    await task


async def test_a_pass_comes_again_when_it_said() -> None:
    """The outcome's `again` is when the next pass begins."""
    reconcile, times = script(PassOutcome("one", requeue_after=30), PassOutcome("two"))
    await run_for(Controller("c", reconcile), 100)
    assert times == [pytest.approx(0), pytest.approx(30)]


async def test_a_failed_pass_comes_again_by_itself() -> None:
    """Unexpected exceptions and Retry are tried again with back-off."""
    reconcile, times = script(RuntimeError("boom"), TransientError("not yet"))
    await run_for(Controller("c", reconcile), 10)
    assert len(times) == 3


async def test_a_terminal_failure_comes_again_after_minutes_or_with_a_change() -> None:
    """What refused may be an admission policy, which its author mends without touching anything of ours."""
    reconcile, times = script(PermanentError("spec.size: must be positive"), PermanentError("policy says no"))
    controller = Controller("c", reconcile)
    asyncio.get_running_loop().call_later(100, controller.queue.add, A)
    await run_for(controller, 1000)
    assert times == [pytest.approx(0), pytest.approx(100), pytest.approx(400)]


async def test_retry_after_is_the_least_wait() -> None:
    """A pass that ran into 429 comes again no sooner than the server asked."""
    reconcile, times = script(TooBusy(429, "TooManyRequests", "later", retry_after=40.0))
    await run_for(Controller("c", reconcile), 100)
    assert times[1] == pytest.approx(40)


async def test_a_pass_that_hangs_is_stopped() -> None:
    """A pass may take 300 s; after that it counts as failed and other passes go on."""
    calls = 0

    async def reconcile(_: Key) -> PassOutcome:
        nonlocal calls
        calls += 1
        await asyncio.sleep(10_000 if calls == 1 else 0)
        return PassOutcome("done")

    with structlog.testing.capture_logs() as logs:
        await run_for(Controller("c", reconcile), 400)
    assert [log["event"] for log in logs] == ["the pass was stopped after 300 s", "done"]


async def test_a_sentence_is_logged_once() -> None:
    """A pass that says what it said before is silent."""
    reconcile, times = script(*[PassOutcome("all is well", requeue_after=1)] * 5, PassOutcome("a worker is missing"))
    with structlog.testing.capture_logs() as logs:
        await run_for(Controller("c", reconcile), 60)
    assert len(times) == 6
    assert [log["event"] for log in logs] == ["all is well", "a worker is missing"]


async def test_errors_are_told_to_the_object() -> None:
    """`tell` gets the key and the error, and its own failure does not matter."""
    told: list[str] = []

    async def tell(key: Key, error: Exception) -> None:
        told.append(f"{key[1]}: {error}")
        raise RuntimeError("the status cannot be written either")

    reconcile, times = script(TransientError("first"), TransientError("second"))
    await run_for(Controller("c", reconcile, tell=tell), 20)
    assert told == ["a: first", "a: second"]
    assert len(times) == 3


async def test_closing_lets_running_passes_end() -> None:
    """After the queue is closed, a pass that runs ends, and no other begins."""
    ended: list[Key] = []

    async def reconcile(key: Key) -> PassOutcome:
        await asyncio.sleep(5)
        ended.append(key)
        return PassOutcome("done")

    controller = Controller("c", reconcile, workers=1)
    controller.queue.add(A)
    controller.queue.add(("ns", "b"))
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(1)
    controller.queue.close()
    await task
    assert ended == [A]


async def test_passes_are_counted_by_result() -> None:
    """The metrics tell successes, failures and terminal failures apart."""
    metrics = OperatorMetrics()
    reconcile, _ = script(TransientError("x"), PermanentError("y"))
    await run_for(Controller("c", reconcile, metrics=metrics), 20)
    read = metrics.registry.get_sample_value
    assert read("soperator_passes_total", {"controller": "c", "result": "failed"}) == 1
    assert read("soperator_passes_total", {"controller": "c", "result": "terminal"}) == 1
    assert read("soperator_pass_seconds_count", {"controller": "c"}) == 2


async def test_a_pass_that_keeps_the_processor_busy_rests() -> None:
    """Events do not bring a long pass again before it has rested, at most so long; they are not lost."""
    times: list[float] = []

    async def reconcile(_: Key) -> PassOutcome:
        times.append(asyncio.get_running_loop().time())
        until = time.thread_time() + LONGEST_REST / REST
        while time.thread_time() < until:
            pass
        return PassOutcome("")

    controller = Controller("test", reconcile)
    task = asyncio.create_task(run_for(controller, 1.5))
    await asyncio.sleep(0.1)
    controller.queue.add(A)
    await task
    assert times == [0.0, pytest.approx(LONGEST_REST)]
