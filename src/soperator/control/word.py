"""What a worker itself says of its jail: one sentence over HTTP (spank/watch.c).

The kubelet only tells whether a probe failed, not with which words. So the operator asks once, before it drains a node, for Slurm's reason
is where the node's user reads why.
"""

from collections.abc import Awaitable, Callable

import httpx2

from soperator.decide.drain import JAIL
from soperator.render import names

Ask = Callable[[str], Awaitable[str]]

PATIENCE = 3.0
SILENCE = "it cannot be entered, and nobody says why"
#: With the prefix no longer than what `drain.reason` leaves as it is.
_LONGEST = 190


async def ask_jail(ip: str) -> str:
    """The sentence of the worker with this address, as a reason for Slurm; never raises."""
    host = f"[{ip}]" if ":" in ip else ip
    try:
        async with httpx2.AsyncClient(timeout=PATIENCE) as client:
            said = (await client.get(f"http://{host}:{names.JAIL_PORT}/")).text
    except (httpx2.HTTPError, httpx2.InvalidURL):
        said = ""
    return reason(said)


def reason(said: str) -> str:
    """A reason for Slurm from what a worker said: one line of plain text, and not too long."""
    line = next(iter(said.strip().splitlines()), "").removeprefix("jail: ")
    kept = (letter for letter in line if letter.isprintable() and letter.isascii() and letter not in "\"'`")
    plain = " ".join("".join(kept).split())[:_LONGEST].strip()
    return JAIL + (plain if plain and plain != "ok" else SILENCE)
