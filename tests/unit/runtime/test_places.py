"""A namespace whose passes hang leaves places to the others."""

import asyncio

import pytest

from soperator.runtime.controller import Controller, PassOutcome
from soperator.runtime.workqueue import Queue

pytestmark = pytest.mark.looptime


async def test_passes_of_other_namespaces_go_on_while_those_of_one_hang():
    """Twenty NodeSets of a namespace whose slurmrestd never ends its answers, and one of another, which is not kept waiting."""
    done, queue = [], Queue(most=4)
    clock = asyncio.get_running_loop().time

    async def reconcile(key):
        if key[0] == "bad":
            await asyncio.sleep(280.0)
        done.append((key[0], clock()))
        return PassOutcome("done")

    running = asyncio.create_task(Controller("nodeset", reconcile, queue, 8).run())
    for number in range(20):
        queue.add(("bad", f"w-{number}"))
    for number in range(10):
        await asyncio.sleep(20.0)
        queue.add(("good", "w"))
        await asyncio.sleep(1.0)
        assert len([each for each in done if each[0] == "good"]) == number + 1
    queue.close()
    await running


async def test_namespaces_that_hang_in_all_places_give_them_up():
    """A pass that has lasted for seconds waits for somebody, and another one begins beside it; when it ends, there are as many places as before."""
    done, queue, now = [], Queue(most=4), []
    clock = asyncio.get_running_loop().time

    async def reconcile(key):
        now.append(key)
        if key[0].startswith("bad"):
            await asyncio.sleep(280.0)
        else:
            await asyncio.sleep(1.0)
        most = len(now)
        now.remove(key)
        done.append((key[0], clock(), most))
        return PassOutcome("done")

    controller = Controller("nodeset", reconcile, queue, 8)
    running = asyncio.create_task(controller.run())
    for number in range(40):
        queue.add((f"bad-{number % 2}", f"w-{number}"))
    for number in range(10):
        queue.add(("good", "w"))
        await asyncio.sleep(20.0)
        assert len([each for each in done if each[0] == "good"]) == number + 1
    await asyncio.sleep(2000.0)
    assert len(done) == 50
    for number in range(20):
        queue.add((f"good-{number}", "w"))
    await asyncio.sleep(5.0)
    assert max(most for _, _, most in done[50:]) == 8
    queue.close()
    await running


async def test_not_more_than_so_many_passes_wait_at_once():
    """However many namespaces hang."""
    now, queue = [], Queue(most=4)

    async def reconcile(key):
        now.append(key)
        await asyncio.sleep(1000.0)
        return PassOutcome("done")

    running = asyncio.create_task(Controller("nodeset", reconcile, queue, 8).run())
    for number in range(400):
        queue.add((f"bad-{number}", "w"))
    await asyncio.sleep(290.0)
    assert len(now) == 64
    queue.close()
    await running


async def test_a_namespace_that_is_alone_has_its_places_all_the_time():
    """Whose pass ends makes way for the next at once; none is forgotten."""
    now, most, done, queue = 0, 0, [], Queue(most=4)

    async def reconcile(key):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(1.0)
        now -= 1
        done.append(key)
        return PassOutcome("done")

    running = asyncio.create_task(Controller("nodeset", reconcile, queue, 8).run())
    for number in range(20):
        queue.add(("one", f"w-{number}"))
    await asyncio.sleep(5.5)
    assert (len(done), most) == (20, 4)
    queue.close()
    await running
