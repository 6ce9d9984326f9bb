"""Computes the availability of a cluster as a reason and a message, from the conditions of its parts, so that the first cause in start-up order is
reported.

A cluster is Available when a person can log in and a job can run: the jail is filled, slurmctld and slurmrestd answer, and at least one login pod and
one worker are ready if the spec has any. `why` names what is missing, also for an available cluster; it is empty only if everything in the spec is
ready.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from soperator.api.base import Problem


@dataclass(frozen=True)
class Role:
    """The numbers of ready and of desired pods of a role, and why the first of the others is not ready."""

    ready: int = 0
    wanted: int = 0
    trouble: str = ""

    def __str__(self) -> str:
        """Return the text for a column of kubectl, such as 2/3."""
        return f"{self.ready}/{self.wanted}"

    @property
    def is_short(self) -> bool:
        """Whether fewer pods are ready than desired."""
        return self.ready < self.wanted


@dataclass(frozen=True)
class ClusterFacts:
    """The state that a pass observed.

    `jail`, `points`, `keys`, `slurm`, `config`, `accounting` and `claims` are messages, empty without a fault; `confined` and `limits` are each a
    reason and such a message.
    """

    problems: Sequence[Problem] = ()
    jail: str = ""
    points: str = ""
    keys: str = ""
    confined: tuple[str, str] = ("UserNamespace", "")
    limits: tuple[str, str] = ("Unknown", "")
    slurm: str = ""
    config: str = ""
    accounting: str = ""
    claims: str = ""
    controller: Role = field(default_factory=Role)
    rest: Role = field(default_factory=Role)
    login: Role = field(default_factory=Role)
    workers: Role = field(default_factory=Role)


@dataclass(frozen=True)
class Availability:
    """Whether the object is available, the reason in CamelCase, and the message, empty if nothing is missing."""

    available: bool
    reason: str
    why: str


def judge(facts: ClusterFacts) -> Availability:
    """Return the availability of a cluster; of several causes it reports the first in start-up order."""
    shortages = list(_shortages(facts))
    blocking = next((each for each in shortages if each[0]), None)
    if blocking:
        return Availability(False, blocking[1], blocking[2])
    if shortages:
        return Availability(True, shortages[0][1], shortages[0][2])
    return Availability(True, "AllReady", "")


def _shortages(facts: ClusterFacts) -> Sequence[tuple[bool, str, str]]:
    """Return (whether it blocks, reason, message) for everything that is missing, in start-up order.

    A spec with problems blocks only its new parts: what already runs continues, and its own state decides.
    """
    running = facts.controller.ready > 0
    found = [(not running, "InvalidSpec", str(problem)) for problem in facts.problems]
    if facts.jail:
        found.append((True, "JailNotReady", facts.jail))
    elif facts.points:
        found.append((facts.login.ready == 0, "MountPointsMissing", facts.points))
    if facts.keys:
        found.append((not running, "KeysNotSettled", facts.keys))
    for name, role, reason in (
        ("slurmctld", facts.controller, "ControllerNotReady"),
        ("slurmrestd", facts.rest, "RestNotReady"),
        ("login", facts.login, "LoginNotReady"),
        ("workers", facts.workers, "WorkersNotReady"),
    ):
        if role.is_short:
            trouble = f": {role.trouble}" if role.trouble else ""
            found.append((role.ready == 0, reason, f"{name} {role} ready{trouble}"))
    if facts.slurm:
        found.append((False, "SlurmNotAnswering", facts.slurm))
    if facts.config:
        found.append((False, "ConfigNotApplied", facts.config))
    if facts.accounting:
        found.append((False, "AccountingNotReady", facts.accounting))
    if facts.claims:
        found.append((False, "ClaimBeingDeleted", facts.claims))
    return found
