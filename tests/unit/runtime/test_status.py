"""Status: transition times that mean something, and no write without news."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from soperator.kube.errors import Conflict
from soperator.kube.kinds import SLURMCLUSTER
from soperator.kube.views import Custom
from soperator.runtime.status import ReportedCondition, StatusWriter, merge
from tests.unit.fake_api import FakeApi
from tests.unit.objects import make

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
READY = ReportedCondition("Available", "True", "AllReady", "2 of 2 workers are ready")
NOT_READY = ReportedCondition("Available", "False", "WorkersMissing", "1 of 2 workers is ready")


def test_the_transition_time_moves_with_the_status_only() -> None:
    """A new reason or message keeps the time, a new status does not."""
    first = merge([], [READY], 1, NOON)
    later = NOON + timedelta(hours=1)
    reworded = merge(first, [ReportedCondition("Available", "True", "Other", "other words")], 2, later)
    assert reworded[0]["lastTransitionTime"] == "2026-01-01T12:00:00Z"
    assert reworded[0]["observedGeneration"] == 2
    assert merge(reworded, [NOT_READY], 2, later)[0]["lastTransitionTime"] == "2026-01-01T13:00:00Z"


class Lab:
    """A cluster on a fake server, and a writer whose clock always moves."""

    def __init__(self) -> None:
        self.server = FakeApi()
        self.server.world.seed(make(SLURMCLUSTER, "c", spec={"a": 1}))
        self.clock = NOON
        self.writer = StatusWriter(self.server.api(), self.now)

    def now(self) -> datetime:
        """Return a later time at each call."""
        self.clock += timedelta(minutes=1)
        return self.clock

    def read(self) -> Custom:
        """Return the object as a cache that has caught up would hold it."""
        return msgspec.json.decode(msgspec.json.encode(self.live()), type=Custom)

    def live(self) -> dict[str, Any]:
        """Return the object as the server has it."""
        found = self.server.world.find(SLURMCLUSTER, "ns", "c")
        assert found is not None
        return found

    async def write(self, obj: Custom, *conditions: ReportedCondition, **fields: Any) -> bool:
        """Write a status."""
        return await self.writer.write(SLURMCLUSTER, obj, fields, conditions)


async def test_an_equal_status_is_not_written() -> None:
    """The same fields and conditions cost one request in all."""
    lab = Lab()
    assert await lab.write(lab.read(), READY, workers=2)
    for _ in range(3):
        assert not await lab.write(lab.read(), READY, workers=2)
    assert lab.server.writes() == ["patch slurmclusters ns/c/status"]
    assert lab.live()["status"]["observedGeneration"] == 1


async def test_a_stale_cache_causes_no_second_write() -> None:
    """While the cache holds the object from before our write, that write counts."""
    lab = Lab()
    stale = lab.read()
    await lab.write(stale, READY)
    assert not await lab.write(stale, READY)
    assert await lab.write(stale, NOT_READY)


async def test_fields_that_are_no_longer_said_go_away() -> None:
    """The status is exactly what was last written."""
    lab = Lab()
    await lab.write(lab.read(), READY, workers=2, hint="x")
    await lab.write(lab.read(), READY, workers=2)
    assert set(lab.live()["status"]) == {"workers", "observedGeneration", "conditions"}


async def test_what_the_server_changes_in_a_status_is_not_fought() -> None:
    """A status that the server stores differently from how it was sent is written once."""
    lab = Lab()
    lab.server.world.rules.append(lambda _, new: new.get("status", {}).pop("unknown", None) and None)
    assert await lab.write(lab.read(), READY, unknown=1)
    assert not await lab.write(lab.read(), READY, unknown=1)


async def test_a_namesake_keeps_its_status() -> None:
    """A status meant for a deleted object is refused by the one that took its name."""
    lab = Lab()
    old = lab.read()
    lab.server.world.remove(SLURMCLUSTER, "ns", "c")
    lab.server.world.seed(make(SLURMCLUSTER, "c", spec={}))
    with pytest.raises(Conflict):
        await lab.write(old, READY)
