"""What becomes of a Secret with keys, over all combinations of what may have been deleted or edited."""

import itertools
from dataclasses import replace

import pytest

from soperator.policy.cluster.keys import KeySecretSnapshot, KeySecretStep, decide
from soperator.slurm.keys import KeyContent, Version

MINE, OTHER = KeyContent({"slurm.key": b"mine"}), KeyContent({"slurm.key": b"other"})
LACKING = KeyContent({"munge.key": b"mine"})
HELD = (None, MINE, OTHER, LACKING, KeyContent({"slurm.key": b""}))


def seen(live, kept, in_force="", holders=(), are_marked=True):
    """One Secret, slurm.key of which is wanted."""
    known = (Version(in_force),) if in_force else ()
    return KeySecretSnapshot(
        "demo-auth-key", "demo-auth-key-kept", ("slurm.key",), live, kept, are_marked, known, holders
    )


@pytest.mark.parametrize("live", HELD)
@pytest.mark.parametrize("kept", HELD)
@pytest.mark.parametrize("in_force", ["", MINE.digest])
@pytest.mark.parametrize("holders", [(), ("demo-worker-0",)])
def test_no_daemon_that_starts_finds_another_key_than_those_that_run(live, kept, in_force, holders):
    """What is written is a key that was there; a new one is drawn only where nobody runs, and a doubt is reported and nothing is written."""
    step = decide(seen(live, kept, in_force, holders))
    assert (step.act == "rest") or not step.reason
    if step.act == "make":
        assert live is None
        assert kept is None
        assert not holders
    if step.act == "restore":
        assert kept in (MINE, OTHER)
        assert not holders or in_force in ("", kept.digest)
        assert kept != live
    if step.act == "keep":
        assert live in (MINE, OTHER)
        assert not holders or in_force in ("", live.digest)
        assert kept is None or (holders and in_force == live.digest != kept.digest)
    if step.act == "rest" and not step.reason:
        assert live == kept
        assert not holders or in_force in ("", kept.digest)


@pytest.mark.parametrize(("live", "kept"), [*itertools.product(HELD, HELD)])
def test_after_its_act_nothing_is_left_to_do(live, kept):
    """The next look at what was written finds it right."""
    step = decide(seen(live, kept))
    after = {"make": (MINE, MINE), "restore": (kept, kept), "keep": (live, live)}.get(step.act)
    assert after is None or decide(seen(*after)) == decide(seen(MINE, MINE))


def test_labels_that_were_taken_off_are_written_again():
    """The content alone is not all of a Secret."""
    assert decide(seen(MINE, MINE, are_marked=False)).act == "restore"


def test_a_rotation_s_note_belongs_to_the_content():
    """A stage that was wiped comes back with the files that belong to it."""
    at_stage = KeyContent(MINE.files, {"stage": "Known"})
    assert decide(seen(MINE, at_stage)).act == "restore"


def test_a_held_key_shows_no_key():
    """What is logged of it by accident has no content."""
    assert "mine" not in repr(MINE)
    assert MINE.digest != OTHER.digest
    assert MINE.digest != KeyContent({"slurm.ke": b"ymine"}).digest


@pytest.mark.parametrize("held", [MINE, OTHER])
def test_a_key_that_a_rotation_announced_is_right_beside_the_one_in_force(held):
    """An operator may have ended after it said what it writes, and before or after it wrote it."""
    known = (Version(MINE.digest, "one"), Version(OTHER.digest, "two", "Known"))
    found = replace(seen(held, held, holders=("demo-worker-0",)), known=known)
    assert decide(found) == KeySecretStep()
    assert decide(replace(found, live=None)) == KeySecretStep("restore")
    assert decide(replace(found, kept=None)) == KeySecretStep("keep")


def test_a_key_of_another_rotation_is_refused_in_words():
    """The sentence names the Secret, the pods, both rotations, and where the remedy is."""
    third = KeyContent({"slurm.key": b"third"}, {"rotation": "one"})
    known = (Version(MINE.digest, "two"), Version(OTHER.digest, "three", "Known"))
    found = replace(
        seen(third, third, holders=("demo-worker-0",)), known=known, found=Version(third.digest, "one", "Signing")
    )
    assert decide(found) == KeySecretStep(
        reason="OtherKey",
        why="Secret demo-auth-key has another key than the daemons in demo-worker-0 (the key of rotation one at Signing, theirs is of "
        "rotation two): restore theirs (docs/howto/rotate-keys.md#a-key-that-was-deleted)",
    )
    assert decide(replace(found, live=OTHER)) == KeySecretStep("keep")
    assert decide(replace(found, live=MINE)) == KeySecretStep("keep")
    assert decide(replace(found, is_rotated=True)) == KeySecretStep()
