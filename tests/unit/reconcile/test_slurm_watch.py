"""The shared look at a cluster's Slurm, across a change of the key of REST."""

import asyncio

import httpx2
import pytest

from soperator.reconcile.cache.slurm_poller import SlurmWatch
from soperator.slurmrest.client import SlurmRest

pytestmark = pytest.mark.looptime

KEY = ("slurm", "demo")


class Rest(httpx2.AsyncBaseTransport):
    """slurmrestd that takes tokens of one key, told by the last characters of what that key signs."""

    def __init__(self):
        self.accepts = b"old"
        self.offers = [b"old"]
        self.connections = []

    async def connect(self, _key):
        """What the operator does when it reads the Secret."""
        self.connections.append(self.offers[-1])
        return SlurmRest("http://rest", self.offers[-1], Denies(self, self.offers[-1]))


class Denies(httpx2.AsyncBaseTransport):
    """The answer to one client's tokens."""

    def __init__(self, rest, key):
        self.rest, self.key = rest, key

    async def handle_async_request(self, _request):
        """As slurmrestd of 24.11 answers."""
        if self.key != self.rest.accepts:
            return httpx2.Response(511, json={"errors": [{"error": "Protocol authentication error"}]})
        return httpx2.Response(200, json={"nodes": [{"name": "w-0", "state": ["IDLE"]}], "errors": []})


async def test_a_refused_token_makes_it_read_the_key_anew():
    """Until slurmctld has the new key the old one serves; then one look is refused, and the next has the new key."""
    rest = Rest()
    watch = SlurmWatch(rest.connect, lambda _: None, period=0.01)
    watch.follow(KEY)
    await asyncio.sleep(0.05)
    rest.offers.append(b"new")
    await asyncio.sleep(0.05)
    assert rest.connections == [b"old"]
    rest.accepts = b"new"
    await asyncio.sleep(0.1)
    assert rest.connections == [b"old", b"new"]
    assert watch.nodes(KEY) is not None
    assert watch.trouble(KEY) == ""
    watch.close()
