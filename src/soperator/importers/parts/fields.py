"""Objects of another system, of which every field is taken or reported.

An importer takes fields by their paths below spec. `rest` reports what it has not taken in the end, so that a field of a newer release is not
lost. Fields that Kubernetes itself fills in, and the status, are not settings and not reported.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from soperator.importers.parts.report import ImportReport, Outcome, ReportEntry, UnreadableInputError

T = TypeVar("T", str, int, bool, dict[str, Any], list[Any])
Path = tuple[str | int, ...]
Reasons = Mapping[str, tuple[Outcome, str]]

#: Parts of an object that nobody sets.
_NO_SETTINGS = frozenset({"apiVersion", "kind", "status"})
_SERVER_FIELDS = frozenset(
    {
        *(
            "name",
            "namespace",
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
            "selfLink",
        ),
        *("ownerReferences", "finalizers", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"),
    }
)
_KINDS = {str: "a text", int: "a whole number", bool: "true or false", dict: "a map", list: "a list"}
_SECRET = re.compile("pass(word|phrase)|token|private.?key", re.IGNORECASE)


@dataclass(frozen=True)
class ForeignObject:
    """A decoded object of another system."""

    api_version: str
    kind: str
    namespace: str
    name: str
    data: Mapping[str, Any]

    @property
    def group(self) -> str:
        """The group of its API; empty for Kubernetes' core."""
        return self.api_version.rpartition("/")[0]

    @property
    def place(self) -> str:
        """The place for the report."""
        return f"{self.kind} {self.name}"


def foreign_objects(source: str, documents: Sequence[object]) -> list[ForeignObject]:
    """Return the objects among decoded documents, lists taken apart; raises UnreadableInputError for anything else."""
    found = []
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "List" and isinstance(document.get("items"), list):
            found += foreign_objects(source, document["items"])
        elif document is not None:
            found.append(_foreign_object(source, document))
    return found


def objects_of_cluster(
    objects: Sequence[ForeignObject], group: str, kinds: Sequence[str], others: Iterable[str]
) -> tuple[list[ForeignObject], ForeignObject]:
    """Return the objects of a group, and the only one of its first kind, which is the cluster.

    Raises UnreadableInputError for a kind that is neither in `kinds` nor in `others`, and for none or several clusters.
    """
    mine, known = [each for each in objects if each.group == group], (*kinds, *others)
    for each in mine:
        if each.kind not in known:
            raise UnreadableInputError(
                f"{each.place}: unknown kind of {group}: remove the object; the import knows {', '.join(known)}"
            )
    clusters = [each for each in mine if each.kind == kinds[0]]
    if len(clusters) != 1:
        found = ", ".join(each.name for each in clusters) or "none"
        raise UnreadableInputError(
            f"the objects have {len(clusters)} {kinds[0]}s ({found}): give the objects of one cluster"
        )
    return mine, clusters[0]


def _foreign_object(source: str, document: object) -> ForeignObject:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not document.get("apiVersion") or not document.get("kind"):
        raise UnreadableInputError(
            f"{source}: {str(document)[:60]!r} is not a Kubernetes object: it needs apiVersion and kind"
        )
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise UnreadableInputError(f"{source}: {document['kind']}: metadata.name is missing: add it")
    namespace, name = str(metadata.get("namespace") or ""), str(metadata["name"])
    return ForeignObject(str(document["apiVersion"]), str(document["kind"]), namespace, name, document)


@dataclass
class ForeignFields:
    """The fields of one object, and which of them were taken."""

    place: str
    data: Mapping[str, Any]
    report: ImportReport
    taken: set[Path] = field(default_factory=set)

    def peek(self, path: str, kind: type[T]) -> T | None:
        """Return a value without taking it; None if it is absent or null. Raises UnreadableInputError for a value of another kind."""
        value: Any = self.data
        for step in steps_of(path):
            inner = value.get(step) if isinstance(value, dict) else None
            if isinstance(value, list) and isinstance(step, int) and step < len(value):
                inner = value[step]
            value = inner
        if value is None:
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            message = (
                f"{self.place}: {text_of_path(steps_of(path))}: {str(value)[:80]}: it is not {_KINDS[kind]}: correct it"
            )
            raise UnreadableInputError(message)
        return value

    def carried(self, path: str, kind: type[T], target: str) -> T | None:
        """Take a value that becomes `target`, and report it."""
        return self._take(path, kind, Outcome.CARRIED, f"now {target}")

    def check(self, path: str, kind: type[T], reason: str) -> T | None:
        """Take a value that a person must look at, and report it."""
        return self._take(path, kind, Outcome.CHECK, reason)

    def ours(self, path: str, reason: str) -> None:
        """Take a value, of any kind, that the operator determines."""
        self._skip(path, Outcome.OURS, reason)

    def left(self, path: str, reason: str) -> None:
        """Take a value, of any kind, that is not carried over."""
        self._skip(path, Outcome.LEFT, reason)

    def share(self, path: str, target: str) -> str:
        """Take a number or a percentage as a text; empty if it is absent."""
        steps = steps_of(path)
        value = (self.peek(path.rpartition(".")[0], dict) or {}).get(str(steps[-1]))
        if value is None or isinstance(value, bool) or not isinstance(value, str | int):
            return ""
        self.taken.add(steps)
        self.report.carried(self.place, setting_text(steps, value), target)
        return str(value)

    def read(self, path: str) -> str:
        """Take a text of which each setting is reported by itself; empty if it is absent."""
        self.taken.add(steps_of(path))
        return self.peek(path, str) or ""

    def where(self, path: str) -> str:
        """Return the place of a field for entries about parts of its value."""
        return f"{self.place}: {text_of_path(steps_of(path))}"

    def quantities(self, path: str, target: str) -> dict[str, str]:
        """Take a map of quantities; numbers become texts."""
        found = self.carried(path, dict, target) or {}
        for key, value in found.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise UnreadableInputError(
                    f"{self.place}: {text_of_path((*steps_of(path), key))}: {str(value)[:80]}: it is not a quantity: correct it"
                )
        return {str(key): str(value) for key, value in found.items()}

    def indexes(self, path: str) -> range:
        """Return the indexes of a list."""
        return range(len(self.peek(path, list) or []))

    def rest(self, reasons: Reasons) -> None:
        """Report every value that was not taken: by the longest of the paths in `reasons` above it, else as unknown."""
        for path, value in _leaves(self.data, ()):
            if path[0] in _NO_SETTINGS or (path[0] == "metadata" and len(path) > 1 and path[1] in _SERVER_FIELDS):
                continue
            if any(path[: len(each)] == each for each in self.taken):
                continue
            outcome, reason = _reason(path, reasons)
            if reason and value in ("", [], {}):
                continue  # a known field without a value says nothing
            reason = reason or "the import knows no such field: look for a field of ours, or do without it"
            self.report.entries.append(ReportEntry(outcome, self.place, setting_text(path, value), reason))

    def _take(self, path: str, kind: type[T], outcome: Outcome, reason: str) -> T | None:
        value, steps = self.peek(path, kind), steps_of(path)
        if value is not None:
            self.taken.add(steps)
            for each, leaf in _leaves(value, steps):
                self.report.entries.append(ReportEntry(outcome, self.place, setting_text(each, leaf), reason))
        return value

    def _skip(self, path: str, outcome: Outcome, reason: str) -> None:
        steps = steps_of(path)
        for each, value in _leaves(self.data, ()):
            if each[: len(steps)] == steps and each not in self.taken:
                self.taken.add(each)
                if value not in ("", [], {}):
                    self.report.entries.append(ReportEntry(outcome, self.place, setting_text(each, value), reason))


def in_order(entries: Sequence[ReportEntry], objects: Sequence[ForeignObject]) -> tuple[ReportEntry, ...]:
    """Return the entries in the order of the objects that they are about; what is about no object comes last."""
    order = {each.place: number for number, each in reversed(list(enumerate(objects)))}
    return tuple(sorted(entries, key=lambda each: order.get(each.place.partition(": ")[0], len(order))))


def steps_of(path: str) -> Path:
    """Return the steps of a path below spec, such as `volumes[0].name`; empty for spec itself."""
    found: list[str | int] = ["spec"]
    for name, index in re.findall(r"([^.\[\]]+)|\[([0-9]+)\]", path):
        found.append(int(index) if index else name)
    return tuple(found)


def text_of_path(path: Path) -> str:
    """Return a path as people write it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def setting_text(path: Path, value: object) -> str:
    """Return a field with its value for the report: on one line, short, and without a password."""
    names = [step for step in path if isinstance(step, str)]
    is_variable = names[-1:] == ["value"] and any(name.lower().endswith("env") for name in names)
    if isinstance(value, str) and (is_variable or (names and _SECRET.search(names[-1]))):
        return f"{text_of_path(path)}: (hidden)"
    text = str(value).replace("\n", "\\n")
    return f"{text_of_path(path)}: {text if len(text) <= 100 else text[:99] + '…'}"


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield each value that is no map and no list, and empty ones, with its path; nulls are left out, which mean absent fields."""
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from _leaves(each, (*path, str(key)))
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            yield from _leaves(each, (*path, number))
    elif value is not None:
        yield path, value


def _reason(path: Path, reasons: Reasons) -> tuple[Outcome, str]:
    """Return the outcome and the reason for a path; in the keys of `reasons`, which are below spec, a star stands for one name."""
    names = [step for step in path[path[0] == "spec" :] if isinstance(step, str)]
    for length in range(len(names), 0, -1):
        for pattern, found in reasons.items():
            words = pattern.split(".")
            if len(words) == length and all(word in ("*", name) for word, name in zip(words, names, strict=False)):
                return found
    return Outcome.LEFT, ""
