"""With which images each part of a cluster runs, and when new ones come: a function of what is seen.

- What the spec does not name is what the operator had when it first saw the cluster, until a person asks for what it has now. So an upgrade
  of the operator restarts nothing.
- New images go the way of Slurm's upgrades: slurmctld first; slurmrestd and the workers when it runs with them; login when every worker does.
  A daemon or a client of Slurm may be older than the slurmctld that it speaks to, by up to two releases, and never newer
  (slurm.schedmd.com/upgrades.html). Whether two images are two releases cannot be seen, so the order is kept for any two.

Nothing is remembered but the record, which stands in the cluster's status.
"""

from collections.abc import Mapping
from dataclasses import dataclass

#: Images by their roles: slurm, login, munge, populate, jail, sssd.
Images = Mapping[str, str]


@dataclass(frozen=True)
class Record:
    """What was taken over, how far it came, and the last request that was carried out."""

    defaults: Images
    workers: Images
    login: Images
    request: str = ""


@dataclass(frozen=True)
class Wish:
    """What the spec names, what the operator has for the rest, and whether that is to be taken over."""

    said: Images
    own: Images
    request: str = ""
    follows: bool = False


@dataclass(frozen=True)
class Running:
    """The image of Slurm that every slurmctld is ready with, empty where not all are with the same one, and how many workers have which."""

    slurmctld: str = ""
    workers: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Stage:
    """The images of slurmctld, and of the others by the record; a reason and a sentence where something is yet to come."""

    wanted: Images
    record: Record
    reason: str = ""
    why: str = ""


def stage(record: Record | None, wish: Wish, running: Running) -> Stage:
    """The images that each part is to have now."""
    asked = wish.follows or bool(record and wish.request and wish.request != record.request)
    taken = wish.own if record is None or asked else {**wish.own, **record.defaults}
    wanted = {**taken, **wish.said}
    if record is None:
        return Stage(wanted, Record(taken, wanted, wanted, wish.request))
    request = wish.request if asked else record.request
    slurm, behind = wanted["slurm"], _behind(wanted["slurm"], running)
    may_work = slurm in (record.workers.get("slurm"), running.slurmctld)
    may_log_in = slurm == record.login.get("slurm") or (may_work and not behind)
    workers, login = wanted if may_work else record.workers, wanted if may_log_in else record.login
    reason, why = _told(wish, taken, slurm, may_work, may_log_in, behind)
    return Stage(wanted, Record(taken, workers, login, request), reason, why)


def _behind(slurm: str, running: Running) -> int:
    return sum(count for image, count in (running.workers or {}).items() if image != slurm)


def _told(wish: Wish, taken: Images, slurm: str, may_work: bool, may_log_in: bool, behind: int) -> tuple[str, str]:
    if not may_work:
        return "Controller", f"slurmctld is to run {slurm} first; workers and login follow"
    if not may_log_in:
        return "Workers", f"{behind} workers are yet to run {slurm}; login follows when all do"
    others = sorted(role for role, image in wish.own.items() if taken.get(role) != image and role not in wish.said)
    if others:
        return "Held", (
            f"this operator has other images for {', '.join(others)}; the cluster keeps those that it was made with: "
            "a new word in spec.upgrade.request takes them over"
        )
    return "", ""
