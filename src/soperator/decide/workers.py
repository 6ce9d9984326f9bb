"""What the policy over a NodeSet's workers is given, and what it may answer: values only. The policy itself is `rollout`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from soperator.decide.window import Hours
from soperator.slurm.job import SlurmJob
from soperator.slurm.node import SlurmNode


@dataclass(frozen=True)
class Machine:
    """A Kubernetes Node. `leaving` says why its workers are to take no more jobs, empty when they may.

    `expels` is whether whoever wants it empty expects pods to go by themselves, and no new pod can come.
    """

    name: str
    ready: bool = True
    since: float = 0.0
    leaving: str = ""
    expels: bool = False


@dataclass(frozen=True)
class WorkerPod:
    """A worker's pod as Kubernetes reports it.

    `trouble` says in words why it is not ready; `failing` whether that needs a person; `leave` why, besides its Node, it is to take no
    more jobs. `protected` and `noted` are what we wrote on it: whether it may be evicted, and which drain of ours it was
    told. `told` is what we told of its Slurm node. `ready_since` is when it became ready, `asked` when its slurmd was last told to register.
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
    told: str = ""
    ready_since: float = 0.0
    asked: float = 0.0


@dataclass(frozen=True)
class Policy:
    """A NodeSet's wishes about change, in numbers; `None` means never."""

    on_delete: bool = False
    max_unavailable: int = 1
    wait_for_idle: bool = False
    window: Hours | None = None
    progress_deadline: float = 600.0
    max_wait: float | None = None
    then: str = "Wait"
    signal: str = "CONT"
    warn_before: float = 300.0
    replace_after: float | None = 300.0
    max_replaced: int = 1


@dataclass(frozen=True)
class Seen:
    """What is known: pods by index, Kubernetes' Nodes and Slurm's nodes by name, and what is wanted.

    `nodes` is None when Slurm gave no fresh answer, and `jobs` None when it was not asked for jobs. `ending` is the reason with which a
    NodeSet that is being deleted drains, empty for one that is not.
    """

    nodeset: str
    wanted: int
    template: str
    pods: Mapping[int, WorkerPod]
    nodes: Mapping[str, SlurmNode] | None
    machines: Mapping[str, Machine] = field(default_factory=lambda: MappingProxyType({}))
    jobs: tuple[SlurmJob, ...] | None = None
    policy: Policy = field(default_factory=Policy)
    now: float = 0.0
    ending: str = ""

    def name(self, index: int) -> str:
        """The name of the Slurm node of an index."""
        return f"{self.nodeset}-{index}"

    def node(self, index: int) -> SlurmNode | None:
        """The Slurm node of an index, where Slurm knows it."""
        return self._by_index.get(index)

    def machine(self, pod: WorkerPod) -> Machine | None:
        """The Kubernetes Node that a pod lies on, where there is one."""
        return self.machines.get(pod.machine)

    def jobs_of(self, index: int) -> list[SlurmJob]:
        """The jobs on the Slurm node of an index, as far as Slurm was asked."""
        return self._jobs.get(self.name(index), [])

    @cached_property
    def _jobs(self) -> Mapping[str, list[SlurmJob]]:
        found: dict[str, list[SlurmJob]] = {}
        for job in self.jobs or ():
            for name in job.nodes:
                found.setdefault(name, []).append(job)
        return found

    @cached_property
    def _by_index(self) -> Mapping[int, SlurmNode]:
        prefix = f"{self.nodeset}-"
        found = (
            (name.removeprefix(prefix), node) for name, node in (self.nodes or {}).items() if name.startswith(prefix)
        )
        return {int(tail): node for tail, node in found if tail.isdecimal()}

    @cached_property
    def known(self) -> list[int]:
        """The indexes of this NodeSet's nodes that Slurm has a record of."""
        return sorted(self._by_index)


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
    """Let no new job start on the Slurm node of an index; `why` is the reason that Slurm shows."""

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


@dataclass(frozen=True)
class Mark:
    """Write on the pod of an index whether it may be evicted, and which drain of ours its node was told."""

    index: int
    why: str
    protected: bool
    noted: str


@dataclass(frozen=True)
class Warn:
    """Signal the jobs of a draining node, and then let `why` be the reason that Slurm shows."""

    index: int
    why: str
    jobs: tuple[SlurmJob, ...]
    signal: str


@dataclass(frozen=True)
class End:
    """End the jobs of a draining node, as the policy asked for."""

    index: int
    why: str
    jobs: tuple[SlurmJob, ...]
    requeue: bool


@dataclass(frozen=True)
class Tell:
    """Write on the pod of an index what Slurm says of its node: a reason in one word, and `why`."""

    index: int
    why: str
    reason: str


@dataclass(frozen=True)
class Register:
    """Let the slurmd of an index, whom slurmctld does not know, register again."""

    index: int
    why: str


Action = Create | Delete | Drain | Resume | Forget | Mark | Warn | End | Tell | Register


@dataclass(frozen=True)
class Plan:
    """What to do now, what is going on in one sentence, in how many seconds to look again, and whether to look at the jobs first."""

    actions: tuple[Action, ...] = ()
    said: str = ""
    again: float | None = None
    asks_jobs: bool = False
