"""The content of the fake API server: objects, their history, and the rules of writing."""

import asyncio
import copy
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from soperator.kube.kinds import Kind, kind_of
from tests.unit import fake_gc, fake_ssa

Json = dict[str, Any]
Rule = Callable[[Json | None, Json], str | None]


@dataclass(frozen=True)
class Where:
    """A place in the API: a collection, an object in it, or a subresource of that."""

    group: str
    plural: str
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None

    @classmethod
    def of(cls, path: str) -> Self:
        """Parse a URL path."""
        _, root, *rest = path.split("/")
        group = "" if root == "api" else rest.pop(0)
        rest.pop(0)
        namespace = None
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        return cls(group, rest[0], namespace, *rest[1:3])

    @classmethod
    def at(cls, kind: Kind, namespace: str, name: str) -> Self:
        """Return where an object is."""
        return cls(kind.group, kind.plural, namespace or None, name)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What identifies the object."""
        return self.group, self.plural, self.namespace or "", self.name or ""

    def matches(self, collection: "Where") -> bool:
        """Say whether this object is in the collection."""
        same = (self.group, self.plural) == (collection.group, collection.plural)
        return same and collection.namespace in (None, self.namespace)


class Refusal(Exception):  # noqa: N818
    """An error that the server answers with."""

    def __init__(
        self, status: int, reason: str, message: str, causes: tuple[Json, ...] = (), retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message
        self.causes, self.retry_after = causes, retry_after

    def body(self) -> Json:
        """Return the Status object."""
        return {
            "kind": "Status",
            "status": "Failure",
            "code": self.status,
            "reason": self.reason,
            "message": self.message,
            "details": {"causes": list(self.causes)},
        }


@dataclass
class Fault:
    """What the server does wrong, `times` times, to requests of a verb on a plural; status 0 resets the connection."""

    verb: str = "*"
    plural: str = "*"
    status: int = 500
    reason: str = "InternalError"
    message: str = "injected"
    retry_after: float | None = None
    times: int = 1


def is_selected(obj: Json, selector: str) -> bool:
    """Evaluate a label selector made of `key=value` and `key` terms."""
    labels = obj["metadata"].get("labels", {})
    for term in filter(None, selector.split(",")):
        key, equals, value = term.partition("=")
        if key not in labels or (equals and labels[key] != value.lstrip("=")):
            return False
    return True


def has_fields(obj: Json, selector: str) -> bool:
    """Evaluate a field selector made of `path=value` terms."""
    for term in filter(None, selector.split(",")):
        path, _, value = term.partition("=")
        found: Any = obj
        for key in path.split("."):
            found = found.get(key, {})
        if found != value:
            return False
    return True


@dataclass
class World:
    """All objects, by place, with the history that watches replay; `now` dates what is written."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    rules: list[Rule] = field(default_factory=list)
    expires_in_stream: bool = False
    is_silent: bool = False
    version: int = 100
    compacted: int = 0
    cuts: int = 0
    objects: dict[tuple[str, str, str, str], Json] = field(default_factory=dict)
    history: list[tuple[int, str, Where, Json]] = field(default_factory=list)
    _applied: dict[tuple[str, str, str], Json] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def compact(self) -> None:
        """Forget all history, so that every older resourceVersion is expired."""
        self.version += 1
        self.compacted = self.version
        self.history.clear()
        self._wake()

    def cut(self) -> None:
        """End every running watch in the ordinary way."""
        self.cuts += 1
        self._wake()

    def seed(self, obj: Json, manager: str = "kubectl") -> Json:
        """Put an object in, as somebody else's."""
        meta = obj["metadata"]
        kind = kind_of(obj)
        return self.create(Where(kind.group, kind.plural, meta.get("namespace"), None), obj, manager)

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return an object, or None."""
        return self.objects.get(Where.at(kind, namespace, name).key)

    def change(self, kind: Kind, key: tuple[str, str], patch: Json, manager: str = "kubectl", sub: str = "") -> Json:
        """Merge `patch` into an object, as somebody else; `sub` is the subresource written through."""
        where = Where.at(kind, *key)
        old = self.get(where)
        new = fake_ssa.apply(old, {}, patch)
        return self._store(where, old, new, (manager, "Update", sub))

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete an object, as somebody else."""
        self.delete(Where.at(kind, namespace, name))

    def get(self, where: Where) -> Json:
        """Return an object; raise 404."""
        try:
            return self.objects[where.key]
        except KeyError:
            raise Refusal(404, "NotFound", f'{where.plural} "{where.name}" not found') from None

    def all(self, where: Where) -> list[Json]:
        """Return a collection, ordered by name."""
        found = [
            (key, obj) for key, obj in self.objects.items() if Where(key[0], key[1], key[2] or None).matches(where)
        ]
        return [obj for _, obj in sorted(found, key=lambda pair: pair[0])]

    def create(self, where: Where, obj: Json, manager: str) -> Json:
        """Add an object; raise 409 if it is there."""
        meta = obj["metadata"]
        name = meta.get("name") or f"{meta['generateName']}{uuid.uuid4().hex[:5]}"
        place = Where(where.group, where.plural, where.namespace, name)
        if place.key in self.objects:
            raise Refusal(409, "AlreadyExists", f'{place.plural} "{name}" already exists')
        return self._store(place, None, {**obj, "metadata": {**meta, "name": name}}, (manager, "Update", ""))

    def replace(self, where: Where, obj: Json, manager: str) -> Json:
        """Overwrite an object; raise 409 if its resourceVersion is another one."""
        old = self.get(where)
        asked = obj["metadata"].get("resourceVersion")
        if asked not in (None, old["metadata"]["resourceVersion"]):
            raise Refusal(409, "Conflict", f'{where.plural} "{where.name}": the object has been modified')
        return self._store(
            where, old, {**obj, "metadata": {**old["metadata"], **obj["metadata"]}}, (manager, "Update", "")
        )

    def merge(self, where: Where, patch: Json, manager: str) -> Json:
        """Apply a merge patch; raise 409 if it names another resourceVersion."""
        old = self.get(where)
        if patch["metadata"].get("resourceVersion") not in (None, old["metadata"]["resourceVersion"]):
            raise Refusal(409, "Conflict", f'{where.plural} "{where.name}": the object has been modified')
        return self._store(where, old, fake_ssa.apply(old, {}, patch), (manager, "Update", ""))

    def apply(self, where: Where, obj: Json, manager: str) -> Json:
        """Apply server-side."""
        old = self.objects.get(where.key)
        sub = where.subresource or ""
        if old is None and sub:
            raise Refusal(404, "NotFound", f'{where.plural} "{where.name}" not found')
        uid = obj["metadata"].get("uid")
        if uid is not None and old is not None and old["metadata"]["uid"] != uid:
            causes = ({"field": "metadata.uid", "message": "field is immutable"},)
            raise Refusal(422, "Invalid", f'{where.plural} "{where.name}" is invalid', causes)
        if uid is not None and old is None:
            raise Refusal(409, "Conflict", f'{where.plural} "{where.name}": uid mismatch')
        version = obj["metadata"].get("resourceVersion")
        if version is not None and (old is None or old["metadata"]["resourceVersion"] != version):
            raise Refusal(409, "Conflict", f'{where.plural} "{where.name}": the object has been modified')
        slot = (old["metadata"]["uid"] if old else "", manager, sub)
        desired = {"status": obj.get("status", {})} if sub else obj
        new = fake_ssa.apply(old or {}, self._applied.get(slot, {}), desired)
        got = self._store(where, old, new, (manager, "Apply", sub))
        self._applied[got["metadata"]["uid"], manager, sub] = copy.deepcopy(desired)
        return got

    def delete(self, where: Where, uid: str | None = None, policy: str = "Background", version: str = "") -> None:
        """Delete an object by a policy, and do the garbage collector's part; finalizers keep it as terminating."""
        old = self.get(where)
        if uid is not None and old["metadata"]["uid"] != uid:
            raise Refusal(409, "Conflict", "the UID in the precondition does not match")
        if version and old["metadata"]["resourceVersion"] != version:
            raise Refusal(409, "Conflict", "the ResourceVersion in the precondition does not match")
        self.delete_key(where.key, policy)

    def delete_key(self, key: tuple[str, str, str, str], policy: str = "Background") -> None:
        """Delete an object that is there."""
        old, where = self.objects[key], Where(key[0], key[1], key[2] or None, key[3])
        finalizers = old["metadata"].get("finalizers") or []
        if policy in fake_gc.FINALIZERS:
            finalizers = [
                *(each for each in finalizers if each != fake_gc.FINALIZERS[policy]),
                fake_gc.FINALIZERS[policy],
            ]
        if finalizers:
            since = old["metadata"].get("deletionTimestamp") or _stamp(self.now())
            self.patch_meta(key, deletionTimestamp=since, finalizers=finalizers)
            if policy in fake_gc.FINALIZERS:
                fake_gc.collect(self, old["metadata"]["uid"])
            return
        del self.objects[key]
        self.version += 1
        last = copy.deepcopy(old)
        last["metadata"]["resourceVersion"] = str(self.version)
        self._record("DELETED", where, last)
        fake_gc.collect(self, old["metadata"]["uid"])
        for ref in old["metadata"].get("ownerReferences", ()):
            fake_gc.finish(self, ref["uid"])

    def patch_meta(self, key: tuple[str, str, str, str], **meta: Any) -> None:
        """Set fields of an object's metadata, as Kubernetes itself."""
        old = self.objects[key]
        self._store(
            Where(key[0], key[1], key[2] or None, key[3]), old, {**old, "metadata": {**old["metadata"], **meta}}, None
        )

    def let_go(self, key: tuple[str, str, str, str], finalizer: str) -> None:
        """Take a finalizer off an object, which goes if it was the last."""
        left = self.objects[key]["metadata"].get("finalizers") or []
        self.patch_meta(key, finalizers=[each for each in left if each != finalizer])

    def after(self, version: int) -> list[tuple[int, str, Where, Json]]:
        """Return what happened after a version."""
        return [entry for entry in self.history if entry[0] > version]

    async def wait(self, seconds: float) -> None:
        """Return at the next change, or after so many seconds; a millisecond at least, or what rounding leaves of a time never passes."""
        event = self._changed
        try:
            async with asyncio.timeout(max(0.001, seconds)):
                await event.wait()
        except TimeoutError:
            return

    def _store(self, where: Where, old: Json | None, new: Json, writer: tuple[str, str, str] | None) -> Json:
        for rule in self.rules:
            if (refused := rule(old, new)) is not None:
                name, _, message = refused.partition(": ")
                causes = ({"reason": "FieldValueInvalid", "field": name, "message": message},)
                raise Refusal(422, "Invalid", f'{where.plural} "{where.name}" is invalid: {refused}', causes)
        new = copy.deepcopy(new)
        meta = new["metadata"]
        if writer and old and "deletionTimestamp" in old["metadata"] and _finalizers(new) - _finalizers(old):
            raise Refusal(422, "Invalid", "metadata.finalizers: none can be added to an object that is being deleted")
        if old is not None and _content(old) == _content(new):
            return old
        self.version += 1
        if old is None:
            meta["uid"] = str(uuid.uuid4())
            meta["creationTimestamp"] = _stamp(self.now())
            if where.namespace:
                meta["namespace"] = where.namespace
        if "spec" in new:
            same = old is not None and old.get("spec") == new["spec"]
            meta["generation"] = (old or new)["metadata"].get("generation", 0) + (0 if same else 1)
        meta["resourceVersion"] = str(self.version)
        if (
            writer is not None and writer[2] != "scale"
        ):  # of which the server notes no manager (tests/runtime/test_writes.py)
            manager, operation, sub = writer
            entry = {"manager": manager, "operation": operation, "time": _stamp(self.now())}
            others = [
                each for each in meta.get("managedFields", [])
                if (each["manager"], each["operation"], each.get("subresource", "")) != writer
            ]  # fmt: skip
            meta["managedFields"] = [*others, {**entry, **({"subresource": sub} if sub else {})}]
        place = Where(where.group, where.plural, where.namespace, where.name)
        self.objects[place.key] = new
        self._record("MODIFIED" if old else "ADDED", place, new)
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            self.delete(place)
        return new

    def _record(self, type_: str, where: Where, obj: Json) -> None:
        self.history.append((self.version, type_, where, obj))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _finalizers(obj: Json) -> set[str]:
    return set(obj["metadata"].get("finalizers") or ())


def _content(obj: Json) -> Json:
    generated = ("managedFields", "resourceVersion", "generation")
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key not in generated}}


def _stamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
