"""The inputs and outputs of the policy for deep checks, apart from its rules so that both kinds of checks share them.

The policy itself is in `single_node` and `multi_node`. Times are seconds since 1970.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from soperator.checks.check import Check, Reading, Value
from soperator.checks.check_state import CheckState
from soperator.checks.deep_check import DeepCheck
from soperator.checks.evaluate import Verdict
from soperator.slurm.node import SlurmNode

#: States of a node on which no run is begun.
_TAKEN = frozenset({"RESERVED", "MAINTENANCE"})


@dataclass(frozen=True)
class Shared:
    """A shipped check whose job measures several nodes, and the thresholds of the spec by name."""

    check: DeepCheck
    limits: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckPolicy:
    """The settings of a check, in numbers; times are in seconds. `retest` is None if a drained node is not tested again."""

    name: str
    on_failure: str = "drain"
    confirm: int = 2
    passes: int = 2
    retest: float | None = 600.0
    most: int = 1
    schedule: str = ""
    since: float = 0.0
    after_creation: bool = True
    after_repair: bool = False
    idle: tuple[float, float] | None = None
    request: str = ""
    suspended: bool = False
    shared: Shared | None = None

    @property
    def check(self) -> Check:
        """The settings as `check_state` counts with them."""
        return Check(self.name, "", "job", on_failure=self.on_failure, confirm=self.confirm, passes=self.passes)


@dataclass(frozen=True)
class CheckTarget:
    """One node: when its pod was created, whether the pod is ready, and Slurm's state, None if Slurm has no such node.

    `deep` are the other deep checks that it fails, of `every` existing deep check; `quick` says whether quick checks drain nodes here.
    """

    name: str
    born: float = 0.0
    ready: bool = True
    node: SlurmNode | None = None
    deep: frozenset[str] = frozenset()
    every: frozenset[str] = frozenset()
    quick: bool = True

    @property
    def is_free(self) -> bool:
        """Whether the node is idle and a job may start on it."""
        node = self.node
        return bool(
            self.ready
            and node
            and node.is_up
            and not node.is_busy
            and not node.is_draining
            and not node.states & _TAKEN
        )

    @property
    def is_away(self) -> bool:
        """Whether the node is out of service."""
        return self.node is not None and (self.node.is_draining or self.node.is_down)


@dataclass(frozen=True)
class Run:
    """A run that had not ended at Slurm's last answer; `others` are further nodes of a job that measures several."""

    job: int
    node: str
    at: float
    retest: bool = False
    others: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes of the run."""
        return (self.node, *self.others)


@dataclass(frozen=True)
class NodeFailure:
    """A node that does not pass: the state of the check, the last job that counted, when it ended, and the output of the failing run."""

    check_state: CheckState
    job: int = 0
    at: float = 0.0
    log: str = ""


@dataclass(frozen=True)
class ResolvedFailure:
    """A failure that has ended."""

    node: str
    since: float
    until: float
    message: str
    job: int = 0
    relapses: int = 0


@dataclass(frozen=True)
class ComparisonRound:
    """Nodes that are compared with each other, in jobs of two; `whole` says whether one job of all of them comes first.

    `tested` is the drained node under test, if any; `moved` is the time of the last result. `readings` are those of pairs so far, `broken` the number
    of runs of a pair without one, and `message` is the message about the whole group's failure, or of the last broken run.
    """

    at: float
    nodes: tuple[str, ...]
    whole: bool = False
    tested: str = ""
    moved: float = 0.0
    readings: tuple[Reading, ...] = ()
    broken: Mapping[tuple[str, str], int] = field(default_factory=dict)
    message: str = ""


@dataclass(frozen=True)
class RoundNote:
    """A result of a round that concerns no single node: a slow path between two nodes, or a slow node that could not be identified."""

    at: float
    nodes: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class CheckHistory:
    """The complete history of a check, its only memory.

    `last_runs` maps a node to the time when its last valid run was submitted. `due_after_repair` are nodes that were out of service and run
    the check when they return. `highest_job` is the highest id of a job of this check. `readings` are the newest readings of some nodes,
    newest last, with which other nodes are compared.
    """

    last_runs: Mapping[str, float] = field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    failures: Mapping[str, NodeFailure] = field(default_factory=dict)
    ended: tuple[ResolvedFailure, ...] = ()
    due_after_repair: frozenset[str] = frozenset()
    request: str = ""
    request_time: float = 0.0
    completed_requests: tuple[str, ...] = ()
    highest_job: int = 0
    readings: tuple[Reading, ...] = ()
    comparison: ComparisonRound | None = None
    findings: tuple[RoundNote, ...] = ()

    def run_of(self, node: str) -> Run | None:
        """Return the run in progress on a node."""
        return next((each for each in self.runs if node in each.nodes), None)


@dataclass(frozen=True)
class RunResult:
    """The result of a run. Without a verdict it is neither a pass nor a failure; `is_repeated` says whether the run is repeated soon."""

    run: Run
    at: float
    verdict: Verdict | None
    log: str = ""
    is_repeated: bool = True
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True)
class Submit:
    """Submit a job to a node, or to several nodes together; a retest is pending until its drained node is resumed."""

    node: str
    retest: bool = False
    others: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes of the run."""
        return (self.node, *self.others)


@dataclass(frozen=True)
class Cancel:
    """Cancel a run whose node another job uses."""

    run: Run


@dataclass(frozen=True)
class ResumeNode:
    """Resume a drained node for its pending retest."""

    node: str


@dataclass(frozen=True)
class RedrainNode:
    """Drain a node again, with this reason."""

    node: str
    why: str


Action = Submit | Cancel | ResumeNode | RedrainNode


@dataclass(frozen=True)
class CheckPlan:
    """The actions, a message about the progress, and the seconds until the decision may change without an event."""

    actions: tuple[Action, ...] = ()
    message: str = ""
    requeue_after: float | None = None
