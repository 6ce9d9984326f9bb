"""Whether the shared root has room left, as one worker of the cluster says.

A full root stops everybody at once, and what warns of it costs next to nothing: the container that looks at a worker's jail knows (spank/watch.c), so
one worker of each cluster is asked once a minute. Nobody is drained for it, for jobs that do not write go on.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from soperator.control import pods
from soperator.control.word import hear_jail, plain
from soperator.kube.views import Pod
from soperator.render import labels
from soperator.render.jail import jail_claim
from soperator.render.model import Cluster
from soperator.runtime.status import Condition
from soperator.runtime.store import Key

EVERY = 60.0


@dataclass
class Room:
    """What each cluster's worker said last, and when it was asked; `clock` in seconds."""

    clock: Callable[[], float]
    hear: Callable[[str], Awaitable[str]] = hear_jail
    _said: dict[Key, tuple[float, str]] = field(default_factory=dict)

    async def look(self, cluster: Cluster, found: Sequence[Pod]) -> list[Condition]:
        """The condition JailHasRoom; none where each node has a root of its own, or no worker has been heard yet. Never raises."""
        key = cluster.key
        if cluster.spec.jail.per_node:
            return []
        asked, said = self._said.get(key, (-EVERY, ""))
        if self.clock() - asked >= EVERY and (ip := _address(found)):
            said = await self.hear(ip)
            self._said[key] = (self.clock(), said)
        lines = said.splitlines()
        if not lines or lines[0] != "ok":
            return []
        full = plain(lines[1]) if len(lines) > 1 else ""
        why = f"{full}: enlarge the claim {jail_claim(cluster)}, or remove files that nobody needs" if full else ""
        return [Condition("JailHasRoom", "False" if why else "True", "AlmostFull" if why else "Enough", why)]

    def forget(self, key: Key) -> None:
        """Drop what is known of a cluster that is gone."""
        self._said.pop(key, None)


def _address(found: Sequence[Pod]) -> str:
    """Where the first worker that is ready listens; empty where none is."""
    ready = (pod for pod in found if pod.metadata.labels.get(labels.ROLE) == "worker" and pods.is_ready(pod))
    return next((pod.status.pod_ip for pod in ready if pod.status.pod_ip), "")
