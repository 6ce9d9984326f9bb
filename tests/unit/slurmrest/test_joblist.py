"""The list of jobs is one for all who need it, and nobody waits for it for long."""

import asyncio

import pytest

from soperator.slurmrest.errors import SlurmError
from soperator.slurmrest.joblist import KEPT, PATIENCE, PAUSE, JobList, JobQueue

pytestmark = pytest.mark.looptime


class Slow:
    """slurmrestd that needs so many seconds for a list, and then fails with `error`, if there is one."""

    def __init__(self, seconds, error=None):
        self.seconds, self.error, self.asked = seconds, error, []

    async def __call__(self):
        self.asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.seconds)
        if self.error:
            raise SlurmError(self.error)
        return JobQueue()


async def test_all_who_ask_together_get_one_list():
    """Fifty NodeSets and checks ask slurmrestd once."""
    slow = Slow(2.0)
    jobs = JobList(slow)
    first, *others = await asyncio.gather(*(jobs.get() for _ in range(50)))
    assert all(each is first for each in others)
    assert await jobs.get() is first
    assert len(slow.asked) == 1


async def test_a_list_serves_for_some_seconds_and_then_is_forgotten():
    """Whoever asks later gets a new one, and in between no memory is held."""
    slow = Slow(1.0)
    jobs = JobList(slow)
    first = await jobs.get()
    await asyncio.sleep(KEPT + 1)
    assert jobs._known is None
    assert await jobs.get() is not first


async def test_nobody_waits_for_a_long_list_longer_than_a_few_seconds():
    """The passes of other clusters need the place; whoever comes again finds the list."""
    slow = Slow(60.0)
    jobs = JobList(slow)
    clock = asyncio.get_running_loop().time
    began = clock()
    with pytest.raises(SlurmError, match="not arrived yet"):
        await jobs.get()
    assert clock() - began == pytest.approx(PATIENCE)
    await asyncio.sleep(58.0)
    await jobs.get()
    assert len(slow.asked) == 1


async def test_whoever_needs_a_list_from_now_on_does_not_get_an_older_one():
    """A job that was submitted a moment ago is not in a list that was asked for before; all who wait so share the next one."""
    slow = Slow(1.0)
    jobs = JobList(slow)
    old = asyncio.create_task(jobs.get())
    await asyncio.sleep(0.5)
    since = asyncio.get_running_loop().time()
    found = await asyncio.gather(*(jobs.get(since) for _ in range(3)))
    assert len(slow.asked) == 2
    assert len({id(await old), *map(id, found)}) == 2
    assert slow.asked[1] >= since


async def test_a_failure_that_came_at_once_is_tried_again_at_once_and_a_slow_one_is_not():
    """A slurmrestd that is being replaced comes back within seconds; one that cannot finish its list is let alone for a while."""
    for slow, asked in ((Slow(0.0, "refused"), 2), (Slow(PATIENCE + 1, "ran out"), 1)):
        jobs = JobList(slow)
        for _ in range(2):
            with pytest.raises(SlurmError):
                await jobs.get()
            await asyncio.sleep(PATIENCE)
        assert len(slow.asked) == asked
    with pytest.raises(SlurmError, match="ran out"):
        await jobs.get()
    await asyncio.sleep(PAUSE)
    with pytest.raises(SlurmError, match="not arrived yet"):
        await jobs.get()
    assert len(slow.asked) == 2


async def test_a_closed_one_says_so_to_whoever_waits():
    """A pass that waits is not cancelled with it."""
    jobs = JobList(Slow(3.0))
    waits = asyncio.create_task(jobs.get())
    await asyncio.sleep(1.0)
    jobs.close()
    with pytest.raises(SlurmError, match="cancelled"):
        await waits
