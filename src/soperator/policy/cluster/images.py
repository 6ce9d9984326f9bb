"""Computes the images of each part of a cluster, and when a part gets a new image, from the observed state.

- An image that the spec does not name is the operator's default at the time when it first saw the cluster, until a person requests the present
  default, so that an upgrade of the operator restarts nothing.
- New images are rolled out in the order of a Slurm upgrade: first slurmdbd, if it exists, then slurmctld, then slurmrestd and the workers,
  and login pods when every worker has the new image. A daemon or a client of Slurm may be up to three releases older than the slurmctld or slurmdbd
  that it connects to, and never newer (slurm.schedmd.com/upgrades.html). The order is kept for any two images.
- slurmctld gets a new image only when a trial slurmctld of that image has read the cluster's configuration. The trial also reports the version of
  Slurm. slurmctld is never downgraded: an older release refuses the state that a newer one wrote, and would not start.

Only the record and the versions are remembered.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from soperator.policy.cluster.slurm_config import Trial

#: Images by their roles: slurm, login, munge, agents, jail, sssd, mariadb.
Images = Mapping[str, str]
#: Roles that have Slurm, or speak to it, from one image.
_TOGETHER = ("slurm", "login", "munge")


@dataclass(frozen=True)
class ImageRecord:
    """The adopted images, the progress of their rollout, and the last completed request."""

    defaults: Images
    workers: Images
    login: Images
    request: str = ""


@dataclass(frozen=True)
class DesiredImages:
    """The images of the spec, the operator's defaults for the others, and whether the cluster adopts the defaults."""

    said: Images
    own: Images
    request: str = ""
    follows: bool = False


@dataclass(frozen=True)
class RunningImages:
    """The Slurm image with which every slurmctld is ready (empty if they differ), and the number of workers by image.

    `placed` are the images of slurmctld's pods, ready or not. `versions` maps images that were tried to their Slurm version, empty if an image
    reported none; `trials` are the trials in progress. Without `may_try` no configuration exists for the trial of an image. `slurmdbd` is the image
    with which slurmdbd is ready, empty while it is not ready, and None if the cluster does not use it.
    """

    slurmctld: str = ""
    workers: Mapping[str, int] | None = None
    placed: Collection[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    trials: Mapping[str, Trial] = field(default_factory=dict)
    may_try: bool = False
    slurmdbd: str | None = None


@dataclass(frozen=True)
class Stage:
    """The images of slurmctld, slurmdbd and the other parts according to the record, with a reason and a message while a rollout is in progress.

    `tries` are images to try, and `versions` the known ones.
    """

    wanted: Images
    record: ImageRecord
    slurmdbd: str = ""
    reason: str = ""
    why: str = ""
    tries: Collection[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SlurmctldImageGate:
    """Why slurmctld keeps its current image, as a message; empty if it may get another."""

    stays: str = ""
    reason: str = ""
    why: str = ""
    tries: Collection[str] = ()


#: For how many images the version is remembered.
KEPT = 8


def stage(record: ImageRecord | None, desired: DesiredImages, running: RunningImages) -> Stage:
    """Return the images for each part at this time."""
    asked = desired.follows or bool(record and desired.request and desired.request != record.request)
    taken = desired.own if record is None or asked else {**desired.own, **record.defaults}
    wanted = {**taken, **desired.said}
    if record is None:
        return Stage(wanted, ImageRecord(taken, wanted, wanted, desired.request), wanted["slurm"])
    request = desired.request if asked else record.request
    gate = _gate(record, wanted["slurm"], running)
    slurmdbd = gate.stays or wanted["slurm"]
    gate = gate if gate.stays else _behind_slurmdbd(record, slurmdbd, running)
    if gate.stays:
        wanted = {**wanted, **{role: record.workers.get(role, wanted[role]) for role in _TOGETHER}, "slurm": gate.stays}
    slurm, behind = wanted["slurm"], _behind(wanted["slurm"], running)
    may_work = slurm in (record.workers.get("slurm"), running.slurmctld)
    may_log_in = slurm == record.login.get("slurm") or (may_work and not behind)
    workers, login = wanted if may_work else record.workers, wanted if may_log_in else record.login
    reason, why = _reason_and_message(desired, taken, slurm, may_work, may_log_in, behind)
    reason, why = gate.reason or reason, gate.why or why
    return Stage(
        wanted, ImageRecord(taken, workers, login, request), slurmdbd, reason, why, gate.tries, _learned(running)
    )


def _gate(record: ImageRecord, slurm: str, running: RunningImages) -> SlurmctldImageGate:
    """Return whether slurmctld may get another image at this time, and if not, why."""
    has = next(iter(running.placed), record.workers.get("slurm", slurm))
    if slurm in running.placed or slurm == has or not running.may_try:
        return SlurmctldImageGate()
    known, trial = running.versions, running.trials.get(slurm) or Trial()
    tries = [image for image in (slurm, has) if image not in known]
    if slurm not in known:
        if trial.end == "refused":
            return SlurmctldImageGate(
                has, "Refused", f"slurmctld keeps {has}, because {slurm} refuses its configuration: {trial.said}", tries
            )
        why = f"{slurm} is tried, beside {has}" + (f": {trial.said}" if trial.said and trial.end != "passed" else "")
        return SlurmctldImageGate(has, "Trying", why, tries)
    if has not in known:
        return SlurmctldImageGate(has, "Trying", f"the Slurm version in {has} is not known yet", tries)
    ran = {image: known[image] for image in (has, record.workers.get("slurm", has)) if known.get(image)}
    newest = max(ran, key=lambda image: release(ran[image]), default="")
    if newest and known[slurm] and release(known[slurm]) < release(ran[newest]):
        return SlurmctldImageGate(
            has,
            "Downgrade",
            f"slurmctld keeps {has}: {slurm} has Slurm {known[slurm]}, which refuses the state that Slurm {ran[newest]} "
            "has written: set spec.images.slurm to an image of that release or a newer one",
        )
    return SlurmctldImageGate()


def _behind_slurmdbd(record: ImageRecord, slurm: str, running: RunningImages) -> SlurmctldImageGate:
    """Return whether slurmctld waits for slurmdbd, which accepts older daemons but no newer ones; a slurmctld that already has the image does not
    wait.
    """
    has = next(iter(running.placed), record.workers.get("slurm", slurm))
    if running.slurmdbd in (None, slurm) or slurm in running.placed or slurm == has:
        return SlurmctldImageGate()
    return SlurmctldImageGate(has, "Slurmdbd", f"slurmdbd must run {slurm} first; slurmctld follows")


def _learned(running: RunningImages) -> Mapping[str, str]:
    """Return the record of images, with the results of trials so far; an image that slurmctld runs can read its files, whatever its trial reports."""
    said = {image: trial.version for image, trial in running.trials.items() if trial.end == "passed"}
    said |= {image: "" for image, each in running.trials.items() if each.end == "refused" and image in running.placed}
    return dict(
        [*((image, each) for image, each in running.versions.items() if image not in said), *said.items()][-KEPT:]
    )


def release(version: str) -> tuple[int, ...]:
    """Return the release of a Slurm version, such as 24.11 for 24.11.5, which determines the format of its state; empty if the text is not a
    version.
    """
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts) if len(parts) == 2 and all(part.isdigit() for part in parts) else ()


def _behind(slurm: str, running: RunningImages) -> int:
    return sum(count for image, count in (running.workers or {}).items() if image != slurm)


def _reason_and_message(
    desired: DesiredImages, taken: Images, slurm: str, may_work: bool, may_log_in: bool, behind: int
) -> tuple[str, str]:
    if not may_work:
        return "Controller", f"slurmctld must run {slurm} first; workers and login follow"
    if not may_log_in:
        return "Workers", f"{behind} workers do not run {slurm} yet; login follows when all do"
    others = sorted(
        role for role, image in desired.own.items() if taken.get(role) != image and role not in desired.said
    )
    if others:
        return "Held", (
            f"this operator has other images for {', '.join(others)}, but the cluster keeps the images that it was "
            "created with: set a new value in spec.upgrade.request to adopt them"
        )
    return "", ""
