"""Time in these tests is the loop's own, and goes by at once where nothing is left to do: in their fixtures too."""

import asyncio
import random

import pytest

from soperator.crdgen.conditions import KNOWN
from soperator.runtime.status import StatusWriter


@pytest.fixture(autouse=True)
async def _loop_time(request):
    """Every test of this folder runs in such a loop from its first fixture on, but for those that are about the time of day."""
    if request.node.get_closest_marker("time_of_day"):
        yield
        return
    with asyncio.get_running_loop().looptime_enabled():
        yield


@pytest.fixture(autouse=True)
def _chance():
    """What is drawn by lot, as the pauses after a failure, is the same in each run."""
    random.seed(0)


@pytest.fixture(autouse=True)
def _known_reasons(monkeypatch):
    """No status has a condition or a reason that the page of conditions lacks, or a Ready that its other conditions deny."""
    write, unknown, unclear = StatusWriter.write, set(), []

    async def looked_at(self, kind, obj, fields, conditions):
        unknown.update((each.type, each.reason) for each in conditions if each.reason not in KNOWN.get(each.type, ()))
        known = {each.type: each.status for each in conditions}
        causes = [each for each in ("Reconciling", "Stalled") if known.get(each) == "True"]
        if len(known) != len(conditions) or len(causes) != (known.get("Ready") != "True"):
            unclear.append((kind.kind, conditions))
        return await write(self, kind, obj, fields, conditions)

    monkeypatch.setattr(StatusWriter, "write", looked_at)
    yield
    assert unknown == set(), "soperator/crdgen/conditions.py lacks these"
    assert unclear == []
