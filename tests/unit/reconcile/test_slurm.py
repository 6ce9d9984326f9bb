"""The shared look at Slurm's nodes: when all are asked for, and when only whether any has changed."""

import asyncio

import pytest

from soperator.reconcile.cache.slurm_poller import FRESH, WHOLE, SlurmWatch
from soperator.slurm.node import SlurmNode
from soperator.slurmrest.client import NodeList, SlurmError

pytestmark = pytest.mark.looptime
KEY = ("ns", "demo")


class Rest:
    """A client whose Slurm changes when a test says so; `asked` are its calls."""

    def __init__(self, takes=0.0):
        self.state, self.changed, self.takes = "IDLE", True, takes
        self.asked, self.refuses, self.silent = [], False, False

    def change(self, state):
        self.state, self.changed = state, True

    async def has_changed(self, moment):
        if self.silent:
            raise SlurmError("nobody answers")
        self.asked.append("changed")
        return self.changed or not moment

    async def fetch_nodes(self):
        self.asked.append("look")
        await asyncio.sleep(self.takes)
        self.changed = False
        return NodeList({"w-0": SlurmNode("w-0", frozenset({self.state}), started=5)}, 7)

    async def save(self, _):
        self.asked.append("save")
        if self.refuses:
            raise SlurmError("no")

    async def close(self):
        pass


@pytest.fixture
async def watch():
    """A watch, and its client."""
    rest, woken = Rest(), []

    async def connect(_):
        return rest

    made = SlurmWatch(connect, woken.append)
    yield made, rest, woken
    made.close()


async def test_a_quiet_cluster_is_only_asked_whether_it_has_changed(watch):
    """One look, and then questions that cost slurmrestd nothing; the answer stays fresh."""
    slurm, rest, woken = watch
    slurm.follow(KEY)
    await asyncio.sleep(WHOLE - 1)
    assert rest.asked[:3] == ["look", "save", "changed"]
    assert set(rest.asked[2:]) == {"changed"}
    assert slurm.nodes(KEY)["w-0"].is_up
    assert woken == [KEY]


async def test_all_nodes_are_looked_at_now_and_then_whatever_slurmctlds_clock_says(watch):
    """A change that is not told is seen within half a minute."""
    slurm, rest, _ = watch
    slurm.follow(KEY)
    await asyncio.sleep(1)
    rest.state = "DOWN"
    await asyncio.sleep(WHOLE + 2)
    assert slurm.nodes(KEY)["w-0"].is_down


async def test_a_change_is_looked_at_and_wakes(watch):
    """Within a period."""
    slurm, rest, woken = watch
    slurm.follow(KEY)
    await asyncio.sleep(1)
    rest.change("DOWN")
    await asyncio.sleep(2)
    assert slurm.nodes(KEY)["w-0"].is_down
    assert woken == [KEY, KEY]


async def test_nodes_that_could_not_be_written_down_are_tried_again(watch):
    """With the next poll, although nothing has changed."""
    slurm, rest, _ = watch
    rest.refuses = True
    slurm.follow(KEY)
    await asyncio.sleep(1)
    rest.refuses = False
    await asyncio.sleep(2)
    assert rest.asked == ["look", "save", "changed", "look", "save"]


async def test_an_answer_grows_old(watch):
    """What Slurm said is believed for some seconds after it fell silent; then it has said nothing."""
    slurm, rest, _ = watch
    slurm.follow(KEY)
    await asyncio.sleep(1)
    rest.silent = True
    await asyncio.sleep(FRESH - 2)
    assert slurm.nodes(KEY)
    await asyncio.sleep(4)
    assert slurm.nodes(KEY) is None
    rest.silent = False
    await asyncio.sleep(4)
    assert slurm.nodes(KEY)


async def test_a_slurm_that_answers_slowly_is_asked_less_often(watch):
    """The pause is three times the answer, so that slurmrestd has time for others."""
    slurm, rest, _ = watch
    rest.takes = 1.0
    slurm.follow(KEY)
    await asyncio.sleep(3.9)
    assert rest.asked == ["look", "save"]
    await asyncio.sleep(0.2)
    assert rest.asked == ["look", "save", "changed"]
