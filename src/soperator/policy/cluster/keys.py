"""Computes the repair of a Secret with keys that a person deleted or edited, from the observed state.

Running daemons have the key with which they started. Another key in the Secret has no effect until the next daemon starts; then two halves of the
cluster do not accept each other's messages, and jobs are lost. So the operator writes a copy of each Secret first.

Invariants, tested over all combinations:
- A foreign Secret of the same name is never read into the cluster nor changed.
- A key is created only if no daemon runs with a former key, or if daemons need not agree on it.
- While daemons run, only a key that is remembered is right: the key of the last pass, or the key that a rotation was about to write. A key is
  remembered before it is in a Secret. If none is remembered, every key is right.
- A copy that nobody edited, and whose key is right, is the source for the Secret. Without such a copy the Secret is the source, if its key is right.
- If neither is right, the operator reports it and changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from soperator.api.base import GROUP
from soperator.slurm.keys import KeyContent, Version

#: What to do: nothing; create a key; restore the Secret from its copy; write the copy from the Secret.
Act = Literal["rest", "make", "restore", "keep"]
_HOWTO = "docs/howto/rotate-keys.md#a-key-that-was-deleted"
_BROUGHT = "docs/howto/rotate-keys.md#a-key-of-your-own"
_SHOWN = 3


@dataclass(frozen=True)
class KeySecretSnapshot:
    """The observed state of one Secret.

    `live` is its content, `kept` the content of its copy; None if it is missing or a person edited the copy. `are_marked` says whether both have the
    right labels and owners. `known` are the remembered keys: the key of the last pass, and the key that a rotation was about to write; `holders`
    are the pods that run with either; both are empty if daemons need not agree. `found` is the fingerprint in the Secret, or else in its copy.
    `is_rotated` says whether a rotation wrote the copy while the memory is from an operator that announced no rotation.
    `foreign` is the Secret or the copy if it is not the operator's, and not provided for `cluster`.
    """

    name: str
    copy: str
    wanted: tuple[str, ...]
    live: KeyContent | None
    kept: KeyContent | None
    are_marked: bool = True
    known: Sequence[Version] = ()
    holders: Sequence[str] = ()
    found: Version | None = None
    is_rotated: bool = False
    cluster: str = ""
    foreign: str = ""


@dataclass(frozen=True)
class KeySecretStep:
    """The repair, or, if none is possible, the reason and a message."""

    act: Act = "rest"
    reason: str = ""
    why: str = ""


def decide(seen: KeySecretSnapshot) -> KeySecretStep:
    """Return the repair of the Secret."""
    if seen.foreign and not (seen.foreign == seen.name and seen.known and seen.holders):  # else its key decides
        return KeySecretStep(reason="KeyForeign", why=_foreign(seen))
    if seen.kept is not None:
        return _with_copy(seen, seen.kept)
    if seen.live is None:
        return KeySecretStep("make") if not seen.holders else KeySecretStep(reason="KeyLost", why=_lost(seen))
    if not seen.live.is_whole(seen.wanted):
        return KeySecretStep(reason="KeyIncomplete", why=_incomplete(seen, seen.live))
    if seen.holders and not _is_known(seen, seen.live):
        return KeySecretStep(reason="OtherKey", why=_other(seen))
    return KeySecretStep("keep")


def _with_copy(seen: KeySecretSnapshot, kept: KeyContent) -> KeySecretStep:
    if not kept.is_whole(seen.wanted):
        return KeySecretStep(reason="KeyIncomplete", why=_incomplete(seen, kept))
    if seen.holders and not seen.is_rotated and not _is_known(seen, kept):
        is_right = seen.live is not None and _is_known(seen, seen.live)
        return KeySecretStep("keep") if is_right else KeySecretStep(reason="OtherKey", why=_other(seen))
    is_same = seen.live is not None and (seen.live.files, seen.live.notes) == (kept.files, kept.notes)
    return KeySecretStep() if is_same and seen.are_marked else KeySecretStep("restore")


def _is_known(seen: KeySecretSnapshot, held: KeyContent) -> bool:
    return not seen.known or held.digest in {each.digest for each in seen.known}


def _foreign(seen: KeySecretSnapshot) -> str:
    return (
        f"Secret {seen.foreign} is not of SlurmCluster {seen.cluster} and stays unchanged; nothing that would mount it is created: "
        f"rename it, or if it is this cluster's key, annotate it with {GROUP}/brought-for={seen.cluster} ({_BROUGHT})"
    )


def _lost(seen: KeySecretSnapshot) -> str:
    return (
        f"Secrets {seen.name} and {seen.copy} are missing, but daemons in {_some(seen.holders)} run with their key: "
        f"restore it ({_HOWTO}); no other key is created while they run"
    )


def _other(seen: KeySecretSnapshot) -> str:
    theirs, which = seen.known[0], ""
    if seen.found and (seen.found.request, seen.found.stage) != (theirs.request, theirs.stage):
        which = f" (the key of {_rotation(seen.found)}, theirs is of {_rotation(theirs)})"
    return f"Secret {seen.name} has another key than the daemons in {_some(seen.holders)}{which}: restore theirs ({_HOWTO})"


def _rotation(version: Version) -> str:
    if not version.request:
        return "no rotation"
    return f"rotation {version.request}" + (f" at {version.stage}" if version.stage else "")


def _incomplete(seen: KeySecretSnapshot, held: KeyContent) -> str:
    missing = ", ".join(each for each in seen.wanted if not held.files.get(each))
    found = ", ".join(sorted(held.files)) or "no file that the cluster needs"
    return (
        f"Secret {seen.name} has {found} and lacks {missing}: add it, or restore the former spec.auth.type; "
        "docs/howto/troubleshoot.md explains how to change auth.type"
    )


def _some(holders: Sequence[str]) -> str:
    more = f" and {len(holders) - _SHOWN} more" if len(holders) > _SHOWN else ""
    return f"{', '.join(holders[:_SHOWN])}{more}"
