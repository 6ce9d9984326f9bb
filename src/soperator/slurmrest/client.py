"""A client of slurmrestd: one method per request, on the newest data parser that both know.

Every answer that is not clearly a success is an error, so that callers can treat the nodes as busy. The client reads each answer within bounds on its
bytes and its time. Source: Slurm's OpenAPI of 24.11.
"""

import asyncio
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
import msgspec

from soperator.slurm.check_job import PREFIX
from soperator.slurm.job import CheckJob, QueuedJob, SlurmJob, number, read_check_job, read_job, with_leaders
from soperator.slurm.node import RestNode, SlurmNode, read_node
from soperator.slurmrest.bounded import MIB, Bound, opened, whole
from soperator.slurmrest.cut import decode, first_error
from soperator.slurmrest.errors import SlurmDenied as SlurmDenied
from soperator.slurmrest.errors import SlurmError as SlurmError
from soperator.slurmrest.joblist import JobList, JobQueue
from soperator.slurmrest.lists import JOBS, check, errors_as_slurm_errors, records
from soperator.slurmrest.parser import Parser
from soperator.slurmrest.token import sign

_LIFETIME = 600
#: An answer about one thing. A job over 5,000 nodes names each core of theirs, in some 32 MB.
_ONE = Bound(64 * MIB, 15.0, 10.0)
#: Bounds for the list of all nodes: five thousand are ten megabytes, which slurmrestd writes in about two seconds.
_NODES = Bound(256 * MIB, 30.0, 10.0)
#: The most records kept of a list of nodes, and of one of jobs; slurmctld knows at most 65,533 nodes.
_MOST_NODES, _MOST_JOBS = 1 << 16, 200_000
#: The most node names kept of all jobs together: eleven letters of an answer may stand for 65,536 of them.
_MOST_HELD = 1 << 20

_VERSION = re.compile(r"[0-9]{2}\.[0-9]{2}[0-9A-Za-z.-]{0,24}")

T = TypeVar("T")


@dataclass(frozen=True)
class NodeList:
    """All nodes by name, the time of the answer by slurmctld's clock, in whole seconds since 1970, and the version of Slurm, such as 24.11.5."""

    nodes: dict[str, SlurmNode]
    moment: int
    version: str = ""


class SlurmRest:
    """A client of one cluster's slurmrestd, as SlurmUser, with tokens that live ten minutes."""

    def __init__(self, address: str, key: bytes, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._key = key
        self._read: dict[str, tuple[RestNode, SlurmNode]] = {}
        self._queue = JobList(self._load)
        self._parser = Parser()
        # slurmrestd has no TLS; loading the authorities would cost 1.5 MiB and 20 ms for each cluster. trust_env: a proxy from the environment would
        # get the token.
        self._client = httpx2.AsyncClient(
            base_url=address,
            transport=transport,
            verify=False,
            trust_env=False,
            event_hooks={"response": [self._parser.watch]},
        )

    async def nodes(self) -> dict[str, SlurmNode]:
        """Return all nodes by name; raises SlurmError."""
        return (await self.fetch_nodes()).nodes

    async def fetch_nodes(self) -> NodeList:
        """Return all nodes; a node with an unchanged record is the same object as in the last answer. Raises SlurmError."""
        read: dict[str, tuple[RestNode, SlurmNode]] = {}

        def take(record: RestNode) -> None:
            if len(read) >= _MOST_NODES:
                raise SlurmError(f"slurmrestd: GET nodes/: the answer has more than {_MOST_NODES} nodes")
            read[record.name] = self._node(record)

        said = await records(
            self._client, await self._request("GET", "nodes/", bound=_NODES), "nodes", RestNode, take, _NODES
        )
        if said is None:
            raise SlurmError("slurmrestd: GET nodes/: HTTP 304, although the request has no update_time")
        self._read = read
        found = {name: node for name, (_, node) in read.items()}
        return NodeList(found, int(number(said.get("last_update"))), version(said))

    async def only(self, names: Iterable[str]) -> dict[str, SlurmNode]:
        """Return these nodes by name, with one request each; raises SlurmError, also for a node that Slurm does not know."""
        answers = await asyncio.gather(*(self._call("GET", f"node/{name}") for name in names))
        found = [record for answer in answers for record in _list(answer, "nodes", RestNode, "node/")]
        return {record.name: self._node(record)[1] for record in found}

    async def clock(self, node: str) -> float:
        """Return slurmctld's time, in whole seconds since 1970, from a query of a known node; 0 if the answer has none. Raises SlurmError."""
        return number((await self._call("GET", f"node/{node}")).get("last_update"))

    async def has_changed(self, moment: int) -> bool:
        """Return whether the nodes may have changed since `since`; raises SlurmError without an answer.

        slurmctld compares the time with its last change of any node, with a margin of a second. 24.11 answers 304 without a change. With a change it
        fails, because it also queries the partitions with that time. So every answer except 304 means yes.
        """
        if not moment:
            return True
        request = await self._request("GET", f"nodes/?update_time={moment}")
        async with errors_as_slurm_errors("GET nodes/", _ONE), opened(self._client, request, _ONE) as response:
            return response.status_code != httpx2.codes.NOT_MODIFIED

    def _node(self, record: RestNode) -> tuple[RestNode, SlurmNode]:
        known = self._read.get(record.name)
        return known if known is not None and known[0] == record else (record, read_node(record))

    async def drain(self, node: str, reason: str) -> None:
        """Drain a node, so that no new job starts on it; raises SlurmError."""
        await self._call("POST", f"node/{node}", {"state": ["DRAIN"], "reason": reason})

    async def resume(self, node: str) -> None:
        """Resume a drained node; raises SlurmError."""
        await self._call("POST", f"node/{node}", {"state": ["RESUME"]})

    async def set_fields(self, nodes: str, features: Sequence[str] | None, weight: int) -> None:
        """Set the features, unless None, and the weight of the nodes of a host list; raises SlurmError.

        Slurm refuses features that lack an active one, so all become active. If Slurm does not know a node of the list, it has already changed the
        nodes before it.
        """
        fields: dict[str, Any] = {"weight": {"set": True, "number": weight}}
        if features is not None:
            fields |= {"features": list(features), "features_act": list(features)}
        await self._call("POST", "nodes/", {"name": [nodes], **fields})

    async def save(self, node: str) -> None:
        """Make slurmctld save all its nodes to disk, by an update of one node without a change; raises SlurmError."""
        await self._call("POST", f"node/{node}", {})

    async def delete(self, node: str) -> None:
        """Remove the record of a dynamic node; raises SlurmError, also while a job runs on it or it is RESERVED.

        A suspended job does not prevent it.
        """
        await self._call("DELETE", f"node/{node}")

    async def jobs(self, since: float = float("-inf")) -> list[SlurmJob]:
        """Return the jobs that have nodes, from a list that was requested after `since`; raises SlurmError, also while a long list is still being
        read.

        All callers share one list (`joblist`), so it may be some seconds old, and older if it is long. `job` reads one job again before it is ended.
        `since` is by the clock of the event loop.
        """
        return list((await self._queue.get(since)).running)

    async def job(self, number_of: int) -> SlurmJob | None:
        """Return the current state of one job by its id; None if it no longer has nodes. Raises SlurmError."""
        found = await self._job(number_of)
        job = _read(found) if found else None
        if job is None or job.leader in (0, job.number):
            return job
        first = await self._job(job.leader)
        leader = _read(first) if first else None
        return with_leaders([job, leader] if leader else [job])[0]

    async def submit(self, body: Mapping[str, Any]) -> int:
        """Submit a batch job as root, and return its id; raises SlurmError, also if the job may have been submitted."""
        answer = await self._call("POST", "job/submit", body, user="root")
        number_of = answer.get("job_id")
        if not isinstance(number_of, int) or not number_of:
            raise SlurmError("slurmrestd: POST job/submit: the answer has no id of a job")
        return number_of

    async def runs(self, name: str, since: float = float("-inf")) -> list[CheckJob]:
        """Return the jobs of deep checks with this name, including recently ended ones, from a list requested after `since`; raises SlurmError.

        Only root's jobs count, because any user can give a job such a name.
        """
        return [each for each in (await self._queue.get(since)).checks if each.name == name]

    async def run(self, job: int) -> CheckJob | None:
        """Return one job of a deep check; None if Slurm no longer knows it. Raises SlurmError."""
        found = await self._job(job)
        return read_check_job(found) if found else None

    async def signal(self, job: int | str, signal: str) -> None:
        """Send a signal to all processes of a job, by the id that Slurm's commands use for it; raises SlurmError."""
        await self._call("DELETE", f"job/{job}?signal={signal}&flags=FULL_JOB")

    async def comment(self, job: int, text: str) -> None:
        """Set the AdminComment of a job; raises SlurmError."""
        await self._call("POST", f"job/{job}", {"admin_comment": text})

    async def cancel(self, job: int | str) -> None:
        """End a job without a requeue, by the id that Slurm's commands use for it; raises SlurmError."""
        await self._call("DELETE", f"job/{job}")

    async def reconfigure(self) -> None:
        """Make slurmctld read its files again and send them to every daemon; raises SlurmError."""
        await self._call("GET", "reconfigure/")

    async def close(self) -> None:
        """Close the connections."""
        self._queue.close()
        await self._client.aclose()

    async def _load(self) -> JobQueue:
        """Request the queue, and return the jobs that have nodes and those of deep checks."""
        running: list[SlurmJob] = []
        checks: list[CheckJob] = []
        held = 0

        def take(record: QueuedJob) -> None:
            nonlocal held
            if job := _read(record):
                held += len(job.nodes)
                if held > _MOST_HELD:
                    raise SlurmError(f"slurmrestd: GET jobs/: the jobs hold more than {_MOST_HELD} nodes together")
                running.append(job)
            if record.user_id == 0 and (record.name or "").startswith(PREFIX):
                checks.append(read_check_job(record))
            if len(running) + len(checks) > _MOST_JOBS:
                raise SlurmError(f"slurmrestd: GET jobs/: more than {_MOST_JOBS} jobs run")

        if (
            await records(self._client, await self._request("GET", "jobs/", bound=JOBS), "jobs", QueuedJob, take, JOBS)
            is None
        ):
            raise SlurmError("slurmrestd: GET jobs/: HTTP 304, although the request has no update_time")
        return JobQueue(tuple(with_leaders(running)), tuple(checks))

    async def _job(self, number_of: int) -> QueuedJob | None:
        try:
            answer = await self._call("GET", f"job/{number_of}")
        except SlurmError as error:
            if "Invalid job id" in str(error):
                return None
            raise
        found = _list(
            answer, "jobs", QueuedJob, "job/"
        )  # by the number of an array, or of a heterogeneous job, all its parts
        return next((each for each in found if each.job_id == number_of), None)

    async def _call(
        self, verb: str, path: str, body: Mapping[str, Any] | None = None, user: str = "slurm"
    ) -> dict[str, Any]:
        asked = _asked(verb, path)
        request = await self._request(verb, path, body, user)
        async with errors_as_slurm_errors(asked, _ONE), opened(self._client, request, _ONE) as response:
            await check(response, asked)
            text = await whole(response, _ONE.most)
        try:
            answer = decode(text or b"{}", dict[str, Any])
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise SlurmError(f"slurmrestd: {asked}: HTTP 200, but the answer is not a JSON object") from error
        if errors := answer.get("errors"):
            raise SlurmError(
                f"slurmrestd: {asked}: {first_error(errors) or 'the answer reports a failure without a cause'}"
            )
        return answer

    async def _request(
        self,
        verb: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        user: str = "slurm",
        bound: Bound | None = None,
    ) -> httpx2.Request:
        headers = self._headers(user)
        parser = await self._parser.choose(self._client, headers, _asked(verb, path), bound or _ONE)
        return self._client.build_request(verb, f"/slurm/{parser}/{path}", json=body, headers=headers)

    def _headers(self, user: str = "slurm") -> dict[str, str]:
        token = sign(self._key, user, int(time.time()) - 5, _LIFETIME)
        # Unless it is named, 24.11 writes JSON with all its blanks, whatever SLURMRESTD_JSON says (src/slurmrestd/operations.c, _resolve_mime).
        accepted = {"Accept": "application/json", "Accept-Encoding": "identity"}
        return {"X-SLURM-USER-NAME": user, "X-SLURM-USER-TOKEN": token, **accepted}


def version(answer: Mapping[str, Any]) -> str:
    """Return the version of Slurm in an answer; empty if the answer has none or an invalid one."""
    meta = answer.get("meta")
    slurm = meta.get("slurm") if isinstance(meta, dict) else None
    said = slurm.get("release") if isinstance(slurm, dict) else None
    return said if isinstance(said, str) and _VERSION.fullmatch(said) else ""


def _asked(verb: str, path: str) -> str:
    """Return the name of a request for an error, without its query: the query holds the time, and the text of a lasting error must not change."""
    return f"{verb} {path.partition('?')[0]}"


def _read(record: QueuedJob) -> SlurmJob | None:
    try:
        return read_job(record)
    except ValueError as error:
        raise SlurmError(f"slurmrestd: job {record.job_id}: {error}") from error


def _list(answer: Mapping[str, Any], what: str, type_: type[T], asked: str) -> list[T]:
    """Return a list of an answer; raises SlurmError if it is missing, because its absence does not mean that there are no records."""
    if what not in answer:
        raise SlurmError(f"slurmrestd: GET {asked}: the answer has no field {what}")
    try:
        return msgspec.convert(answer[what] or [], list[type_], strict=False)  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise SlurmError(f"slurmrestd: GET {asked}: the answer is invalid: {error}") from error
