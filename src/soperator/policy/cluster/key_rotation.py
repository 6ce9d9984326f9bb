"""Computes the next step of a rotation of keys while the cluster runs, from the observed state.

Slurm's daemons can know several keys and sign with one (slurm.jwks), so its key is replaced in stages. Every daemon reaches a stage
before the next one starts:

    Known      every daemon knows the new key, the former key still signs
    Signing    the new key signs, the former key is still accepted
    Settling   no daemon signs with the former key, its signatures expire
    Alone      no daemon has the former key

munge knows one key. Every munged gets the new key (Laid), and then all use it at nearly the same time (Taken). Only slurmctld and the operator have
the key of REST, which changes at Signing or Taken.

Invariants, tested by interrupting at every step: every daemon accepts what any daemon signed, until it expires; two stages never overlap; a host
outside Kubernetes has the new key before any daemon signs with it; a started rotation is completed, even if its request is removed. Only the
annotations of the Secret are remembered. No time of day is trusted: the operator's monotonic clock measures for how long all daemons have been at a
stage, and a new operator waits the whole time again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from soperator.slurm.keys import RotationRecord, Stage

#: Seconds for which a signature of Slurm is valid (DEFAULT_TTL of auth/slurm in 24.11; the operator owns AuthInfo), doubled for differing clocks.
LIFE = 60.0
SKEW = 30.0

NEXT: Mapping[str, Mapping[str, Stage]] = MappingProxyType(
    {
        "slurm": {"": "Known", "Known": "Signing", "Signing": "Settling", "Settling": "Alone", "Alone": ""},
        "munge": {"": "Laid", "Laid": "Taken", "Taken": ""},
    }
)
_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "Known": "waiting until every daemon knows the new key",
        "Signing": "waiting until every daemon signs with the new key",
        "Settling": "waiting until everything that the former key signed has expired",
        "Alone": "waiting until no daemon has the former key",
        "Laid": "waiting until every munged has the new key",
        "Taken": "waiting until every munged uses the new key",
    }
)


@dataclass(frozen=True)
class RotationSnapshot:
    """The observed state of a rotation.

    `rest` is the request for which the key of REST was created. `waits` names a daemon that has not reached the stage; it is empty if all have.
    `lasted` is the number of seconds since all have reached it; it restarts when a daemon starts with an old copy on its Node. `outside` names the
    hosts outside Kubernetes that need the new key before it signs. `now` is recorded only for people.
    """

    kind: Literal["slurm", "munge"]
    request: str
    record: RotationRecord
    rest: str
    waits: str
    now: float
    lasted: float = 0.0
    outside: str = ""


@dataclass(frozen=True)
class RotationStep:
    """The annotations and the content to write to the Secret, whether REST needs a new key first, and a message about the progress."""

    note: RotationRecord | None = None
    make_rest: bool = False
    why: str = ""


def decide(seen: RotationSnapshot) -> RotationStep:
    """Return the next step of a rotation."""
    record = seen.record
    if not record.stage:
        asked = seen.request not in ("", record.request)
        return _enter(RotationRecord(seen.request, NEXT[seen.kind][""])) if asked else RotationStep()
    if record.stage not in NEXT[seen.kind]:
        return RotationStep(
            why=f"{_title(record)} is at stage {record.stage}, which auth.type {seen.kind} does not have"
        )
    if record.stage in ("Signing", "Taken") and seen.rest != record.request:
        return RotationStep(make_rest=True, why=_why(record, "the key of REST is being created"))
    if seen.waits:
        return RotationStep(why=_why(record, seen.waits))
    if record.stage == "Known" and seen.outside:
        return RotationStep(why=_why(record, seen.outside))
    left = LIFE + SKEW - seen.lasted
    if record.stage == "Settling" and left > 0:
        return RotationStep(why=_why(record, f"{left:.0f} s are left"))
    after = NEXT[seen.kind][record.stage]
    return _enter(RotationRecord(record.request, after, seen.now if after == "Settling" else 0.0))


def _enter(record: RotationRecord) -> RotationStep:
    return RotationStep(note=record, why=_why(record, "it begins") if record.stage else "")


def _title(record: RotationRecord) -> str:
    return f"rotation {record.request}"


def _why(record: RotationRecord, detail: str) -> str:
    return f"{_title(record)}: {_WORDS[record.stage]}: {detail}"
