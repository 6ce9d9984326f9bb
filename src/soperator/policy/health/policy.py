"""The consequences of health checks for a NodeSet's nodes: the nodes to drain, the nodes to resume, and the failures that are only reported.

The policy is a function of the nodes' reports (`checks.report`), of Slurm's states, and of an annotation on the pod. Nothing is remembered:

```
                     a failing check             room in the budget             nothing runs
  Unchecked   Healthy ─────────▶ Failing ──────────────────────────▶ Draining ────────────────────▶ Out
              Suspect               │ no room, or another drain           ╲                        ╱ passes begin
                 ▲                  ▼                                      ╲                      ▼
                 │              reported                                    ╲───────────────▶ Testing
                 └────── Returned ◀─────────────────────────────── enough passes in a row ────────┘
```

Invariants, each tested by generated histories in which the operator forgets everything at every step:
- Only drains whose reason begins with `soperator: check` are undone, and no other drain is overwritten.
- Checks drain at most `HealthPolicy.most` nodes at once. Beyond that, the nodes that fail longest are drained first and the others are
  reported: a check that fails everywhere is more likely itself at fault.
- A node is resumed only when its runner reports success: after enough passes in a row, and if the runner cannot know of the drain (a new pod)
  after some intervals of success. A missing report, or a check that does not work, is not a pass.
- A node that an administrator resumed is not drained again until its checks have passed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from soperator.checks import node_plan
from soperator.checks.check_state import CheckState
from soperator.checks.report import Report
from soperator.policy import drain_reasons
from soperator.policy.drain_reasons import CHECK_PREFIX
from soperator.policy.health import replacement
from soperator.policy.health.replacement import ReplaceNode
from soperator.policy.workers.removal_order import leave_reason
from soperator.policy.workers.types import (
    AnnotatePod,
    DrainNode,
    Resume,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.node import SlurmNode

#: Seconds for which a node whose failure has ended is reported as recovered.
LATELY = 3600.0
#: For how many intervals a new pod's checks must pass before the drain of its predecessor is undone.
_PATIENCE = 4
_NAMED = 3


class HealthState(StrEnum):
    """The state of a node's health, a node of the diagram above."""

    UNCHECKED = "Unchecked"
    HEALTHY = "Healthy"
    SUSPECT = "Suspect"
    FAILING = "Failing"
    DRAINING = "Draining"
    OUT = "Out"
    TESTING = "Testing"
    REPLACED = "Replaced"
    RETURNED = "Returned"


_AWAY = (HealthState.DRAINING, HealthState.OUT, HealthState.TESTING, HealthState.REPLACED)


@dataclass(frozen=True)
class HealthPolicy:
    """The settings of the spec: whether checks drain nodes, the seconds between two rounds of checks, and the seconds until a worker moves to
    another machine. `most` limits the drained nodes of the NodeSet, `most_of_all` those of all nodes that Slurm knows; None means no limit.
    """

    drains: bool
    most: int
    interval: float
    replace_after: float = 600.0
    most_of_all: int | None = None

    @property
    def silence(self) -> float:
        """The seconds without a report after which a runner counts as not running."""
        return node_plan.SILENCE * self.interval


@dataclass(frozen=True)
class NodeHealth:
    """The health of one node, its start (seconds since 1970), its check, and the check's message."""

    state: HealthState
    since: float = 0.0
    check: str = ""
    message: str = ""

    @property
    def summary(self) -> str:
        """The state as a message."""
        return f"{self.state}: {self.check}: {self.message}" if self.check else str(self.state)


@dataclass(frozen=True)
class HealthPlan:
    """The actions, the workers that move to another machine, the health of each node by its index, a message, and the seconds until the next pass."""

    actions: tuple[DrainNode | Resume | AnnotatePod, ...] = ()
    moves: tuple[ReplaceNode, ...] = ()
    healths: tuple[tuple[int, NodeHealth], ...] = ()
    said: str = ""
    again: float | None = None


def decide(seen: WorkerSnapshot, policy: HealthPolicy) -> HealthPlan:
    """Return the consequences of the checks of all nodes; none without a fresh answer of Slurm."""
    if seen.nodes is None:
        return HealthPlan()
    found = [(pod, node) for pod, node in _pairs(seen) if not _is_plain(pod, node)]
    well = [pod for pod, node in found if drain_reasons.is_of_check(node) and _is_well(node, policy, seen.now)]
    back = [pod for pod in well if pod.ready and not leave_reason(seen, pod)]
    out = [(pod, node) for pod, node in found if drain_reasons.is_of_check(node) and pod not in back]
    wanting = [(pod, node) for pod, node in found if policy.drains and _should_drain(pod, node)]
    wanting.sort(key=lambda each: (_first(each[1]).since, each[0].index))
    room = max(0, min(policy.most - len(out), _room(seen.nodes.values(), policy)))
    actions: list[Sequence[DrainNode | Resume | AnnotatePod]] = [
        *(_note(seen, pod, node) for pod, node in found if pod not in back),
        *(_put_back(pod) for pod in back),
        *(
            [DrainNode(pod.index, drain_reasons.for_check(_first(node).check, _first(node).message))]
            for pod, node in wanting[:room]
        ),
    ]
    healths = tuple((pod.index, health(node, seen.now, policy.silence, pod.born)) for pod, node in _pairs(seen))
    return HealthPlan(
        actions=tuple(action for each in actions for action in each),
        moves=tuple(replacement.replacements(seen, out, policy.replace_after)),
        healths=healths,
        said="; ".join(_messages(seen, healths, [pod for pod, _ in wanting[room:]], policy)),
        again=min(
            (*_moments(seen, policy, found), *replacement.moments(seen, out, policy.replace_after)), default=None
        ),
    )


def health(node: SlurmNode, now: float, silence: float, born: float = 0.0) -> NodeHealth:
    """Return the health of a node whose pod was created at `born`; it is unknown after `silence` seconds without a report."""
    report, bad = node.report, _bad(node)
    if drain_reasons.is_of_check(node):
        worst = bad[0] if bad else None
        check, says = (worst.check, worst.message) if worst else drain_reasons.check_of(node)
        is_better = report is not None and not report.in_state("failing") and not report.in_state("broken")
        if born > node.reason_at and not bad:
            return NodeHealth(HealthState.REPLACED, born, *drain_reasons.check_of(node))
        state = HealthState.TESTING if is_better else HealthState.DRAINING if node.is_busy else HealthState.OUT
        return NodeHealth(state, node.reason_at, check, says)
    if report is None:
        return NodeHealth(HealthState.UNCHECKED, node.started)
    if failing := [*bad, *report.in_state("failing")]:
        return NodeHealth(HealthState.FAILING, failing[0].since, failing[0].check, failing[0].message)
    if now - report.reported_at > silence:
        return NodeHealth(
            HealthState.SUSPECT,
            report.reported_at,
            "runner",
            f"no check has been reported since {drain_reasons.stamp(report.reported_at)}",
        )
    if doubtful := report.in_state("recovering", "suspect", "broken"):
        return NodeHealth(HealthState.SUSPECT, doubtful[0].since, doubtful[0].check, doubtful[0].message)
    if report.last and now - report.last.until < LATELY:
        return NodeHealth(HealthState.RETURNED, report.last.until, report.last.check, report.last.message)
    return NodeHealth(HealthState.HEALTHY, report.at)


def _room(nodes: Iterable[SlurmNode], policy: HealthPolicy) -> int:
    """Return how many more nodes of the whole cluster checks may drain."""
    if policy.most_of_all is None:
        return policy.most
    return policy.most_of_all - sum(drain_reasons.is_of_check(each) for each in nodes)


def _pairs(seen: WorkerSnapshot) -> Iterator[tuple[WorkerPod, SlurmNode]]:
    for index in sorted(seen.pods):
        if (node := seen.node(index)) and not seen.pods[index].deleting:
            yield seen.pods[index], node


def _is_plain(pod: WorkerPod, node: SlurmNode) -> bool:
    """Return whether a node needs no decision, which is the usual case."""
    is_clean = node.report is None or not node.report.checks
    return is_clean and not drain_reasons.is_of_check(node) and not pod.noted


def _bad(node: SlurmNode) -> list[CheckState]:
    """Return the failing and recovering checks that drain the node, the worst first."""
    return [each for each in _checks(node.report, "failing", "recovering") if each.takes_out]


def _checks(report: Report | None, *states: str) -> list[CheckState]:
    return report.in_state(*states) if report else []


def _first(node: SlurmNode) -> CheckState:
    return _bad(node)[0]


def _should_drain(pod: WorkerPod, node: SlurmNode) -> bool:
    """Return whether to drain a node: it is not drained yet, and no administrator has resumed it while the same check failed."""
    bad = _bad(node)
    resumed = [each for each in bad if pod.noted.startswith(f"{CHECK_PREFIX} {each.check}: ")]
    return any(each.state == "failing" for each in bad) and not node.is_draining and not node.is_down and not resumed


def _is_well(node: SlurmNode, policy: HealthPolicy, now: float) -> bool:
    """Return whether the runner's success is valid: its failure ended after the drain, or its checks have passed for long enough."""
    report = node.report
    if (
        report is None
        or report.more
        or report.in_state("suspect")
        or _bad(node)
        or now - report.reported_at > policy.silence
    ):
        return False
    if any(each.takes_out or each.check == "plan" for each in report.in_state("broken")):
        return False
    saw_it = report.last is not None and report.last.until >= node.reason_at
    return saw_it or now - max(report.at, node.reason_at) >= _PATIENCE * policy.interval


def _put_back(pod: WorkerPod) -> list[AnnotatePod | Resume]:
    """Return the steps that resume a node; the pod is protected before a job can start."""
    if not pod.protected:
        return [AnnotatePod(pod.index, "its checks pass again", protected=True, noted=pod.noted)]
    return [Resume(pod.index, "its checks pass again")]


def _note(seen: WorkerSnapshot, pod: WorkerPod, node: SlurmNode) -> list[AnnotatePod]:
    """Record a lasting drain on the pod, so that a later resume by an administrator is recognized; remove the record when the checks pass."""
    if drain_reasons.is_of_check(node):
        lasts = seen.now - node.reason_at >= drain_reasons.LASTING
        wanted = node.reason if lasts else pod.noted
    else:
        wanted = "" if pod.noted.startswith(CHECK_PREFIX) and node.report and not _bad(node) else pod.noted
    if wanted == pod.noted:
        return []
    return [
        AnnotatePod(pod.index, f"{node.name}: {wanted or 'its checks pass'}", protected=pod.protected, noted=wanted)
    ]


def _moments(
    seen: WorkerSnapshot, policy: HealthPolicy, found: Iterable[tuple[WorkerPod, SlurmNode]]
) -> Iterator[float]:
    """Yield the seconds until the decision may change without an event."""
    heard = [node.report.reported_at for _, node in _pairs(seen) if node.report]
    if soonest := [each for each in heard if seen.now - each <= policy.silence]:
        yield min(soonest) + policy.silence - seen.now + 0.1
    for pod, node in found:
        if drain_reasons.is_of_check(node) and not pod.noted:
            yield max(0.0, node.reason_at + drain_reasons.LASTING - seen.now)
        if drain_reasons.is_of_check(node) and node.report and not node.report.checks:
            yield max(1.0, max(node.report.at, node.reason_at) + _PATIENCE * policy.interval - seen.now)


def _messages(
    seen: WorkerSnapshot, healths: Iterable[tuple[int, NodeHealth]], left: Sequence[WorkerPod], policy: HealthPolicy
) -> Iterator[str]:
    found = list(healths)
    out = [each for each in found if each[1].state in _AWAY]
    if out:
        yield f"checks have drained {len(out)} of {len(found)} nodes: {_names(seen, out)}"
    if left:
        yield (
            f"{len(left)} more fail but stay in service, because health.maxUnhealthy is {policy.most}{_of_all(policy)}: "
            "find out whether the check is wrong, and disable it in health.disabledChecks, or raise the limits"
        )
    failing = [
        each for each in found if each[1].state is HealthState.FAILING and each[0] not in {pod.index for pod in left}
    ]
    if failing:
        yield f"{len(failing)} in service fail: {_names(seen, failing)}"
    mute = [
        each
        for each in found
        if each[1].state is HealthState.UNCHECKED and 0 < each[1].since < seen.now - policy.silence
    ]
    if mute:
        yield f"{len(mute)} have never reported a check: see the log of slurmd: {_names(seen, mute)}"
    suspect = [each for each in found if each[1].state is HealthState.SUSPECT]
    if suspect:
        yield f"{len(suspect)} are suspect: {_names(seen, suspect)}"


def _of_all(policy: HealthPolicy) -> str:
    return (
        "" if policy.most_of_all is None else f" and health.maxUnhealthyOfCluster {policy.most_of_all} of the cluster"
    )


def _names(seen: WorkerSnapshot, found: Sequence[tuple[int, NodeHealth]]) -> str:
    said = [f"{seen.name(index)} ({each.summary})" for index, each in found[:_NAMED]]
    return ", ".join([*said, *([f"and {len(found) - _NAMED} more"] if found[_NAMED:] else [])])
