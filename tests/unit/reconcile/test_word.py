"""What a worker says of its jail is heard within bounds, whatever answers there."""

import time

import pytest

from soperator.reconcile.io import jail_watch_client
from soperator.slurmrest.bounded import Bound
from tests.unit.slurmrest.talker import (
    HEAD,
    drips,
    for_ever,
    never,
    talker,
)


async def once(writer):
    """What jail-watch says."""
    writer.write(HEAD + b"jail: /home is not mounted\n")
    await writer.drain()


async def test_an_answer_is_heard():
    """As it was said."""
    async with talker(once) as address:
        assert await jail_watch_client._fetch(address) == "jail: /home is not mounted\n"


@pytest.mark.parametrize(
    "talk",
    [
        for_ever(b"HTTP/1.1 503 x\r\n\r\n", b"x" * 65536),
        for_ever(HEAD, b"x", 0.01),
        for_ever(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.01),
        drips(HEAD + b"ok"),
        never,
    ],
    ids=["for ever", "slowly for ever", "heads for ever", "a byte now and then", "never"],
)
async def test_whoever_does_not_come_to_an_end_is_not_heard(talk, monkeypatch):
    """The operator asks workers of all clusters, and waits for none."""
    monkeypatch.setattr(jail_watch_client, "_BOUND", Bound(jail_watch_client._BOUND.most, 0.5, 0.5))
    async with talker(talk) as address:
        began = time.monotonic()
        assert await jail_watch_client._fetch(address) == ""
        assert time.monotonic() - began < 3.0


def test_little_is_read_and_for_seconds():
    """A sentence and a line of numbers."""
    assert (jail_watch_client._BOUND.most, jail_watch_client._BOUND.seconds) == (4096, 3.0)
