"""What becomes of a Secret with keys, over all combinations of what may have been deleted or edited."""

import itertools

import pytest

from soperator.decide.keys import Seen, decide
from soperator.slurm.keys import Held

MINE, OTHER = Held({"slurm.key": b"mine"}), Held({"slurm.key": b"other"})
LACKING = Held({"munge.key": b"mine"})
HELD = (None, MINE, OTHER, LACKING, Held({"slurm.key": b""}))


def seen(live, kept, in_force="", holders=(), are_marked=True):
    """One Secret, slurm.key of which is wanted."""
    return Seen("demo-auth-key", "demo-auth-key-kept", ("slurm.key",), live, kept, are_marked, in_force, holders)


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
    at_stage = Held(MINE.files, {"stage": "Known"})
    assert decide(seen(MINE, at_stage)).act == "restore"


def test_a_held_key_shows_no_key():
    """What is logged of it by accident has no content."""
    assert "mine" not in repr(MINE)
    assert MINE.digest != OTHER.digest
    assert MINE.digest != Held({"slurm.ke": b"ymine"}).digest
