"""Counts requests in an API server's audit log.

The log has one JSON object a line. A watch has two entries, one when its response begins and one when it ends, so the auditID identifies a
request. The first entry counts, and the last entry has the end of the request.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
OPERATOR = "system:serviceaccount:soperator-system:soperator"


@dataclass(frozen=True)
class Request:
    """One request; times are seconds since the epoch."""

    verb: str
    resource: str
    subresource: str
    name: str
    code: int
    began: float
    ended: float

    @property
    def is_write(self) -> bool:
        """Return whether the request changes an object other than the Lease and Events."""
        return self.verb in WRITES and self.resource not in ("leases", "events")

    @property
    def is_creation(self) -> bool:
        """Return whether the request created its object: creates and server-side applies both answer 201 then."""
        return self.is_write and self.code == 201 and not self.subresource


def requests(lines: Iterable[str], user: str, since: float = 0.0) -> list[Request]:
    """Return a user's requests that arrived at or after `since`, in the order of arrival; an incomplete last line is skipped."""
    found: dict[str, Request] = {}
    for entry in _entries(lines):
        if entry["user"]["username"] == user:
            read = _read(entry)
            known = found.get(entry["auditID"])
            found[entry["auditID"]] = replace(known, ended=read.ended, code=read.code) if known else read
    return sorted((each for each in found.values() if each.began >= since), key=lambda each: each.began)


def tail(log: Path, offset: int) -> list[str]:
    """Return the lines of a log after the given number of bytes."""
    with log.open("rb") as file:
        file.seek(offset)
        return file.read().decode(errors="replace").splitlines()


def by_verb(found: Iterable[Request]) -> Counter[str]:
    """Count the requests by verb; renewals of the Lease, and Events, are counted under those names."""
    names = {"leases": "lease", "events": "event"}
    return Counter(names.get(each.resource, each.verb) for each in found)


def last_write(found: Iterable[Request]) -> float | None:
    """Return when the last write was answered."""
    return max((each.ended for each in found if each.is_write), default=None)


def _entries(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def _read(entry: dict[str, Any]) -> Request:
    reference = entry.get("objectRef", {})
    return Request(
        verb=str(entry["verb"]),
        resource=reference.get("resource", ""),
        subresource=reference.get("subresource", ""),
        name=reference.get("name", ""),
        code=int(entry.get("responseStatus", {}).get("code", 0)),
        began=_seconds(str(entry["requestReceivedTimestamp"])),
        ended=_seconds(str(entry["stageTimestamp"])),
    )


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp.removesuffix("Z")).replace(tzinfo=UTC).timestamp()
