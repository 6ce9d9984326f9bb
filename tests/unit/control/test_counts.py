"""The counts of a NodeSet while Slurm does not say how its nodes are."""

from typing import Any, cast

from soperator.control import gather


def test_while_slurm_does_not_answer_the_counts_are_what_was_known_last() -> None:
    """A new operator has heard nothing yet; that is not the same as none."""
    nobody = cast("Any", None)
    former = {"updated": 3, "idle": 1, "allocated": 2, "draining": 0, "down": 0, "ready": 3, "why": ""}
    kept = {"updated": 3, "idle": 1, "allocated": 2, "draining": 0, "down": 0}
    assert gather.counts(nobody, nobody, None, former) == kept
    assert gather.counts(nobody, nobody, None, {}) == {}
