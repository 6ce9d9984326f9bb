"""slurmrestd as a handful of verbs, on data parser v0.0.42, which 24.11 to 26.05 share.

Every answer that is not plainly a success is an error: the callers take an error for "busy". Source: Slurm's OpenAPI of 24.11.
"""

import time
from typing import Any

import httpx2

from soperator.slurm.job import SlurmJob, read_jobs
from soperator.slurm.node import SlurmNode, read_node
from soperator.slurmrest.token import sign

_PARSER = "v0.0.42"
_LIFETIME = 600


class SlurmError(Exception):
    """slurmrestd could not be reached, or said no; the text says which."""


class SlurmRest:
    """One cluster's slurmrestd, spoken to as SlurmUser with tokens of ten minutes."""

    def __init__(self, address: str, key: bytes, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._key = key
        self._client = httpx2.AsyncClient(base_url=f"{address}/slurm/{_PARSER}", timeout=10, transport=transport)

    async def nodes(self) -> dict[str, SlurmNode]:
        """All nodes by name; raises SlurmError."""
        return {node.name: node for node in map(read_node, await self._list("nodes"))}

    async def drain(self, node: str, reason: str) -> None:
        """Let no new job start on a node; raises SlurmError."""
        await self._call("POST", f"node/{node}", {"state": ["DRAIN"], "reason": reason})

    async def resume(self, node: str) -> None:
        """Undo a drain; raises SlurmError."""
        await self._call("POST", f"node/{node}", {"state": ["RESUME"]})

    async def save(self, node: str) -> None:
        """Have slurmctld write all its nodes to disk, by an update of one that changes nothing; raises SlurmError."""
        await self._call("POST", f"node/{node}", {})

    async def delete(self, node: str) -> None:
        """Remove the record of a dynamic node; raises SlurmError, also while a job or a reservation holds it."""
        await self._call("DELETE", f"node/{node}")

    async def jobs(self) -> list[SlurmJob]:
        """The jobs that hold nodes; raises SlurmError. The answer holds every job of the queue, so it is asked for only when it matters."""
        return read_jobs(await self._list("jobs"))

    async def signal(self, job: int, signal: str) -> None:
        """Send a signal to all processes of a job; raises SlurmError."""
        await self._call("DELETE", f"job/{job}?signal={signal}&flags=FULL_JOB")

    async def cancel(self, job: int) -> None:
        """End a job for good; raises SlurmError."""
        await self._call("DELETE", f"job/{job}")

    async def reconfigure(self) -> None:
        """Let slurmctld read its files again and hand them to every daemon; raises SlurmError."""
        await self._call("GET", "reconfigure/")

    async def close(self) -> None:
        """Drop the connections."""
        await self._client.aclose()

    async def _list(self, what: str) -> list[dict[str, Any]]:
        """A list that an answer has to hold: one without it does not say that there are none."""
        answer = await self._call("GET", f"{what}/")
        if what not in answer:
            raise SlurmError(f"slurmrestd: GET {what}/: the answer has no {what}")
        return answer[what] or []

    async def _call(self, verb: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        token = sign(self._key, "slurm", int(time.time()) - 5, _LIFETIME)
        headers = {"X-SLURM-USER-NAME": "slurm", "X-SLURM-USER-TOKEN": token}
        try:
            response = await self._client.request(verb, path, json=body, headers=headers)
        except httpx2.HTTPError as error:
            raise SlurmError(f"slurmrestd: {verb} {path}: {str(error) or type(error).__name__}") from error
        answer = _read(response)
        if response.status_code >= 400 or answer.get("errors"):
            raise SlurmError(f"slurmrestd: {verb} {path}: {_first_error(answer) or f'HTTP {response.status_code}'}")
        return answer


def _read(response: httpx2.Response) -> dict[str, Any]:
    """What an answer says; one that is no JSON object comes from somebody else, a proxy for example, and is an error."""
    if not response.content:
        return {}
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    said = f"HTTP {response.status_code}" + (
        "" if response.status_code >= 400 else ", and the answer is no JSON object"
    )
    return {"errors": [{"error": said}]}


def _first_error(answer: dict[str, Any]) -> str:
    errors = answer.get("errors") or []
    return next((each.get("error") or each.get("description") or "" for each in errors), "")
