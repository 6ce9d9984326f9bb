"""A Kubernetes API server in memory, as an httpx2 transport.

It has what controllers depend on: resourceVersions, lists in pages, watches that resume and send bookmarks, server-side
apply with managedFields, the status subresource, generations, finalizers, a garbage collector with its three policies,
preconditions of deletions, compare-and-swap for PUT, and the errors 404, 409, 410 (in both shapes), 422 and 429. What it does not have: schemas,
defaults, field ownership conflicts. `FakeApi` answers; `World` is what it answers from, and what a test changes.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import httpx2

from soperator.kube.api import Api
from soperator.kube.watch import Timing
from tests.unit.fake_world import Fault, Json, Refusal, Where, World, has_fields, is_selected

META_TYPE = "as=PartialObjectMetadata"


WRITES = ("create", "patch", "update", "delete")


@dataclass(frozen=True)
class Request:
    """One request as the server saw it; `query` has the first value of each parameter."""

    method: str
    where: Where
    query: dict[str, str]
    body: Any
    is_metadata: bool
    is_merge: bool = False

    @property
    def verb(self) -> str:
        """Kubernetes' word for the request."""
        match self.method, self.where.name:
            case "GET", None:
                return "watch" if self.query.get("watch") == "true" else "list"
            case "GET", _:
                return "get"
            case _:
                return {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}[self.method]

    def __str__(self) -> str:
        where = self.where
        name = "/".join(part for part in (where.namespace, where.name, where.subresource) if part)
        return f"{self.verb} {where.plural} {name}".strip()


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in self._lines:
            yield line


@dataclass
class FakeApi(httpx2.AsyncBaseTransport):
    """The server: `world` is its content, `requests` what it was asked, `faults` what it will do wrong."""

    world: World = field(default_factory=World)
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    latency: float = 0.0
    bookmark: float = 60.0
    down: bool = False
    #: The logs of containers, by the name of the pod and of the container.
    logs: dict[tuple[str, str], str] = field(default_factory=dict)
    #: What it answers at paths that are no objects, such as /version.
    pages: dict[str, str] = field(default_factory=dict)
    #: After how many further writes, Events left out, it answers nothing any more; None for never.
    left: int | None = None

    def api(self, timing: Timing | None = None, manager: str = "soperator") -> Api:
        """Return a client of this server."""
        client = httpx2.AsyncClient(transport=self, base_url="http://fake")
        return Api(client, field_manager=manager, timing=timing)

    def asked(self, *verbs: str) -> list[str]:
        """Return the requests with these verbs, or all of them, in words."""
        return [str(request) for request in self.requests if not verbs or request.verb in verbs]

    def writes(self) -> list[str]:
        """Return the requests that wrote, in words."""
        return self.asked(*WRITES)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        body = await request.aread()
        if self.down:
            raise httpx2.ConnectError("connection refused")
        if request.url.path in self.pages:
            return httpx2.Response(200, text=self.pages[request.url.path])
        query = {key: values[0] for key, values in parse_qs(request.url.query.decode()).items()}
        asked = Request(
            request.method,
            Where.of(request.url.path),
            query,
            json.loads(body) if body else None,
            META_TYPE in request.headers.get("Accept", ""),
            request.headers.get("Content-Type") == "application/merge-patch+json",
        )
        if self.left is not None and asked.verb in WRITES and asked.where.plural != "events":
            self.down, self.left = self.left == 0, max(0, self.left - 1)
            if self.down:
                raise httpx2.ConnectError("connection refused")
        self.requests.append(asked)
        if self.latency:
            await asyncio.sleep(self.latency)
        try:
            self._misbehave(asked)
            return self._answer(asked)
        except Refusal as refusal:
            headers = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
            return httpx2.Response(refusal.status, json=refusal.body(), headers=headers)

    def _misbehave(self, asked: Request) -> None:
        for fault in [fault for fault in self.faults if fault.verb in (asked.verb, "*")]:
            if fault.plural in (asked.where.plural, "*") and fault.times > 0:
                fault.times -= 1
                if fault.status == 0:
                    raise httpx2.ReadError("connection reset")
                raise Refusal(fault.status, fault.reason, fault.message, retry_after=fault.retry_after)

    def _answer(self, asked: Request) -> httpx2.Response:
        world, where = self.world, asked.where
        match asked.verb:
            case "watch":
                return httpx2.Response(200, stream=_Stream(self._watch(asked)))
            case "list":
                return httpx2.Response(200, json=self._list(asked))
            case "get" if where.subresource == "log":
                return self._log(asked)
            case "get":
                return self._object(asked, world.get(where))
            case "create":
                return self._object(asked, world.create(where, asked.body, asked.query.get("fieldManager", "unknown")))
            case "update":
                return self._object(asked, world.replace(where, asked.body, asked.query.get("fieldManager", "unknown")))
            case "patch" if asked.is_merge:
                return self._object(asked, world.merge(where, asked.body, asked.query["fieldManager"]))
            case "patch":
                return self._object(asked, world.apply(where, asked.body, asked.query["fieldManager"]))
            case _:
                options = asked.body or {}
                only = options.get("preconditions", {})
                policy = options.get("propagationPolicy", "Background")
                world.delete(where, only.get("uid"), policy, only.get("resourceVersion", ""))
                return httpx2.Response(200, json={"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _log(self, asked: Request) -> httpx2.Response:
        pod, container = self.world.get(asked.where)["metadata"]["name"], asked.query.get("container", "")
        if (pod, container) not in self.logs:
            raise Refusal(400, "BadRequest", f"container {container} is not valid for pod {pod}")
        lines = self.logs[pod, container].splitlines(keepends=True)
        return httpx2.Response(200, text="".join(lines[-int(asked.query.get("tailLines", len(lines))) :]))

    def _object(self, asked: Request, obj: Json) -> httpx2.Response:
        return httpx2.Response(200, json=_shown(obj, asked))

    def _list(self, asked: Request) -> Json:
        world = self.world
        items = [obj for obj in world.all(asked.where) if is_selected(obj, asked.query.get("labelSelector", ""))]
        items = [obj for obj in items if has_fields(obj, asked.query.get("fieldSelector", ""))]
        start = 0
        version = str(world.version)
        if "continue" in asked.query:
            version, _, offset = asked.query["continue"].partition(":")
            if int(version) < world.compacted:
                raise Refusal(410, "Expired", "The provided continue parameter is too old")
            start = int(offset)
        end = start + int(asked.query.get("limit", len(items) or 1))
        meta: Json = {"resourceVersion": version}
        if end < len(items):
            meta["continue"] = f"{version}:{end}"
        return {"kind": "List", "metadata": meta, "items": [_shown(obj, asked) for obj in items[start:end]]}

    def _watch(self, asked: Request) -> AsyncIterator[bytes]:
        since = int(asked.query["resourceVersion"])
        if since < self.world.compacted and not self.world.expires_in_stream:
            raise Refusal(410, "Expired", f"too old resource version: {since} ({self.world.compacted})")
        return self._events(asked, since, self.world.cuts)

    async def _events(self, asked: Request, since: int, cuts: int) -> AsyncIterator[bytes]:
        world = self.world
        loop = asyncio.get_running_loop()
        end = loop.time() + float(asked.query.get("timeoutSeconds", "300"))
        beat = loop.time() + self.bookmark
        while loop.time() < end and cuts == world.cuts and not self.down:
            if world.is_silent:
                await asyncio.sleep(3600)
            if since < world.compacted and world.expires_in_stream:
                refusal = Refusal(410, "Expired", f"too old resource version: {since} ({world.compacted})")
                yield _line("ERROR", refusal.body())
                return
            for version, type_, where, obj in world.after(since):
                since = version
                if where.matches(asked.where):
                    # Who leaves the selection is deleted for those who watch it.
                    is_in = is_selected(obj, asked.query.get("labelSelector", ""))
                    yield _line(type_ if is_in else "DELETED", _shown(obj, asked))
            if loop.time() >= beat:
                beat = loop.time() + self.bookmark
                yield _line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(since)}})
            if not world.after(since):  # a reader that was slow has missed none
                await world.wait(min(beat, end) - loop.time())


def _shown(obj: Json, asked: Request) -> Json:
    if not asked.is_metadata:
        return obj
    return {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": obj["metadata"]}


def _line(type_: str, obj: Json) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


async def eventually(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Return once the condition holds; raise TimeoutError if it does not within so many (virtual) seconds."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
