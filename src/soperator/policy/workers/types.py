"""The inputs and outputs of the policy for a NodeSet's workers, apart from its rules so that rendering, reports and tests need only values. The
rules are in `policy`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType

from soperator.policy.maintenance_window import WindowSchedule
from soperator.slurm import hostlist
from soperator.slurm.job import SlurmJob
from soperator.slurm.node import Shape, SlurmNode, held


@dataclass(frozen=True)
class KubeNode:
    """A Kubernetes Node.

    `leaving` says why its workers must get no more jobs, empty if they may. `expels` says whether its pods will end without eviction and no new pod
    can be scheduled there.
    """

    name: str
    ready: bool = True
    since: float = 0.0
    leaving: str = ""
    expels: bool = False


@dataclass(frozen=True)
class WorkerPod:
    """A worker's pod as Kubernetes reports it.

    `trouble` says why it is not ready; `failing` whether that needs a person; `leave` why, besides its Node, it must get no more jobs. `protected`
    and `noted` are the operator's marks on it: whether it may be evicted, and the recorded drain. `reported` is the condition about
    its Slurm node. `ready_since` is when it became ready, `asked` when its slurmd was last requested to register, both in seconds since 1970. `uid`
    and `version` identify the object that was read; the actions apply only to that object.
    """

    index: int
    template: str
    phase: str
    deleting: bool
    ready: bool
    trouble: str = ""
    failing: bool = False
    born: float = 0.0
    machine: str = ""
    leave: str = ""
    protected: bool = True
    noted: str = ""
    reported: str = ""
    ready_since: float = 0.0
    asked: float = 0.0
    uid: str = field(default="", compare=False)
    version: str = field(default="", compare=False)


@dataclass(frozen=True)
class ChangePolicy:
    """The settings of a NodeSet for rollout, drain and node failure, in numbers; `None` means never."""

    on_delete: bool = False
    max_unavailable: int = 1
    wait_for_idle: bool = False
    window: WindowSchedule | None = None
    progress_deadline: float = 600.0
    drain_timeout: float | None = None
    on_timeout: str = "Wait"
    warning_signal: str = "CONT"
    warning_period: float = 300.0
    replace_after: float | None = 300.0
    max_replaced: int = 1


@dataclass(frozen=True)
class OnDemand:
    """The settings of power saving: the fewest awake nodes, the most nodes, times in seconds, and a node's configuration line for Slurm."""

    least: int
    most: int
    idle: float
    resume: float
    backoff: float
    shape: Shape | None = None


@dataclass(frozen=True)
class RecordFields:
    """The desired records of nodes in Slurm; `features` is None if a plugin of Slurm determines them."""

    features: frozenset[str] | None
    weight: int


@dataclass(frozen=True)
class WorkerSnapshot:
    """The observed state: pods by index, Kubernetes Nodes and Slurm nodes by name, and the desired state.

    `nodes` is None without a fresh answer of Slurm, and `jobs` is None if the jobs were not listed. `ending` is the reason with which a NodeSet that
    is being deleted drains, empty for one that is not. `settled` are indexes of the current template for which `settled.is_calm` is known to be true;
    they only save time. `on_demand` is set with power saving; then `wanted` has no meaning. `change` is the first difference between an old pod and
    the template, in words. `record` is the desired record of a node in Slurm, None if it does not matter, and `differing` are the workers whose
    record differed in the last answer.
    """

    nodeset: str
    wanted: int
    template: str
    pods: Mapping[int, WorkerPod]
    nodes: Mapping[str, SlurmNode] | None
    machines: Mapping[str, KubeNode] = field(default_factory=lambda: MappingProxyType({}))
    jobs: tuple[SlurmJob, ...] | None = None
    policy: ChangePolicy = field(default_factory=ChangePolicy)
    now: float = 0.0
    ending: str = ""
    settled: frozenset[int] = frozenset()
    on_demand: OnDemand | None = None
    change: str = ""
    record: RecordFields | None = None
    differing: frozenset[int] = frozenset()

    def name(self, index: int) -> str:
        """Return the name of the Slurm node of an index."""
        return f"{self.nodeset}-{index}"

    def node(self, index: int) -> SlurmNode | None:
        """Return the Slurm node of an index; None if Slurm does not know it."""
        return self.nodes.get(self.name(index)) if self.nodes is not None else None

    def machine(self, pod: WorkerPod) -> KubeNode | None:
        """Return the Kubernetes Node of a pod; None if it has none."""
        return self.machines.get(pod.machine)

    def jobs_of(self, index: int) -> list[SlurmJob]:
        """Return the jobs on the Slurm node of an index; none if the jobs were not listed."""
        return self._jobs.get(self.name(index), [])

    @cached_property
    def _jobs(self) -> Mapping[str, list[SlurmJob]]:
        found: dict[str, list[SlurmJob]] = {}
        for job in self.jobs or ():
            for name in job.nodes:
                found.setdefault(name, []).append(job)
        return found

    def on(self, nodes: Mapping[str, SlurmNode]) -> "WorkerSnapshot":
        """Return this state with a fresh answer of Slurm; a worker whose node has changed is no longer settled."""
        settled = frozenset(index for index in self.settled if nodes.get(self.name(index)) is self.node(index))
        return replace(self, nodes=nodes, settled=settled)

    def with_jobs(self, jobs: Iterable[SlurmJob]) -> "WorkerSnapshot":
        """Return this state with the list of jobs that have nodes; a node with a suspended job counts as busy."""
        listed = tuple(jobs)
        return replace(self.on(held(self.nodes or {}, listed)), jobs=listed)

    @cached_property
    def unsettled(self) -> list[WorkerPod]:
        """The pods that are not settled, by index."""
        return [pod for index, pod in self.pods.items() if index not in self.settled]

    @cached_property
    def without_pod(self) -> list[int]:
        """The indexes of nodes that have a record in Slurm and no pod."""
        prefix, ours = f"{self.nodeset}-", {self.name(index) for index in self.pods}
        found = (name.removeprefix(prefix) for name in self.nodes or () if name not in ours and name.startswith(prefix))
        return sorted(index for tail in found if (index := hostlist.number(tail)) is not None)

    @property
    def is_known(self) -> bool:
        """Whether Slurm has a record of any node of this NodeSet."""
        return bool(self.without_pod) or any(self.node(index) for index in self.pods)


@dataclass(frozen=True)
class Create:
    """Create the pod of an index."""

    index: int
    why: str


@dataclass(frozen=True)
class Delete:
    """Delete the pod of an index."""

    index: int
    why: str


@dataclass(frozen=True)
class DrainNode:
    """Drain the Slurm node of an index; `why` is the reason that Slurm shows."""

    index: int
    why: str


@dataclass(frozen=True)
class Resume:
    """Resume the Slurm node of an index, which the operator drained."""

    index: int
    why: str


@dataclass(frozen=True)
class DeleteNodeRecord:
    """Remove the record of a Slurm node that no longer has a pod."""

    index: int
    why: str


@dataclass(frozen=True)
class AnnotatePod:
    """Mark the pod of an index: whether it may be evicted, and which drain of the operator its node has."""

    index: int
    why: str
    protected: bool
    noted: str


@dataclass(frozen=True)
class SignalJobs:
    """Signal the jobs of a draining node, and then set `why` as the reason that Slurm shows."""

    index: int
    why: str
    jobs: tuple[SlurmJob, ...]
    signal: str


@dataclass(frozen=True)
class EndJobs:
    """End the jobs of a draining node by `drain.onTimeout`."""

    index: int
    why: str
    jobs: tuple[SlurmJob, ...]
    requeue: bool


@dataclass(frozen=True)
class SetPodCondition:
    """Write the state of a Slurm node as a condition on the pod of its index, with a reason in CamelCase, and `why`."""

    index: int
    why: str
    reason: str


@dataclass(frozen=True)
class Register:
    """Make the slurmd of an index, which slurmctld does not know, register again."""

    index: int
    why: str


class Verb(StrEnum):
    """The updates of several nodes at once; all values but the first three are states of `scontrol update`.

    After RESUME, slurmctld waits for a response of a sleeping node, and skips the node after a restart; after IDLE it does not (node_mgr.c,
    _require_node_reg; read_config.c, _build_bitmaps).
    """

    RECORD = "create"
    ERASE = "delete"
    SET_FIELDS = "fields"
    SLEEP = "POWER_DOWN"
    WAKE = "POWER_UP"
    DENY = "DOWN"
    ALLOW = "IDLE"


@dataclass(frozen=True)
class UpdateNodes:
    """Update the Slurm nodes of several indexes in one request."""

    verb: Verb
    indexes: tuple[int, ...]
    why: str

    @property
    def index(self) -> int:
        """The lowest of the indexes."""
        return self.indexes[0]


Action = (
    Create
    | Delete
    | DrainNode
    | Resume
    | DeleteNodeRecord
    | AnnotatePod
    | SignalJobs
    | EndJobs
    | SetPodCondition
    | Register
    | UpdateNodes
)


@dataclass(frozen=True)
class WorkerPlan:
    """The actions, a message about the progress, the seconds until the next pass, and whether the jobs must be listed first."""

    actions: tuple[Action, ...] = ()
    said: str = ""
    again: float | None = None
    asks_jobs: bool = False
