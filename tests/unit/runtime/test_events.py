"""Events: courteous to the API server, harmless to passes."""

import asyncio

import pytest

from soperator.kube.kinds import EVENT, SLURMCLUSTER
from soperator.kube.views import ObjectMeta
from soperator.runtime.events import EventNote, Recorder, Regarding
from tests.unit.fake_api import FakeApi
from tests.unit.fake_world import Fault, Where

pytestmark = pytest.mark.looptime
ABOUT = Regarding(SLURMCLUSTER, ObjectMeta(name="c", namespace="ns", uid="u1"))
NOTE = EventNote("Warning", "JailMissing", "claim jail does not exist")


class Lab:
    """A recorder on a fake server."""

    def __init__(self) -> None:
        self.server = FakeApi()
        self.recorder = Recorder(self.server.api(), asyncio.get_running_loop().time)
        self.task = asyncio.create_task(self.recorder.run())

    async def settle(self) -> int:
        """Let everything be sent, and return how many Events there are."""
        await asyncio.sleep(1)
        return len(self.server.world.all(Where(EVENT.group, EVENT.plural)))

    async def close(self) -> None:
        """Stop."""
        self.task.cancel()
        await asyncio.wait({self.task})


async def test_an_event_has_what_the_api_requires() -> None:
    """An Event names object, reason, action, reporter and time."""
    lab = Lab()
    assert lab.recorder.emit(ABOUT, NOTE)
    assert await lab.settle() == 1
    event = lab.server.world.all(Where(EVENT.group, EVENT.plural))[0]
    assert event["regarding"]["uid"] == "u1"
    assert event["note"] == "claim jail does not exist"
    assert {"eventTime", "reportingController", "reportingInstance", "action", "reason", "type"} <= set(event)
    await lab.close()


async def test_a_repetition_is_not_sent() -> None:
    """The same Event within ten minutes is sent once, and again after that."""
    lab = Lab()
    for _ in range(50):
        lab.recorder.emit(ABOUT, NOTE)
    assert await lab.settle() == 1
    await asyncio.sleep(601)
    lab.recorder.emit(ABOUT, NOTE)
    assert await lab.settle() == 2
    await lab.close()


async def test_one_object_cannot_flood_the_server() -> None:
    """An object has twenty Events at once and two per minute after that."""
    lab = Lab()
    for number in range(200):
        lab.recorder.emit(ABOUT, EventNote("Normal", "Noise", str(number)))
    assert await lab.settle() == 20
    await asyncio.sleep(60)
    for number in range(200):
        lab.recorder.emit(ABOUT, EventNote("Normal", "More", str(number)))
    assert await lab.settle() == 22
    await lab.close()


async def test_a_failing_server_does_not_matter() -> None:
    """An Event that cannot be sent is dropped, and the next one is sent."""
    lab = Lab()
    lab.server.faults.append(Fault(verb="create", status=403, reason="Forbidden"))
    lab.recorder.emit(ABOUT, NOTE)
    lab.recorder.emit(ABOUT, EventNote("Normal", "Other", "x"))
    assert await lab.settle() == 1
    assert lab.recorder.dropped == 1
    await lab.close()
