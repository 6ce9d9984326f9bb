"""The verbs of the Kubernetes API; kinds are values and views are types.

Reads decode straight into a view. Writes take a dict with every field that we own and are sent as server-side apply, so that two writers never
overwrite each other's fields. The only PUT is that of the Lease, because its compare-and-swap needs one.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import httpx2
import msgspec

from soperator.kube import transport
from soperator.kube.depth import decoded
from soperator.kube.errors import Conflict, Expired, Malformed, NotFound
from soperator.kube.kinds import LEASE, Kind
from soperator.kube.objects import Lease
from soperator.kube.transport import Call
from soperator.kube.views import Custom, Meta, ObjectMeta
from soperator.kube.watch import Event, Timing, events


class Object(Protocol):
    """Any view: the verbs only need its metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata."""


V = TypeVar("V", bound=Object)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing(Generic[V]):
    """All objects of a list, and the resourceVersion from which a watch continues."""

    items: tuple[V, ...]
    version: str


@dataclass(frozen=True, slots=True)
class Deletion:
    """The options of a deletion: the required uid, the handling of dependents, a grace period in seconds, and the required resourceVersion."""

    uid: str | None = None
    propagation: str = "Background"
    grace: int | None = None
    version: str | None = None

    def body(self) -> dict[str, Any]:
        """Return the body of the request, a DeleteOptions."""
        options: dict[str, Any] = {"propagationPolicy": self.propagation}
        only = {"uid": self.uid, "resourceVersion": self.version}
        if any(only.values()):
            options["preconditions"] = {key: value for key, value in only.items() if value}
        if self.grace is not None:
            options["gracePeriodSeconds"] = self.grace
        return options


class _PageMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct, Generic[T]):
    metadata: _PageMeta
    items: list[T] | None = None


def _accept(view: type[Any], suffix: str = "") -> dict[str, str]:
    if not getattr(view, "metadata_only", False):
        return {"Accept": "application/json"}
    return {"Accept": f"application/json;as=PartialObjectMetadata{suffix};g=meta.k8s.io;v=v1,application/json"}


def _selected(labels: str | None, fields: str | None = None) -> dict[str, str]:
    return ({"labelSelector": labels} if labels else {}) | ({"fieldSelector": fields} if fields else {})


class Api:
    """One Kubernetes API server, used under one field manager. Every verb raises ApiError or Unreachable."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        field_manager: str = "soperator",
        namespace: str = "default",
        timing: Timing | None = None,
    ) -> None:
        self.transport = transport.Transport(client)
        self.field_manager = field_manager
        self.namespace = namespace
        self.timing = timing or Timing()

    @classmethod
    def connect(cls, user_agent: str = "soperator", field_manager: str = "soperator") -> Self:
        """Connect to the cluster that the Pod runs in, or to the one that KUBECONFIG names."""
        client, namespace = transport.connect(user_agent)
        return cls(client, field_manager, namespace)

    @property
    def requests(self) -> Counter[tuple[str, str, int]]:
        """The number of sent requests, by (verb, kind, status)."""
        return self.transport.requests

    async def aclose(self) -> None:
        """Close every connection."""
        await self.transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def list(
        self,
        kind: Kind,
        view: type[V],
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        limit: int = 500,
    ) -> Listing[V]:
        """Read all objects, page by page. A continue token that expires on the way causes one full read."""
        chosen = _selected(labels, fields)
        try:
            return await self._pages(kind, view, kind.path(namespace), {**chosen, "limit": str(limit)})
        except Expired:
            return await self._pages(kind, view, kind.path(namespace), chosen)

    async def _pages(self, kind: Kind, view: type[V], path: str, params: dict[str, str]) -> Listing[V]:
        items: list[V] = []
        token = ""
        while True:
            more = {**params, "continue": token} if token else params
            page: _Page[V] = await self._decoded(
                Call("list", kind, "GET", path, more, headers=_accept(view, "List")),
                _Page[view],  # type: ignore[valid-type]
            )
            items += page.items or ()
            token = page.metadata.continue_
            if not token:
                return Listing(tuple(items), page.metadata.resource_version)

    async def watch(
        self,
        kind: Kind,
        view: type[V],
        since: str,
        namespace: str | None = None,
        labels: str | None = None,
        first: float | None = None,
        opened: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[Event[V], None]:
        """Yield every change after the resourceVersion `since`, and bookmarks; never ends without an exception.

        Raises Eof when the server ends the stream normally, Idle when it sends nothing for `timing.idle` seconds, or at first for `first`
        seconds, Expired when `since` is too old.
        Calls `opened` when the server has accepted. Close the iterator (`contextlib.aclosing`) to close the connection.
        """
        params = {
            **_selected(labels),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": str(self.timing.span()),
        }
        call = Call("watch", kind, "GET", kind.path(namespace), params, headers=_accept(view))
        response = await self.transport.send(call, idle=self.timing.idle)
        opened()
        async with aclosing(events(response, view, self.timing.idle, first or self.timing.idle)) as stream:
            async for event in stream:
                yield event

    async def get(self, kind: Kind, view: type[V], namespace: str | None, name: str) -> V:
        """Read one object; raises NotFound if there is none."""
        return await self._decoded(
            Call("get", kind, "GET", kind.path(namespace, name), headers=_accept(view)),
            view,
        )

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> Meta:
        """Create an object; raises AlreadyExists if its name is taken."""
        return await self.create_as(kind, Meta, obj)

    async def create_as(self, kind: Kind, view: type[V], obj: Mapping[str, Any]) -> V:
        """Create an object and return the result; raises AlreadyExists if its name is taken."""
        return await self._write("create", kind, kind.path(obj["metadata"].get("namespace")), obj, view)

    async def apply(
        self, kind: Kind, obj: Mapping[str, Any], force: bool = True, manager: str = "", at_once: bool = False
    ) -> Meta:
        """Apply an object with all fields that this field manager, or another one of ours, owns; return its new metadata.

        With `force`, fields of other managers become ours; without it they raise Conflict. Raises Invalid, and Conflict if `obj` names an outdated
        uid or resourceVersion. With `at_once` it raises TooBusy if the server postpones the request.
        """
        meta = obj["metadata"]
        path = kind.path(meta.get("namespace"), meta["name"])
        return await self._apply(kind, path, obj, Meta, force, manager, tries=1 if at_once else transport.TRIES)

    async def apply_as(self, kind: Kind, view: type[V], obj: Mapping[str, Any]) -> V:
        """Apply an object as `apply` does, and return the result."""
        meta = obj["metadata"]
        return await self._apply(kind, kind.path(meta.get("namespace"), meta["name"]), obj, view, force=True)

    async def apply_status(self, kind: Kind, obj: Mapping[str, Any]) -> Custom:
        """Apply the status subresource; `obj` has apiVersion, kind, name, namespace and status."""
        meta = obj["metadata"]
        path = kind.path(meta.get("namespace"), meta["name"], "status")
        return await self._apply(kind, path, obj, Custom, force=True)

    async def release(self, kind: Kind, meta: ObjectMeta, finalizer: str) -> None:
        """Remove a finalizer from an object; raises Conflict if the object's version differs from that of `meta`."""
        left = [each for each in meta.finalizers if each != finalizer]
        body = {"metadata": {"resourceVersion": meta.resource_version, "finalizers": left}}
        headers = {"Content-Type": "application/merge-patch+json", **_accept(Meta)}
        params = {"fieldManager": self.field_manager}
        path = kind.path(meta.namespace or None, meta.name)
        await self._decoded(Call("patch", kind, "PATCH", path, params, msgspec.json.encode(body), headers), Meta)

    async def replace(self, lease: Mapping[str, Any]) -> Lease:
        """Overwrite a Lease if its resourceVersion is still the given one; raises Conflict otherwise."""
        meta = lease["metadata"]
        return await self._write("update", LEASE, LEASE.path(meta["namespace"], meta["name"]), lease, Lease)

    async def delete(self, kind: Kind, namespace: str | None, name: str, how: Deletion | None = None) -> bool:
        """Delete an object; return False if it, or the one with the given uid, no longer exists.

        Raises Conflict if a resourceVersion was given and the object has another one now, so that the caller decides again. For the same reason a
        deletion that the server postpones raises TooBusy at once.
        """
        how = how or Deletion()
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", **how.body()})
        headers = {"Content-Type": "application/json"}
        try:
            call = Call("delete", kind, "DELETE", kind.path(namespace, name), {}, body, headers)
            await self.transport.send(call, tries=1 if how.version else transport.TRIES)
        except NotFound:
            return False
        except Conflict:
            if how.uid is None or how.version is not None:
                raise
            return False
        return True

    async def _apply(
        self,
        kind: Kind,
        path: str,
        obj: Mapping[str, Any],
        view: type[V],
        force: bool,
        manager: str = "",
        tries: int = transport.TRIES,
    ) -> V:
        params = {"fieldManager": manager or self.field_manager, "force": "true" if force else "false"}
        headers = {"Content-Type": "application/apply-patch+yaml", **_accept(view)}
        call = Call("patch", kind, "PATCH", path, params, msgspec.json.encode(obj), headers)
        return await self._decoded(call, view, tries)

    async def _write(self, verb: str, kind: Kind, path: str, obj: Mapping[str, Any], view: type[V]) -> V:
        method = {"create": "POST", "update": "PUT"}[verb]
        headers = {"Content-Type": "application/json", **_accept(view)}
        params = {"fieldManager": self.field_manager}
        return await self._decoded(Call(verb, kind, method, path, params, msgspec.json.encode(obj), headers), view)

    async def _decoded(self, call: Call, type_: type[T], tries: int = transport.TRIES) -> T:
        response = await self.transport.send(call, tries=tries)
        try:
            return decoded(msgspec.json.Decoder(type_), response.content)
        except msgspec.MsgspecError as error:
            raise Malformed(f"{call.verb} {call.kind} {call.path}: {error}") from error
