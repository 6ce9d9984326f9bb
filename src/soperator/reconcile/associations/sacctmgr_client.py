"""Reads the content of slurmdbd's database for each cluster, and changes it.

Both use sacctmgr in a pod of slurmctld, because slurmrestd 24.11 cannot set a field of an association without side effects (docs/decisions/0066). The
database is read rarely, and once for all objects. While slurmdbd does not answer, nothing is known and nothing is changed.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from soperator.policy.associations.accounts import Jobs, Words
from soperator.reconcile.io.slurm_exec import PodExec
from soperator.render.parts.model import Cluster
from soperator.runtime.cache.store import Key
from soperator.slurm import sacctmgr
from soperator.slurm.sacctmgr import AssociationTable
from soperator.slurmrest.client import SlurmError

#: Seconds until the database is read again, and the oldest answer that is used for an object that has changed.
PERIOD, FRESH = 30.0, 2.0
#: Seconds until a database that did not answer is asked again.
RETRY = 5.0
_LONGEST = 600
_NAMED = 5

_SACCTMGR, _SQUEUE = "/opt/soperator/bin/sacctmgr", "/opt/soperator/bin/squeue"
_SHOW = " && printf '\\036\\n' && ".join(
    f"timeout 15 {_SACCTMGR} -nP {' '.join(each)}".replace("{cluster}", '"$1"') for each in sacctmgr.QUESTIONS
)


@dataclass
class _LastAnswer:
    """The last answer of one cluster, or the last failure."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    at: float = float("-inf")
    database: AssociationTable | None = None
    error: str = ""


@dataclass(frozen=True)
class SacctmgrClient:
    """The cached content of each cluster's database."""

    pod_exec: PodExec
    pages: dict[Key, _LastAnswer] = field(default_factory=dict)

    async def read(self, cluster: Cluster, oldest: float = PERIOD) -> AssociationTable:
        """Return the database's content, at most the given number of seconds old; raises SlurmError if it cannot be read."""
        page = self.pages.setdefault(cluster.key, _LastAnswer())
        async with page.lock:
            age = asyncio.get_running_loop().time() - page.at
            if page.error and age < RETRY:
                raise SlurmError(page.error)
            if page.database is None or age >= oldest:
                await self._fill(cluster, page)
        if page.database is None:
            raise SlurmError(page.error)
        return page.database

    async def run(self, cluster: Cluster, words: Words) -> None:
        """Run a sacctmgr command. Raises SlurmError with sacctmgr's message, also if it is unknown whether the command took effect."""
        self.forget(cluster.key)
        try:
            await self._query(cluster, f"sacctmgr {words[0]} {words[1]}", f'exec {_SACCTMGR} -i "$@"', words)
        finally:
            self.forget(cluster.key)

    async def jobs(self, cluster: Cluster, where: Sequence[str]) -> Jobs:
        """Return the pending and running jobs, by user, that use an account or a QOS, selected by an option of squeue; raises SlurmError."""
        printed = await self._query(cluster, "squeue", f'exec {_SQUEUE} -a -h -o "%A %u" "$@"', where)
        found: dict[str, list[int]] = {}
        for line in printed.splitlines():
            number, _, user = line.strip().partition(" ")
            found.setdefault(user, []).append(int(number))
        return found

    async def users_of(self, cluster: Cluster, qos: str) -> list[str]:
        """Return the first few associations, of all clusters in the database, that may use a QOS; raises SlurmError."""
        printed = await self._query(
            cluster, "sacctmgr show", f'exec timeout 15 {_SACCTMGR} -nP "$@"', sacctmgr.EVERYWHERE
        )
        return sacctmgr.users_of(printed, qos)[:_NAMED]

    def forget(self, key: Key) -> None:
        """Discard the cached content, so that the next call reads the database again."""
        if page := self.pages.get(key):
            page.at, page.database, page.error = float("-inf"), None, ""

    async def _fill(self, cluster: Cluster, page: _LastAnswer) -> None:
        try:
            found = sacctmgr.read(await self._query(cluster, "sacctmgr show", _SHOW, [cluster.name]))
            is_there = found.account("root") is not None
            page.database = found if is_there else None
            page.error = "" if is_there else f"slurmdbd has no record of cluster {cluster.name} yet"
        except (SlurmError, ValueError) as error:
            page.database, page.error = None, str(error)
        page.at = asyncio.get_running_loop().time()

    async def _query(self, cluster: Cluster, what: str, script: str, words: Sequence[str]) -> str:
        try:
            return await self.pod_exec.beside_slurmctld(cluster, what, script, words)
        except SlurmError as error:
            raise SlurmError(" ".join(str(error).split())[:_LONGEST]) from error
