"""Leader election in virtual time: one leader at most, no zombie, quick handover."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from soperator.kube.kinds import LEASE
from soperator.runtime.lease import Elector, LostLease
from tests.unit.fake_api import FakeApi, eventually
from tests.unit.fake_world import Fault

pytestmark = pytest.mark.looptime

#: So long a release that nobody answers is waited for, once the body has ended.
RELEASE = 3.0


@dataclass
class Candidate:
    """One replica, with the times at which its body began and ended."""

    server: FakeApi
    name: str
    ends: list[str] = field(default_factory=list)
    crash: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] = field(init=False)
    elector: Elector = field(init=False)
    is_running: bool = False

    def __post_init__(self) -> None:
        self.elector = Elector(self.server.api(), ("ns", "lock"), self.name)
        self.task = asyncio.create_task(self.elector.lead(self.body))

    async def body(self) -> None:
        """Lead until told to crash or to stop."""
        self.is_running = True
        waits = [asyncio.ensure_future(self.crash.wait()), asyncio.ensure_future(self.stop.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if self.crash.is_set():
                raise RuntimeError("the body crashed")
        finally:
            for each in waits:
                each.cancel()
            await asyncio.sleep(0.5)
            self.is_running = False


def holder(server: FakeApi) -> Any:
    """Return who holds the Lease."""
    found = server.world.find(LEASE, "ns", "lock")
    return found and found["spec"]["holderIdentity"]


async def finish(*candidates: Candidate) -> None:
    """End the candidates."""
    for candidate in candidates:
        candidate.task.cancel()
    await asyncio.wait([candidate.task for candidate in candidates])


async def test_a_free_lease_is_taken_at_once() -> None:
    """The first replica leads without waiting, and a second one does not."""
    server = FakeApi()
    one = Candidate(server, "one")
    await eventually(lambda: one.is_running, 1)
    two = Candidate(server, "two")
    await asyncio.sleep(120)
    assert one.is_running
    assert not two.is_running
    assert holder(server) == "one"
    await finish(one, two)


async def test_renewing_costs_at_most_twelve_writes_and_no_reads_per_minute() -> None:
    """An idle leader writes its Lease every five seconds and reads nothing."""
    server = FakeApi()
    one = Candidate(server, "one")
    await eventually(lambda: one.is_running, 1)
    server.requests.clear()
    await asyncio.sleep(600)
    assert 100 <= len(server.writes()) <= 120
    assert len(server.asked()) == len(server.writes())
    await finish(one)


async def test_a_crashed_body_releases_the_lease() -> None:
    """When the body crashes, the error comes out and the next replica leads within seconds."""
    server = FakeApi()
    one = Candidate(server, "one")
    await eventually(lambda: one.is_running, 1)
    two = Candidate(server, "two")
    one.crash.set()
    with pytest.raises(RuntimeError, match="the body crashed"):
        await one.task
    assert holder(server) == ""
    await eventually(lambda: two.is_running, 3)
    await finish(two)


async def test_a_cancelled_leader_waits_for_its_body_before_it_releases() -> None:
    """The Lease is never free while the old leader's body still runs."""
    server = FakeApi()
    one = Candidate(server, "one")
    await eventually(lambda: one.is_running, 1)
    one.task.cancel()
    while holder(server) == "one":  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    assert not one.is_running
    with pytest.raises(asyncio.CancelledError):
        await one.task


async def test_a_dead_leader_is_replaced_after_the_duration() -> None:
    """A Lease that nobody renews is taken over after 15 s, by the standby's own clock."""
    server = FakeApi()
    server.world.seed(lease("gone", "2199-01-01T00:00:00.000000Z"))
    two = Candidate(server, "two")
    await asyncio.sleep(14)
    assert not two.is_running
    await eventually(lambda: two.is_running, 5)
    assert server.world.find(LEASE, "ns", "lock")["spec"]["leaseTransitions"] == 1  # type: ignore[index]
    await finish(two)


async def test_a_lease_taken_by_another_stops_the_body() -> None:
    """A leader that finds another name in the Lease stops its body and says who leads."""
    server = FakeApi()
    one = Candidate(server, "one")
    await eventually(lambda: one.is_running, 1)
    server.world.change(LEASE, ("ns", "lock"), {"spec": {"holderIdentity": "two"}})
    with pytest.raises(LostLease, match="held by two now"):
        await one.task
    assert not one.is_running
    assert holder(server) == "two"


async def test_a_lease_touched_by_others_is_kept() -> None:
    """A label on our Lease is no reason to stop leading."""
    server = FakeApi()
    one = Candidate(server, "one")
    await eventually(lambda: one.is_running, 1)
    server.world.change(LEASE, ("ns", "lock"), {"metadata": {"labels": {"a": "b"}}})
    await asyncio.sleep(60)
    assert one.is_running
    await finish(one)


async def test_a_leader_that_cannot_renew_stops_before_anybody_else_may_start() -> None:
    """Cut off from the server, the body is down within the Lease's duration."""
    server = FakeApi()
    one = Candidate(server, "one")
    await eventually(lambda: one.is_running, 1)
    await asyncio.sleep(60)
    renewals = len(server.writes())
    await eventually(lambda: len(server.writes()) > renewals, 10)
    server.down = True
    began = asyncio.get_running_loop().time()
    with pytest.raises(LostLease):
        await one.task
    assert asyncio.get_running_loop().time() - began < 15.0
    assert not one.is_running


async def test_a_renewal_that_hangs_is_not_waited_for_beyond_the_deadline() -> None:
    """One that fails late is tried again with the time that is left of ten seconds, so the body is down long before fifteen."""
    server = FakeApi()
    one = Candidate(server, "one")
    await eventually(lambda: one.is_running, 1)
    renewals = len(server.writes())
    await eventually(lambda: len(server.writes()) > renewals, 10)
    renewed = asyncio.get_running_loop().time()
    server.latency = 3.5
    server.faults.append(Fault(verb="update", status=0))
    await eventually(lambda: len(server.writes()) > renewals + 1, 10)
    server.latency = 3600.0
    with pytest.raises(LostLease):
        await one.task
    assert 9.0 < asyncio.get_running_loop().time() - renewed - RELEASE < 12.0
    assert not one.is_running


async def test_short_trouble_does_not_cost_the_lease() -> None:
    """Errors that end before the deadline are ridden out."""
    server = FakeApi()
    one = Candidate(server, "one")
    await eventually(lambda: one.is_running, 1)
    server.faults.append(Fault(verb="update", status=500, times=3))
    await asyncio.sleep(60)
    assert one.is_running
    await finish(one)


async def test_never_two_leaders_through_crashes_and_outages() -> None:
    """Whatever happens to leaders and server, two bodies never run at once."""
    server = FakeApi()
    replicas = [Candidate(server, f"{number}") for number in range(3)]
    for round_ in range(12):
        await asyncio.sleep(7)
        leader = next((each for each in replicas if each.is_running), None)
        if round_ % 3 == 2:
            server.down = not server.down
        elif leader is not None:
            (leader.crash if round_ % 2 else leader.stop).set()
        for _ in range(80):
            assert sum(each.is_running for each in replicas) <= 1
            await asyncio.sleep(0.1)
        server.down = False
        replicas += [Candidate(server, f"{round_}+{each.name}") for each in replicas if each.task.done()]
        ended = [each for each in replicas if each.task.done()]
        await asyncio.gather(*(each.task for each in ended), return_exceptions=True)
        replicas = [each for each in replicas if not each.task.done()]
    await finish(*replicas)


def lease(name: str, renewed: str) -> dict[str, Any]:
    """Return a Lease held by somebody."""
    return {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": {"name": "lock", "namespace": "ns"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 15, "renewTime": renewed, "leaseTransitions": 0},
    }


async def test_a_leader_that_waited_long_for_its_lease_leads_on() -> None:
    """After an outage the API server may answer seconds late; these seconds are not the leader's, who renews soon and goes on."""
    server = FakeApi()
    server.latency = 4.0
    candidate = Candidate(server, "a")
    await eventually(lambda: candidate.is_running, 30)
    server.latency = 0.0
    server.faults.append(Fault("update", "leases", 500, times=4))
    await asyncio.sleep(60)
    assert candidate.is_running
    await finish(candidate)


async def test_an_attempt_that_hangs_takes_no_lease() -> None:
    """One that is answered after the lease could have run out would begin to lead for an instant."""
    server = FakeApi()
    server.latency = 9.5
    candidate = Candidate(server, "a")
    await asyncio.sleep(60)
    assert not candidate.is_running
    server.latency = 0.0
    await eventually(lambda: candidate.is_running, 30)
    await finish(candidate)


async def test_a_standby_that_was_answered_late_leaves_a_living_leader_alone() -> None:
    """A Lease has been seen unchanged since the answer came, not since it was asked for: the leader renewed it meanwhile."""
    server, slow = FakeApi(), FakeApi()
    slow.world = server.world
    one = Candidate(server, "one")
    await eventually(lambda: one.is_running, 1)
    slow.latency = 18.2  # between its third renewal and its fourth
    two = Candidate(slow, "two")
    await asyncio.sleep(18.0)
    slow.latency = 0.0
    for _ in range(600):
        await asyncio.sleep(0.1)
        assert not (one.is_running and two.is_running)
    assert one.is_running
    await finish(one, two)
