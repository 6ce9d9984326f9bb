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
