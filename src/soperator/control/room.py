"""Whether there is room left on the shared root, as one worker of the cluster says, and on slurmctld's state, as its pod says.

A full root stops everybody at once; with a full state Slurm takes no job, and forgets at its next start what it could not write. What warns of both
costs next to nothing: who looks at a jail knows (spank/watch.c), so one pod of each kind is asked once a minute. Nobody is drained for it, for jobs
that do not write go on.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from soperator.control import pods
from soperator.control.word import hear_jail, plain
from soperator.kube.views import Pod
from soperator.render.controller import state_claim
from soperator.render.jail import jail_claim
from soperator.render.model import Cluster
from soperator.runtime.status import Condition
from soperator.runtime.store import Key

EVERY = 60.0


@dataclass
class Room:
    """What the pods of each cluster said last, and when they were asked; `clock` in seconds."""

    clock: Callable[[], float]
    hear: Callable[[str], Awaitable[str]] = hear_jail
    _said: dict[tuple[Key, str], tuple[float, str]] = field(default_factory=dict)

    async def of_jail(self, cluster: Cluster, workers: Sequence[Pod]) -> list[Condition]:
        """The condition JailHasRoom; none where each node has a root of its own, or no worker has been heard yet. Never raises."""
        if cluster.spec.jail.per_node:
            return []
        lines = await self._lines(cluster, "jail", workers)
        if not lines or lines[0] != "ok":
            return []
        return _condition(
            "JailHasRoom", lines[1:], f"enlarge the claim {jail_claim(cluster)}, or remove files that nobody needs"
        )

    async def of_state(self, cluster: Cluster, controllers: Sequence[Pod]) -> list[Condition]:
        """The condition StateHasRoom; none where no slurmctld has been heard yet. Never raises."""
        lines = await self._lines(cluster, "state", controllers)
        if not lines:
            return []
        if lines[0] != "ok":
            why = f"{plain(lines[0])}: mend the volume of claim {state_claim(cluster)}; slurmctld cannot write what it learns"
            return [Condition("StateHasRoom", "False", "NotAnswering", why)]
        return _condition(
            "StateHasRoom",
            lines[1:],
            f"enlarge the claim {state_claim(cluster)}, or remove what is not slurmctld's; a full one takes no job, and what cannot be "
            "written is forgotten when slurmctld starts anew",
        )

    async def _lines(self, cluster: Cluster, of: str, found: Sequence[Pod]) -> list[str]:
        key = (cluster.key, of)
        asked, said = self._said.get(key, (-EVERY, ""))
        if self.clock() - asked >= EVERY and (ip := _address(found)):
            said = await self.hear(ip)
            self._said[key] = (self.clock(), said)
        return said.splitlines()

    def forget(self, key: Key) -> None:
        """Drop what is known of a cluster that is gone."""
        for of in ("jail", "state"):
            self._said.pop((key, of), None)


def _condition(kind: str, warnings: Sequence[str], remedy: str) -> list[Condition]:
    full = plain(warnings[0]) if warnings else ""
    why = f"{full}: {remedy}" if full else ""
    return [Condition(kind, "False" if why else "True", "AlmostFull" if why else "Enough", why)]


def _address(found: Sequence[Pod]) -> str:
    """Where the first pod that is ready listens; empty where none is."""
    return next((pod.status.pod_ip for pod in found if pods.is_ready(pod) and pod.status.pod_ip), "")
