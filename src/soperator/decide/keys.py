"""What becomes of a Secret with keys that somebody deleted or edited: a function of what is seen.

Daemons that run hold the key that they began with. Another key in the Secret does nothing until the next one starts, and then two
halves of the cluster do not understand each other, and jobs are lost. So each Secret has a copy beside it, which is written first.

Invariants, tested over all combinations:
- A key is made only where no daemon runs with a former one, or where daemons need not agree on it.
- A copy to which nobody wrote is right, and the Secret follows it, unless daemons run with another key and no rotation wrote the copy. Without one
  the Secret is right, if it has the key that is in force.
- What is neither is reported and left alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from soperator.slurm.keys import Held

#: What to do: nothing; draw a key; write the Secret as its copy is; write the copy as the Secret is.
Act = Literal["rest", "make", "restore", "keep"]
_HOWTO = "docs/howto/rotate-keys.md#a-key-that-was-deleted"
_SHOWN = 3


@dataclass(frozen=True)
class Seen:
    """What is known of one Secret.

    `live` is what it holds, `kept` what its copy holds, None where one is gone or somebody wrote to the copy. `are_marked` says whether labels and
    owners of both are as they should be. `in_force` is the digest of the key that was there last, and `holders` are pods that run with it;
    both are empty where daemons need not agree. `is_rotated` says whether a rotation wrote the copy: one that none wrote has the key in force,
    or was put there from elsewhere (a backup, another cluster).
    """

    name: str
    copy: str
    wanted: tuple[str, ...]
    live: Held | None
    kept: Held | None
    are_marked: bool = True
    in_force: str = ""
    holders: Sequence[str] = ()
    is_rotated: bool = False


@dataclass(frozen=True)
class Step:
    """What to do, and where nothing can be done a reason with a sentence."""

    act: Act = "rest"
    reason: str = ""
    why: str = ""


def decide(seen: Seen) -> Step:
    """What becomes of the Secret."""
    if seen.kept is not None:
        return _with_copy(seen, seen.kept)
    if seen.live is None:
        return Step("make") if not seen.holders else Step(reason="KeyLost", why=_lost(seen))
    if not seen.live.is_whole(seen.wanted):
        return Step(reason="KeyIncomplete", why=_incomplete(seen, seen.live))
    if seen.holders and seen.in_force not in ("", seen.live.digest):
        return Step(reason="OtherKey", why=_other(seen))
    return Step("keep")


def _with_copy(seen: Seen, kept: Held) -> Step:
    if not kept.is_whole(seen.wanted):
        return Step(reason="KeyIncomplete", why=_incomplete(seen, kept))
    if seen.holders and not seen.is_rotated and seen.in_force not in ("", kept.digest):
        is_right = seen.live is not None and seen.live.digest == seen.in_force
        return Step("keep") if is_right else Step(reason="OtherKey", why=_other(seen))
    is_same = seen.live is not None and (seen.live.files, seen.live.notes) == (kept.files, kept.notes)
    return Step() if is_same and seen.are_marked else Step("restore")


def _lost(seen: Seen) -> str:
    return (
        f"Secrets {seen.name} and {seen.copy} are gone, and daemons run with that key in {_some(seen.holders)}: put it back ({_HOWTO}); "
        "no other key is made while they run"
    )


def _other(seen: Seen) -> str:
    return f"Secret {seen.name} holds another key than the daemons in {_some(seen.holders)}: put theirs back ({_HOWTO})"


def _incomplete(seen: Seen, held: Held) -> str:
    missing = ", ".join(each for each in seen.wanted if not held.files.get(each))
    found = ", ".join(sorted(held.files)) or "nothing that the cluster needs"
    return (
        f"Secret {seen.name} has {found} and lacks {missing}: put it in, or set spec.auth.type to what it was; "
        "docs/howto/troubleshoot.md has how to change auth.type"
    )


def _some(holders: Sequence[str]) -> str:
    more = f" and {len(holders) - _SHOWN} more" if len(holders) > _SHOWN else ""
    return f"{', '.join(holders[:_SHOWN])}{more}"
