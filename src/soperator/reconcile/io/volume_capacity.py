"""Whether a cluster's volumes have room and are writable.

One worker reports the shared root; the pods of slurmctld and of the operator's database report their own.

A full root stops all users at once; with a full state Slurm accepts no job, and forgets at its next start what it could not write; with a full
database slurmctld keeps its records until its queue is full. The warning costs little: the program that checks the jail reports it (spank/watch.c),
so one pod of each kind is queried once a minute. No node is drained for it, because jobs that do not write continue.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from soperator.kube.views import Pod
from soperator.reconcile import pod_status
from soperator.reconcile.io.jail_watch_client import hear_jail, plain
from soperator.render.cluster.database import database_claim
from soperator.render.cluster.slurmctld import state_claim
from soperator.render.jail.claims import jail_claim
from soperator.render.parts.model import Cluster
from soperator.runtime.cache.store import Key
from soperator.runtime.status import ReportedCondition

EVERY = 60.0
_SIZES = re.compile(r"^room (\d{1,19}) (\d{1,19}) (\d{1,19}) (\d{1,19}) (\d{1,19})$", re.MULTILINE)
#: A pod of an older image does not report it.
_READ_ONLY = re.compile(r"^readOnly\W{1,2}(true|1)$", re.MULTILINE)
_FACTS = ("room ", "readOnly")


@dataclass(frozen=True)
class Sizes:
    """The size of a volume, the space left for ordinary users, and the seconds that a look at it took.

    `files_available` is None where the file system does not say how many files it can have.
    """

    size: int
    available: int
    files_available: int | None
    look: float


def sizes_of(answer: str) -> Sizes | None:
    """The numbers of a line of an answer; None where a pod of an older image has none."""
    found = _SIZES.search(answer)
    if not found:
        return None
    size, available, files, free, took = map(int, found.groups())
    return Sizes(size, available, free if files else None, took / 1e6)


@dataclass
class Room:
    """The last report of each cluster's pods, and when they were asked; `clock` in seconds."""

    clock: Callable[[], float]
    hear: Callable[[str], Awaitable[str]] = hear_jail
    _said: dict[tuple[Key, str], tuple[float, str]] = field(default_factory=dict)

    async def of_jail(self, cluster: Cluster, workers: Sequence[Pod]) -> list[ReportedCondition]:
        """The condition JailHasRoom; none where each node has a root of its own, or before the first report. Never raises."""
        if cluster.spec.jail.per_node:
            return []
        lines = await self._lines(cluster, "jail", workers)
        if not lines or lines[0] != "ok":
            return []
        claim = jail_claim(cluster)
        mend = f"mend the volume of claim {claim}; no user can write a file"
        return _condition("JailHasRoom", lines, mend, f"enlarge the claim {claim}, or remove files that nobody needs")

    async def of_state(self, cluster: Cluster, controllers: Sequence[Pod]) -> list[ReportedCondition]:
        """The condition StateHasRoom; none before slurmctld's first report. Never raises."""
        remedy = (
            f"enlarge the claim {state_claim(cluster)}, or remove what is not slurmctld's; a full one takes no job, and what cannot be "
            "written is forgotten when slurmctld starts anew"
        )
        mend = f"mend the volume of claim {state_claim(cluster)}; slurmctld cannot write what it learns"
        return _answered("StateHasRoom", await self._lines(cluster, "state", controllers), mend, remedy)

    async def of_database(self, cluster: Cluster, databases: Sequence[Pod]) -> list[ReportedCondition]:
        """The condition DatabaseHasRoom; none where the operator runs no database, or before its first report. Never raises."""
        if not databases:
            return []
        claim = database_claim(cluster)
        remedy = f"enlarge the claim {claim}, or purge old records; with a full one slurmctld keeps its records until MaxDBDMsgs of them wait"
        mend = f"mend the volume of claim {claim}; slurmctld keeps what it has to tell"
        return _answered("DatabaseHasRoom", await self._lines(cluster, "database", databases), mend, remedy)

    async def _lines(self, cluster: Cluster, of: str, found: Sequence[Pod]) -> list[str]:
        key = (cluster.key, of)
        asked, said = self._said.get(key, (-EVERY, ""))
        if self.clock() - asked >= EVERY and (ip := _address(found)):
            said = await self.hear(ip)
            self._said[key] = (self.clock(), said)
        return said.splitlines()

    def measured(self) -> Iterator[tuple[Key, str, Sizes]]:
        """The last reports about the volumes `jail`, `state` and `database` of each cluster."""
        for (key, of), (_, said) in self._said.items():
            if sizes := sizes_of(said):
                yield key, of, sizes

    def forget(self, key: Key) -> None:
        """Forget a cluster that no longer exists."""
        for of in ("jail", "state", "database"):
            self._said.pop((key, of), None)


def _answered(kind: str, lines: Sequence[str], mend: str, remedy: str) -> list[ReportedCondition]:
    """The condition of a volume of one pod; none before its first report."""
    if not lines:
        return []
    if lines[0] != "ok":
        return [ReportedCondition(kind, "False", "NotAnswering", f"{plain(lines[0])}: {mend}")]
    return _condition(kind, lines, mend, remedy)


def _condition(kind: str, lines: Sequence[str], mend: str, remedy: str) -> list[ReportedCondition]:
    if _READ_ONLY.search("\n".join(lines[1:])):
        return [
            ReportedCondition(
                kind, "False", "ReadOnly", f"it is mounted read-only, as after an error of the disk: {mend}"
            )
        ]
    warnings = [each for each in lines[1:2] if not each.startswith(_FACTS)]
    full = plain(warnings[0]) if warnings else ""
    why = f"{full}: {remedy}" if full else ""
    return [ReportedCondition(kind, "False" if why else "True", "AlmostFull" if why else "Enough", why)]


def _address(found: Sequence[Pod]) -> str:
    """The address of the first ready pod; empty where none is ready."""
    return next((pod.status.pod_ip for pod in found if pod_status.is_ready(pod) and pod.status.pod_ip), "")
