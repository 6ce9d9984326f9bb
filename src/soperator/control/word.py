"""What a worker itself says of its jail, over HTTP (spank/watch.c): a sentence, or ok and perhaps a second line that warns.

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
    return reason(await hear_jail(ip))


async def hear_jail(ip: str) -> str:
    """What the worker with this address answers; empty where it does not. Never raises."""
    host = f"[{ip}]" if ":" in ip else ip
    try:
        # No proxy leads to a pod, and to load the authorities of TLS for each question would cost 20 ms.
        async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False, verify=False) as client:
            return (await client.get(f"http://{host}:{names.JAIL_PORT}/")).text
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return ""


def reason(said: str) -> str:
    """A reason for Slurm from what a worker said: one line of plain text, and not too long."""
    line = plain(next(iter(said.strip().splitlines()), ""))
    return JAIL + (line if line and line != "ok" else SILENCE)


def plain(line: str) -> str:
    """A line as plain text of bounded length, whatever was answered."""
    letters = line.removeprefix("jail: ")
    kept = (letter for letter in letters if letter.isprintable() and letter.isascii() and letter not in "\"'`")
    return " ".join("".join(kept).split())[:_LONGEST].strip()
