"""Reports whether a cluster's volumes have free space and are writable.

One worker reports the shared root; the pods of slurmctld and of the operator's database report their own. A full root stops all users at once. With a
full state volume, Slurm accepts no job and loses at its next start what it could not write. With a full database, slurmctld keeps its records until
its queue is full. The report costs little: the program that checks the jail sends it (spank/watch.c), so one pod of each kind is queried once a
minute. The operator drains no node for it, because jobs that do not write continue.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from soperator.kube.views import Pod
from soperator.reconcile import pod_status
from soperator.reconcile.io.jail_watch_client import plain, read_jail_report
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
    """The size of a volume and the space left for ordinary users, in bytes, and the seconds that the check took.

    `files_available` is None if the file system does not report how many more files it can hold.
    """

    size: int
    available: int
    files_available: int | None
    look: float


def sizes_of(answer: str) -> Sizes | None:
    """Return the numbers in a line of an answer; None if it has none, as from a pod of an older image."""
    found = _SIZES.search(answer)
    if not found:
        return None
    size, available, files, free, took = map(int, found.groups())
    return Sizes(size, available, free if files else None, took / 1e6)


@dataclass
class VolumeCapacity:
    """The last report of each cluster's pods, and when they were queried; `clock` in seconds."""

    clock: Callable[[], float]
    hear: Callable[[str], Awaitable[str]] = read_jail_report
    _said: dict[tuple[Key, str], tuple[float, str]] = field(default_factory=dict)

    async def of_jail(self, cluster: Cluster, workers: Sequence[Pod]) -> list[ReportedCondition]:
        """Return the condition JailHasRoom; none if each node has a root of its own, or before the first report. Never raises."""
        if cluster.spec.jail.per_node:
            return []
        lines = await self._lines(cluster, "jail", workers)
        if not lines or lines[0] != "ok":
            return []
        claim = jail_claim(cluster)
        repair_text = f"repair the volume of claim {claim}: no user can write a file"
        return _condition("JailHasRoom", lines, repair_text, f"enlarge claim {claim}, or remove unneeded files")

    async def of_state(self, cluster: Cluster, controllers: Sequence[Pod]) -> list[ReportedCondition]:
        """Return the condition StateHasRoom; none before slurmctld's first report. Never raises."""
        remedy = (
            f"enlarge claim {state_claim(cluster)}, or remove files that are not slurmctld's; with a full volume slurmctld accepts no job, "
            "and loses unwritten state when it restarts"
        )
        repair_text = f"repair the volume of claim {state_claim(cluster)}: slurmctld cannot write its state"
        return _answered("StateHasRoom", await self._lines(cluster, "state", controllers), repair_text, remedy)

    async def of_database(self, cluster: Cluster, databases: Sequence[Pod]) -> list[ReportedCondition]:
        """Return the condition DatabaseHasRoom; none if the operator runs no database, or before its first report. Never raises."""
        if not databases:
            return []
        claim = database_claim(cluster)
        remedy = f"enlarge claim {claim}, or purge old records; with a full volume slurmctld keeps its records until MaxDBDMsgs of them wait"
        repair_text = f"repair the volume of claim {claim}: slurmctld keeps its records meanwhile"
        return _answered("DatabaseHasRoom", await self._lines(cluster, "database", databases), repair_text, remedy)

    async def _lines(self, cluster: Cluster, of: str, found: Sequence[Pod]) -> list[str]:
        key = (cluster.key, of)
        asked, said = self._said.get(key, (-EVERY, ""))
        if self.clock() - asked >= EVERY and (ip := _address(found)):
            said = await self.hear(ip)
            self._said[key] = (self.clock(), said)
        return said.splitlines()

    def measured(self) -> Iterator[tuple[Key, str, Sizes]]:
        """Yield the last reports about the volumes `jail`, `state` and `database` of each cluster."""
        for (key, of), (_, said) in self._said.items():
            if sizes := sizes_of(said):
                yield key, of, sizes

    def forget(self, key: Key) -> None:
        """Forget a cluster that no longer exists."""
        for of in ("jail", "state", "database"):
            self._said.pop((key, of), None)


def _answered(kind: str, lines: Sequence[str], repair_text: str, remedy: str) -> list[ReportedCondition]:
    """Return the condition of one pod's volume; none before its first report."""
    if not lines:
        return []
    if lines[0] != "ok":
        return [ReportedCondition(kind, "False", "NotAnswering", f"{plain(lines[0])}: {repair_text}")]
    return _condition(kind, lines, repair_text, remedy)


def _condition(kind: str, lines: Sequence[str], repair_text: str, remedy: str) -> list[ReportedCondition]:
    if _READ_ONLY.search("\n".join(lines[1:])):
        return [
            ReportedCondition(
                kind, "False", "ReadOnly", f"it is mounted read-only, as after a disk error: {repair_text}"
            )
        ]
    warnings = [each for each in lines[1:2] if not each.startswith(_FACTS)]
    full = plain(warnings[0]) if warnings else ""
    why = f"{full}: {remedy}" if full else ""
    return [ReportedCondition(kind, "False" if why else "True", "AlmostFull" if why else "Enough", why)]


def _address(found: Sequence[Pod]) -> str:
    """Return the address of the first ready pod; empty if none is ready."""
    return next((pod.status.pod_ip for pod in found if pod_status.is_ready(pod) and pod.status.pod_ip), "")
