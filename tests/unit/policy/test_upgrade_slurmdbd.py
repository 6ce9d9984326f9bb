"""slurmdbd gets a new image before slurmctld does."""

from hypothesis import given
from hypothesis import strategies as st

from soperator.policy.cluster.images import (
    DesiredImages,
    ImageRecord,
    RunningImages,
    stage,
)
from soperator.policy.cluster.slurm_config import Trial

ROLES = ("slurm", "login", "munge", "agents", "jail")
NEW, OLD = "slurm:2", "slurm:1"


def images(version):
    """An operator's images."""
    return {role: f"{role}:{version}" for role in ROLES}


def staged(**seen):
    """The stage of a cluster that follows an operator with new images, whose slurmctld has the former one."""
    record = ImageRecord(images(1), images(1), images(1))
    running = {"slurmctld": OLD, "placed": [OLD], "workers": {OLD: 2}, "versions": {OLD: "24.11.5", NEW: "24.11.6"}}
    return stage(
        record, DesiredImages({}, images(2), follows=True), RunningImages(**{**running, "may_try": True, **seen})
    )


def test_slurmctld_waits_for_slurmdbd_and_says_so():
    """It keeps its image until slurmdbd is ready with the new one."""
    for has in (OLD, ""):
        found = staged(slurmdbd=has)
        assert (found.slurmdbd, found.wanted["slurm"], found.record.workers["slurm"]) == (NEW, OLD, OLD)
        assert (found.reason, found.why) == ("Slurmdbd", f"slurmdbd must run {NEW} first; slurmctld follows")
    assert staged(slurmdbd=NEW).wanted["slurm"] == NEW


def test_without_accounting_nobody_waits():
    """slurmctld gets the image at once."""
    assert staged(slurmdbd=None).wanted["slurm"] == NEW


def test_slurmdbd_gets_no_image_that_was_not_tried():
    """It would change its tables for an image whose slurmctld refuses the configuration."""
    found = staged(slurmdbd=OLD, versions={OLD: "24.11.5"}, trials={NEW: Trial("refused", "why")})
    assert (found.slurmdbd, found.wanted["slurm"], found.reason) == (OLD, OLD, "Refused")


def test_a_slurmctld_that_has_the_image_goes_on_while_slurmdbd_is_down():
    """It is not put back for a database that is silent."""
    found = staged(slurmdbd="", slurmctld=NEW, placed=[NEW])
    assert (found.wanted["slurm"], found.slurmdbd) == (NEW, NEW)


@given(st.lists(st.sampled_from(["slurmdbd", "slurmctld", "falls"]), max_size=12))
def test_slurmctld_is_never_newer_than_slurmdbd(steps):
    """However the two come and go, what slurmctld is given slurmdbd was ready with before."""
    record, slurmdbd, placed, had = ImageRecord(images(1), images(1), images(1)), OLD, OLD, {OLD}
    for step in steps:
        seen = RunningImages(placed, {placed: 1}, [placed], {OLD: "24.11.5", NEW: "24.11.6"}, {}, True, slurmdbd)
        found = stage(record, DesiredImages({}, images(2), follows=True), seen)
        record = found.record
        if step == "slurmctld":
            assert found.wanted["slurm"] in had
            placed = found.wanted["slurm"]
        slurmdbd = {"slurmdbd": found.slurmdbd, "falls": ""}.get(step, slurmdbd)
        had |= {slurmdbd} - {""}
