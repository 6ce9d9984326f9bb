"""Which workers to create, drain, delete and resume: the whole policy for a NodeSet's pods, as a function of what is seen.

Invariants, each tested by interrupting at every step:
- A pod is deleted only when its Slurm node is drained (DRAIN set and nothing runs or completes), or when no slurmd can be running in it.
- No answer from Slurm means busy; so does a ready pod that Slurm does not know, for slurmctld may have lost its state.
- Only drains whose reason is ours are undone.
- Nothing is remembered: the next call sees what the last one did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soperator.slurm.node import REASON_PREFIX, SlurmNode

SCALE_IN = f"{REASON_PREFIX}scale-in"
ROLLOUT = f"{REASON_PREFIX}new pod template"


@dataclass(frozen=True)
class WorkerPod:
    """A worker's pod as Kubernetes reports it. `trouble` says in words why it does not run."""

    index: int
    template: str
    phase: str
    deleting: bool
    ready: bool
    trouble: str = ""

    @property
    def has_started(self) -> bool:
        """Whether slurmd may be running, or have run, in it."""
        return self.phase not in ("Pending", "Failed", "Succeeded")


@dataclass(frozen=True)
class Seen:
    """What is known: the pods by index, Slurm's nodes by name (None when Slurm gave no fresh answer), and what is wanted."""

    nodeset: str
    wanted: int
    template: str
    pods: Mapping[int, WorkerPod]
    nodes: Mapping[str, SlurmNode] | None

    def node(self, index: int) -> SlurmNode | None:
        """The Slurm node of an index, where Slurm knows it."""
        return (self.nodes or {}).get(f"{self.nodeset}-{index}")


@dataclass(frozen=True)
class Create:
    """Make the pod of an index."""

    index: int
    why: str


@dataclass(frozen=True)
class Delete:
    """Delete the pod of an index."""

    index: int
    why: str


@dataclass(frozen=True)
class Drain:
    """Let no new job start on the Slurm node of an index."""

    index: int
    why: str


@dataclass(frozen=True)
class Resume:
    """Take our drain off the Slurm node of an index."""

    index: int
    why: str


@dataclass(frozen=True)
class Forget:
    """Remove the record of a Slurm node that has no pod any more."""

    index: int
    why: str


Action = Create | Delete | Drain | Resume | Forget


def decide(seen: Seen, max_unavailable: int = 1) -> list[Action]:
    """The actions that bring the pods nearer to what is wanted: safe to lose half-way, and in any order but that records go before pods come."""
    actions: list[Action] = [Create(index, "wanted") for index in range(seen.wanted) if index not in seen.pods]
    surplus = [pod for pod in seen.pods.values() if pod.index >= seen.wanted]
    kept = [pod for pod in seen.pods.values() if pod.index < seen.wanted]
    for pod in surplus:
        actions += _retire(seen, pod, SCALE_IN)
    actions += _roll(seen, [pod for pod in kept if pod.template != seen.template], max_unavailable)
    for pod in kept:
        actions += _keep(seen, pod)
    return actions + _forget(seen)


def _retire(seen: Seen, pod: WorkerPod, reason: str) -> list[Action]:
    """Drain, wait, delete; a pod in which nothing ever ran or runs is deleted at once."""
    if pod.deleting:
        return []
    if not pod.has_started:
        return [Delete(pod.index, f"{reason}: its containers do not run")]
    node = seen.node(pod.index)
    if node is None:
        never = seen.nodes is not None and not pod.ready
        return [Delete(pod.index, f"{reason}: Slurm never knew it, and it is not ready")] if never else []
    if node.is_drained:
        return [Delete(pod.index, f"{reason}: drained and idle")]
    return [] if node.is_draining else [Drain(pod.index, reason)]


def _roll(seen: Seen, old: Sequence[WorkerPod], max_unavailable: int) -> list[Action]:
    """Replace pods of an old template, a few at a time; idle nodes go first."""
    already = [pod for pod in old if pod.deleting or _draining(seen, pod)]
    rest = sorted((pod for pod in old if pod not in already), key=lambda pod: (_busy(seen, pod), pod.index))
    wanted = range(seen.wanted)
    missing = sum(1 for index in wanted if index not in seen.pods)
    current = [pod for pod in seen.pods.values() if pod.template == seen.template and pod.index in wanted]
    unready = sum(1 for pod in current if not pod.ready or _draining(seen, pod))
    room = max(0, max_unavailable - len(already) - unready - missing)
    dead = [pod for pod in rest if not pod.has_started]
    alive = [pod for pod in rest if pod.has_started]
    return [action for pod in [*already, *dead, *alive[:room]] for action in _retire(seen, pod, ROLLOUT)]


def _keep(seen: Seen, pod: WorkerPod) -> list[Action]:
    """A current pod that ended is made anew; our own drain of it is taken back once it is ready."""
    if pod.template != seen.template or pod.deleting:
        return []
    if pod.phase in ("Failed", "Succeeded"):
        return [Delete(pod.index, "its containers ended")]
    node = seen.node(pod.index)
    if node and pod.ready and node.is_draining and node.reason in (SCALE_IN, ROLLOUT):
        return [Resume(pod.index, "the node is wanted and current")]
    return []


def _forget(seen: Seen) -> list[Action]:
    """Remove records of nodes that we drained and whose pod is gone: scaled in, or to be made anew. Others, and busy ones, stay.

    Slurm keeps the features and the size of a node that it knows, whatever a new slurmd of that name says: only a new record
    has those of the new template.
    """
    actions: list[Action] = []
    for index in _indexes(seen):
        node = seen.node(index)
        if node and index not in seen.pods and not node.is_busy and node.reason in (SCALE_IN, ROLLOUT):
            actions.append(
                Forget(index, "scaled in" if index >= seen.wanted else "its new pod has a record of its own")
            )
    return actions


def _indexes(seen: Seen) -> list[int]:
    prefix = f"{seen.nodeset}-"
    tails = [name.removeprefix(prefix) for name in seen.nodes or {} if name.startswith(prefix)]
    return sorted(int(tail) for tail in tails if tail.isdecimal())


def _draining(seen: Seen, pod: WorkerPod) -> bool:
    node = seen.node(pod.index)
    return bool(node and node.is_draining)


def _busy(seen: Seen, pod: WorkerPod) -> bool:
    node = seen.node(pod.index)
    return node is None or node.is_busy
