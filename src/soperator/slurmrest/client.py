"""slurmrestd as a handful of verbs, on data parser v0.0.42, which 24.11 to 26.05 share.

Every answer that is not plainly a success is an error: the callers take an error for "busy". Source: Slurm's OpenAPI of 24.11.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
import msgspec

from soperator.slurm.job import CheckJob, SlurmJob, number, read_check_job, read_jobs
from soperator.slurm.node import Record, SlurmNode, read_node
from soperator.slurmrest.token import sign

_PARSER = "v0.0.42"
_LIFETIME = 600
#: So many seconds may pass without a byte of an answer.
_PATIENCE = 10
#: What 24.11 answers to a token that it cannot check, or to none.
_DENIED = (401, 511)

T = TypeVar("T")


class SlurmError(Exception):
    """slurmrestd could not be reached, or said no; the text says which."""


class SlurmDenied(SlurmError):  # noqa: N818
    """slurmrestd takes our token for none: the key has changed."""


class _Answer(msgspec.Struct):
    nodes: list[Record] | msgspec.UnsetType | None = msgspec.UNSET
    last_update: Any = None
    errors: list[Any] | None = None


@dataclass(frozen=True)
class Look:
    """All nodes by name, and when slurmctld said so, by its own clock in whole seconds since 1970."""

    nodes: dict[str, SlurmNode]
    moment: int


class SlurmRest:
    """One cluster's slurmrestd, spoken to as SlurmUser with tokens of ten minutes."""

    def __init__(self, address: str, key: bytes, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._key = key
        self._read: dict[str, tuple[Record, SlurmNode]] = {}
        # It speaks no TLS; to load the authorities for it would cost 1.5 MiB and 20 ms for each cluster.
        self._client = httpx2.AsyncClient(
            base_url=f"{address}/slurm/{_PARSER}", timeout=_PATIENCE, transport=transport, verify=False
        )

    async def nodes(self) -> dict[str, SlurmNode]:
        """All nodes by name; raises SlurmError."""
        return (await self.look()).nodes

    async def look(self) -> Look:
        """All nodes; a node whose record is the same as in the last answer is the same object. Raises SlurmError."""
        answer = await self._whole("nodes/")
        self._read = {record.name: self._node(record) for record in answer.nodes or ()}
        return Look({name: node for name, (_, node) in self._read.items()}, int(number(answer.last_update)))

    async def only(self, names: Iterable[str]) -> dict[str, SlurmNode]:
        """These nodes by name, each asked for alone; raises SlurmError, also for one that Slurm does not know."""
        answers = await asyncio.gather(*(self._whole(f"node/{name}") for name in names))
        return {record.name: self._node(record)[1] for answer in answers for record in answer.nodes or ()}

    async def has_changed(self, moment: int) -> bool:
        """Whether a look may show other nodes than the one of that moment; raises SlurmError if nobody answers.

        slurmctld compares the time with that of its last change of any node, with a second to spare. 24.11 says 304 when there was none, and fails
        when there was one, for it asks for the partitions as of then too: so all but 304 is a yes.
        """
        if not moment:
            return True
        return (await self._send("GET", f"nodes/?update_time={moment}")).status_code != httpx2.codes.NOT_MODIFIED

    def _node(self, record: Record) -> tuple[Record, SlurmNode]:
        known = self._read.get(record.name)
        return known if known is not None and known[0] == record else (record, read_node(record))

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

    async def submit(self, body: Mapping[str, Any]) -> int:
        """Submit a batch job as root, and return its number; raises SlurmError, also where nobody knows whether there is one now."""
        answer = await self._call("POST", "job/submit", body, user="root")
        number_of = answer.get("job_id")
        if not isinstance(number_of, int) or not number_of:
            raise SlurmError("slurmrestd: POST job/submit: the answer has no job")
        return number_of

    async def runs(self, prefix: str) -> list[CheckJob]:
        """The jobs whose name begins so, also those that ended lately; raises SlurmError. It asks for every job of the queue."""
        return [
            read_check_job(each) for each in await self._list("jobs") if str(each.get("name", "")).startswith(prefix)
        ]

    async def run(self, job: int) -> CheckJob | None:
        """One job, None where Slurm does not know it any more; raises SlurmError."""
        try:
            answer = await self._call("GET", f"job/{job}")
        except SlurmError as error:
            if "Invalid job id" in str(error):
                return None
            raise
        return next((read_check_job(each) for each in answer.get("jobs") or ()), None)

    async def signal(self, job: int, signal: str) -> None:
        """Send a signal to all processes of a job; raises SlurmError."""
        await self._call("DELETE", f"job/{job}?signal={signal}&flags=FULL_JOB")

    async def comment(self, job: int, text: str) -> None:
        """Set the AdminComment of a job; raises SlurmError."""
        await self._call("POST", f"job/{job}", {"admin_comment": text})

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

    async def _whole(self, path: str) -> _Answer:
        """An answer with nodes. Of five thousand it is ten megabytes, of which there is only one copy."""
        asked, body = _asked("GET", path), bytearray()
        try:
            async with self._client.stream("GET", path, headers=self._headers()) as response:
                async for chunk in response.aiter_bytes():
                    body += chunk
        except httpx2.HTTPError as error:
            raise SlurmError(f"slurmrestd: {asked}: {_words(error)}") from error
        answer = _decoded(response.status_code, body, _Answer, asked)
        _check(response.status_code, answer.errors, asked)
        if answer.nodes is msgspec.UNSET:
            raise SlurmError(f"slurmrestd: {asked}: the answer has no nodes")
        return answer

    async def _call(
        self, verb: str, path: str, body: Mapping[str, Any] | None = None, user: str = "slurm"
    ) -> dict[str, Any]:
        response = await self._send(verb, path, body, user)
        asked, text = _asked(verb, path), response.content
        answer = _decoded(response.status_code, text, dict[str, Any], asked)
        _check(response.status_code, answer.get("errors"), asked)
        return answer

    async def _send(
        self, verb: str, path: str, body: Mapping[str, Any] | None = None, user: str = "slurm"
    ) -> httpx2.Response:
        try:
            return await self._client.request(verb, path, json=body, headers=self._headers(user))
        except httpx2.HTTPError as error:
            raise SlurmError(f"slurmrestd: {_asked(verb, path)}: {_words(error)}") from error

    def _headers(self, user: str = "slurm") -> dict[str, str]:
        token = sign(self._key, user, int(time.time()) - 5, _LIFETIME)
        # Unless it is named, 24.11 writes JSON with all its blanks, whatever SLURMRESTD_JSON says (src/slurmrestd/operations.c, _resolve_mime).
        accepted = {"Accept": "application/json", "Accept-Encoding": "identity"}
        return {"X-SLURM-USER-NAME": user, "X-SLURM-USER-TOKEN": token, **accepted}


def _asked(verb: str, path: str) -> str:
    """A request in the words of an error; without its query, which has the time in it: an error that lasts is told in the same words."""
    return f"{verb} {path.partition('?')[0]}"


def _words(error: httpx2.HTTPError) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return f"no answer within {_PATIENCE} s"
    return str(error) or type(error).__name__


def _decoded(status: int, body: bytes | bytearray, type_: type[T], asked: str) -> T:
    """What an answer says; one that is no JSON object comes from somebody else, a proxy for example, and is an error."""
    if status in _DENIED:
        raise SlurmDenied(f"slurmrestd: {asked}: HTTP {status}, it does not take our token")
    try:
        return msgspec.json.decode(body or b"{}", type=type_)
    except msgspec.ValidationError as error:
        why = f"HTTP {status}" if status >= 400 else f"the answer is not understood: {error}"
        if body.lstrip()[:1] != b"{" and status < 400:
            why = f"HTTP {status}, and the answer is no JSON object"
        raise SlurmError(f"slurmrestd: {asked}: {why}") from error
    except msgspec.DecodeError as error:
        why = "" if status >= 400 else ", and the answer is no JSON object"
        raise SlurmError(f"slurmrestd: {asked}: HTTP {status}{why}") from error


def _check(status: int, errors: list[Any] | None, asked: str) -> None:
    if status >= 400 or errors:
        raise SlurmError(f"slurmrestd: {asked}: {_first_error(errors or []) or f'HTTP {status}'}")


def _first_error(errors: list[Any]) -> str:
    return next((each.get("error") or each.get("description") or "" for each in errors), "")
