"""Queries a worker's own report about its jail over HTTP (spank/watch.c): a message, or ok with an optional warning on a second line.

The kubelet reports whether a probe failed, but not its message. So the operator queries the worker before it drains the node, because users read the
cause in Slurm's reason. A port that does not answer does not show whether the jail works.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpx2

from soperator.policy.drain_reasons import JAIL
from soperator.reconcile.cache.per_object import Slot, per_pod
from soperator.render.parts import names
from soperator.slurmrest.bounded import Bound, TooLarge, opened, whole

QueryJail = Callable[[str], Awaitable[str | None]]
ReadReport = Callable[[str], Awaitable[str]]

PATIENCE = 3.0
#: A worker belongs to its owner: an answer from there may be endless.
_BOUND = Bound(4096, PATIENCE, PATIENCE)
NO_REASON = "it cannot be entered, for an unknown reason"
#: Together with the prefix not longer than `drain_reasons.reason` allows.
_LONGEST = 190


@dataclass(frozen=True)
class JailReport:
    """A worker's report about its jail: a reason for Slurm, as `query_jail` returns it, and when it was received, in seconds since 1970."""

    at: float
    said: str | None


#: The last report of each worker that was asked.
REPORTS: Slot[str, JailReport] = per_pod("reports of workers about their jails")


async def query_jail(ip: str) -> str | None:
    """Query the worker at this address.

    Return its message as a reason for Slurm, empty if its jail is healthy, None without an answer. Never raises.
    """
    return reason(await read_jail_report(ip))


async def read_jail_report(ip: str) -> str:
    """Return the answer of the worker at this address; empty if there is none, or if it has no end. Never raises."""
    host = f"[{ip}]" if ":" in ip else ip
    return await _fetch(f"http://{host}:{names.JAIL_PORT}/")


async def _fetch(url: str) -> str:
    try:
        # No proxy is needed to reach a pod, and loading the TLS authorities for each request would cost 20 ms.
        async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
            request = client.build_request("GET", url, headers={"Accept-Encoding": "identity"})
            async with opened(client, request, _BOUND) as response:
                return (await whole(response, _BOUND.most)).decode(errors="replace")
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, TooLarge):
        return ""


def reason(said: str) -> str | None:
    """Return the reason for Slurm from a worker's answer: one line of plain text with a bounded length. Empty for ok, None without an answer."""
    if not said.strip():
        return None
    line = said.strip().splitlines()[0].strip()
    return "" if line == "ok" else JAIL + (plain(line) or NO_REASON)


def plain(line: str) -> str:
    """Return a line as plain text of bounded length, whatever the answer contains."""
    letters = line.removeprefix("jail: ")
    kept = (letter for letter in letters if letter.isprintable() and letter.isascii() and letter not in "\"'`")
    return " ".join("".join(kept).split())[:_LONGEST].strip()
