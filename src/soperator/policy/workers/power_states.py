"""The phase of a node between asleep and awake, from Slurm's states, and the messages about nodes that do not wake. Slurm's states alone decide,
because Slurm wakes the nodes.
"""

from collections import Counter
from enum import Enum, auto

from soperator.policy import drain_reasons
from soperator.policy.workers.types import WorkerSnapshot
from soperator.slurm import hostlist
from soperator.slurm.node import REASON_PREFIX, SlurmNode

#: With what the reason of a node begins that did not wake.
DENIED = f"{REASON_PREFIX}no capacity: "
LATE = f"{REASON_PREFIX}did not wake: "
#: slurmctld's own reason for such a node, where no operator set one.
_SLURMS = "ResumeTimeout reached"


class Phase(Enum):
    """A phase of a node between asleep and awake."""

    ASLEEP = auto()
    FALLING = auto()
    WAKING = auto()
    AWAKE = auto()


def phase_of(node: SlurmNode) -> Phase:
    """Return the phase of a node that Slurm knows; a node with a request to wake counts as waking."""
    if "POWERING_DOWN" in node.states:
        return Phase.FALLING
    if node.states & {"POWERING_UP", "POWER_UP"}:
        return Phase.WAKING
    return Phase.ASLEEP if "POWERED_DOWN" in node.states else Phase.AWAKE


def is_denied(node: SlurmNode) -> bool:
    """Return whether a node is DOWN because it did not wake."""
    return node.is_down and (node.our_reason.startswith((DENIED, LATE)) or node.reason.startswith(_SLURMS))


def is_of(seen: WorkerSnapshot, name: str) -> bool:
    """Return whether a Slurm node belongs to the observed NodeSet."""
    prefix = f"{seen.nodeset}-"
    return name.startswith(prefix) and hostlist.number(name.removeprefix(prefix)) is not None


def are_of_shape(seen: WorkerSnapshot) -> bool:
    """Return whether Slurm knows nodes of the NodeSet, all with the GPUs of the spec."""
    shapes = [node.shape for node in (seen.nodes or {}).values() if is_of(seen, node.name)]
    wanted = seen.on_demand.shape if seen.on_demand else None
    return bool(shapes and wanted) and all(each is not None and wanted and each.gres == wanted.gres for each in shapes)


def trouble(seen: WorkerSnapshot) -> str:
    """Return a message about why jobs do not get more of these nodes; empty without a fault."""
    found = sorted(node.name for node in (seen.nodes or {}).values() if is_denied(node) and is_of(seen, node.name))
    if not found:
        return ""
    node = (seen.nodes or {})[found[0]]
    again = drain_reasons.stamp(node.reason_at + seen.on_demand.backoff) if seen.on_demand else "later"
    many = f"{len(found)} nodes do not wake" if len(found) > 1 else f"{node.name} does not wake"
    return f"{many}: {node.reason.removeprefix(REASON_PREFIX)}; tried again at {again}"


def counts(seen: WorkerSnapshot) -> dict[str, int]:
    """Return the numbers of sleeping, of waking and of desired nodes; desired are those waking or awake, and at least minNodes."""
    found = Counter(phase_of(node) for node in (seen.nodes or {}).values() if is_of(seen, node.name))
    wanted = max(found[Phase.WAKING] + found[Phase.AWAKE], seen.on_demand.least if seen.on_demand else 0)
    return {
        "asleep": found[Phase.ASLEEP] + found[Phase.FALLING],
        "waking": found[Phase.WAKING],
        "desiredReplicas": wanted,
    }
