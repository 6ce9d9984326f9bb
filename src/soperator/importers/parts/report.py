"""The report of an import: one entry for each setting of the input, with its outcome."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from soperator.api.base import API_VERSION


class UnreadableInputError(Exception):
    """An input that cannot be read, as one sentence with its place and the remedy."""


class Outcome(StrEnum):
    """What became of a setting."""

    CARRIED = "carried"
    """It is a field of an object, or a line or file in its spec."""
    OURS = "ours"
    """The operator determines it; there is nothing to do."""
    CHECK = "check"
    """It is carried over, but means something else here, or needs something that a person provides."""
    LEFT = "left"
    """It is not carried over."""


@dataclass(frozen=True)
class ReportEntry:
    """One setting of the input: its place, the setting with its value, and its new place or the reason and the remedy."""

    outcome: Outcome
    place: str
    setting: str
    reason: str

    def __str__(self) -> str:
        """Return the entry as one line of the report."""
        return f"{self.outcome:<7}  {self.place}: {self.setting}: {self.reason}"


@dataclass
class ImportReport:
    """Collects the entries of one import, in the order of the input."""

    entries: list[ReportEntry] = field(default_factory=list)

    def carried(self, place: str, setting: str, target: str) -> None:
        """Add a setting that became `target`, the path of a field."""
        self.entries.append(ReportEntry(Outcome.CARRIED, place, setting, f"now {target}"))

    def ours(self, place: str, setting: str, reason: str) -> None:
        """Add a setting that the operator determines."""
        self.entries.append(ReportEntry(Outcome.OURS, place, setting, reason))

    def check(self, place: str, setting: str, reason: str) -> None:
        """Add a setting that is carried over and needs a person."""
        self.entries.append(ReportEntry(Outcome.CHECK, place, setting, reason))

    def left(self, place: str, setting: str, reason: str) -> None:
        """Add a setting that is not carried over."""
        self.entries.append(ReportEntry(Outcome.LEFT, place, setting, reason))


@dataclass(frozen=True)
class Imported:
    """The result of an import: our objects, clusters first, and the report."""

    objects: tuple[Mapping[str, Any], ...]
    entries: tuple[ReportEntry, ...]

    @property
    def counts(self) -> Mapping[Outcome, int]:
        """The number of entries of each outcome."""
        return Counter(each.outcome for each in self.entries)


def our_object(kind: str, name: str, spec: Mapping[str, Any], namespace: str = "") -> dict[str, Any]:
    """Return an object of ours, without empty parts of its spec."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": without_empty(spec)}


def without_empty(value: Any) -> Any:
    """Return the value without maps, lists and texts that are empty at any depth; `KEEP` in a map keeps an empty map."""
    if isinstance(value, Mapping):
        kept = {key: without_empty(each) for key, each in value.items() if key != KEEP}
        return {
            key: each for key, each in kept.items() if each not in ("", [], None) and (each != {} or _stays(value[key]))
        }
    if isinstance(value, list):
        return [without_empty(each) for each in value]
    return value


#: A key whose map is written even if it is empty, because its presence has a meaning, as `accounting: {}`.
KEEP = "\0keep"


def _stays(value: Any) -> bool:
    return isinstance(value, Mapping) and KEEP in value
