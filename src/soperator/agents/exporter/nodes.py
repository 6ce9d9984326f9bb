"""Counts the nodes of one answer of slurmrestd, for the exporter's metrics."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from soperator.agents.exporter.bounds import folded, top, totals
from soperator.observe import cluster as names
from soperator.observe.metric import Family, Metric, Sample
from soperator.policy import drain_reasons
from soperator.policy.health.policy import HealthState, NodeHealth, health
from soperator.slurm.node import SlurmNode, read_node
from soperator.slurm.rest_records import NodeRecord, gres

#: The first of these that a node has is its one state.
_ORDER = (
    ("DOWN", "down"), ("ERROR", "down"), ("INVALID_REG", "down"), ("DRAIN", "drained"), ("POWERED_DOWN", "powered_down"),
    ("POWERING_DOWN", "powering_down"), ("POWERING_UP", "powering_up"), ("FUTURE", "future"), ("REBOOT_ISSUED", "rebooting"),
    ("NOT_RESPONDING", "not_responding"), ("FAIL", "failing"), ("MAINTENANCE", "maintenance"), ("UNKNOWN", "unknown"), ("COMPLETING", "completing"),
    ("ALLOCATED", "allocated"), ("MIXED", "mixed"), ("RESERVED", "reserved"), ("PLANNED", "planned"), ("IDLE", "idle"),
)  # fmt: skip
#: A node that is powered down does not fail.
_ASLEEP = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"})
_BROKEN = frozenset({"DOWN", "ERROR", "INVALID_REG", "FAIL"})
_MIB = 1024**2
_DIGITS = re.compile(r"\d+")
#: The most characters of a reason, which is a label.
_REASON = 80


def state_of(node: SlurmNode) -> str:
    """Return the only state in which a node is counted."""
    found = next((state for flag, state in _ORDER if flag in node.states), "unknown")
    return "draining" if found == "drained" and node.is_busy else found


def outage_labels(node: SlurmNode) -> tuple[str, str]:
    """The person or component that took a node out of service, and the cause, as labels with few values."""
    if drain_reasons.is_of_check(node):
        return "check", drain_reasons.check_of(node)[0]
    if node.is_ours:
        by, reason = "operator", node.reason.removeprefix("soperator: ").partition(";")[0]
    else:
        by, reason = "person" if node.is_administrators else "slurm", node.reason
    return by, _DIGITS.sub("#", " ".join(reason.split()))[:_REASON] or state_of(node)


def is_out(node: SlurmNode) -> bool:
    """Return whether the node takes no jobs, for a reason other than power saving: a powered-down node starts when a job needs it."""
    return node.is_draining or bool(node.states & _BROKEN) or not (node.is_up or node.states & _ASLEEP)


@dataclass(frozen=True)
class UnhealthyNode:
    """A node that needs a person's attention, for the page for people."""

    name: str
    state: str
    health: str
    message: str


def _nodeset(record: NodeRecord) -> str:
    """Return the NodeSet of a node: the node's name without its number, if that is one of its features; otherwise empty."""
    name = record.name.rpartition("-")[0]
    return name if name in (record.features or ()) else ""


class Nodes:
    """Counts the nodes of an answer, at the time `now`.

    After `silence` seconds without a report, a node's checks count as not running. `sets` are the NodeSets of each partition.
    """

    def __init__(self, now: float, silence: float, each: bool = True) -> None:
        self._now, self._silence, self._each = now, silence, each
        self._counts: dict[Metric, Counter[tuple[str, ...]]] = {}
        self._lines: dict[Metric, list[Sample]] = {}
        self.unwell: list[UnhealthyNode] = []
        self.sets: dict[str, set[str]] = {}
        for metric, values in (
            (names.NODES, names.NODE_STATES),
            (names.FLAGS, names.NODE_FLAGS),
            (names.HEALTH, tuple(HealthState)),
            (names.CPUS, names.SHARES),
            (names.MEMORY, names.SHARES),
        ):
            self._counter(metric).update({(str(value),): 0 for value in values})

    def take(self, record: NodeRecord) -> None:
        """Count a node."""
        node = read_node(record)
        state = state_of(node)
        found = health(node, self._now, self._silence)
        self._counter(names.NODES)[(state,)] += 1
        self._counter(names.HEALTH)[(str(found.state),)] += 1
        for flag in node.states.intersection(names.NODE_FLAGS):
            self._counter(names.FLAGS)[(flag,)] += 1
        if is_out(node):
            self._counter(names.OUT)[outage_labels(node)] += 1
        for feature in record.features or ():
            self._counter(names.FEATURE_NODES)[feature, "no" if is_out(node) else "yes"] += 1
        self._size(record, node, state)
        self._checks(node, found)
        if self._each:
            self._line(names.NODE_STATE, (node.name, state))
            self._line(names.NODE_HEALTH, (node.name, str(found.state)))
        if is_out(node) or found.check:
            says = f"{found.check}: {found.message}" if found.check else node.reason
            self.unwell.append(UnhealthyNode(node.name, state, str(found.state), says))

    def families(self) -> Iterator[Family]:
        """Yield all metrics of the answer."""
        for metric in (names.NODES, names.FLAGS, names.HEALTH, names.CPUS, names.MEMORY):
            yield metric, [Sample(labels, count) for labels, count in sorted(self._counter(metric).items())]
        yield names.OUT, self._out()
        checks = self._counter(names.CHECK_NODES)
        yield names.CHECK_NODES, [Sample(labels, count) for labels, count in checks.most_common(names.CHECKS)]
        for metric, most in (
            (names.FEATURE_NODES, names.FEATURES),
            (names.GENERIC, names.GRES),
            (names.PARTITION_NODES, names.PARTITIONS),
            (names.PARTITION_CPUS, names.PARTITIONS),
            (names.NODESET_NODES, names.NODESETS),
        ):
            counts = self._counter(metric)
            yield metric, folded(counts, top(totals(counts), most))
        yield from self._lines.items()

    def _out(self) -> list[Sample]:
        counts = self._counter(names.OUT)
        kept = dict(counts.most_common(names.REASONS))
        rest: Counter[tuple[str, ...]] = Counter()
        for (by, _), count in counts.items() - kept.items():
            rest[by, "other"] += count
        return [Sample(labels, count) for labels, count in sorted({**kept, **rest}.items())]

    def _size(self, record: NodeRecord, node: SlurmNode, state: str) -> None:
        """Count a node's resources, and the part that is allocated to jobs."""
        is_free = node.is_up and not is_out(node)
        rest = "idle" if is_free else "unavailable" if is_out(node) else "powered_down"
        has, used = gres(record.gres), gres(record.gres_used)
        for metric, all_, given in (
            (names.CPUS, record.cpus, record.alloc_cpus),
            (names.MEMORY, record.real_memory * _MIB, record.alloc_memory * _MIB),
        ):
            self._share(metric, (), all_, given, rest)
        for name, many in has.items():
            self._share(names.GENERIC, (name,), many, used.get(name, 0), rest)
        busy = state in ("allocated", "mixed", "completing", "draining")
        for partition in record.partitions or ():
            self._share(names.PARTITION_CPUS, (partition,), record.cpus, record.alloc_cpus, rest)
            self._share(names.PARTITION_NODES, (partition,), 1, int(busy), rest)
        if owner := _nodeset(record):
            self._share(names.NODESET_NODES, (owner,), 1, int(busy), rest)
            for partition in record.partitions or ():
                self.sets.setdefault(partition, set()).add(owner)
        if self._each:
            self._line(names.NODE_CPUS, (record.name,), record.cpus)
            self._line(names.NODE_CPUS_ALLOCATED, (record.name,), record.alloc_cpus)
            self._line(names.NODE_MEMORY, (record.name,), record.real_memory * _MIB)
            self._line(names.NODE_MEMORY_ALLOCATED, (record.name,), record.alloc_memory * _MIB)
            for name in sorted(has)[: names.NODE_GRES.most]:
                self._line(names.NODE_GRES, (record.name, name), has[name])
                self._line(names.NODE_GRES_ALLOCATED, (record.name, name), used.get(name, 0))

    def _share(self, metric: Metric, labels: tuple[str, ...], has: int, given: int, rest: str) -> None:
        counts = self._counter(metric)
        for state in names.SHARES:
            counts[*labels, state] += {"allocated": given, rest: max(0, has - given)}.get(state, 0)

    def _checks(self, node: SlurmNode, found: NodeHealth) -> None:
        """Count the checks that do not pass, and keep their measured values."""
        for each in node.report.checks if node.report else ():
            self._counter(names.CHECK_NODES)[each.check, each.state] += 1
            for value, number in each.values.items():
                is_number = isinstance(number, int | float) and not isinstance(number, bool)
                if is_number and len(self._lines.get(names.CHECK_VALUE, ())) < names.VALUES:
                    self._line(names.CHECK_VALUE, (node.name, each.check, value), float(number))
        if found.check == "runner":
            self._counter(names.CHECK_NODES)["runner", "suspect"] += 1

    def _counter(self, metric: Metric) -> Counter[tuple[str, ...]]:
        return self._counts.setdefault(metric, Counter())

    def _line(self, metric: Metric, labels: tuple[str, ...], value: float = 1) -> None:
        self._lines.setdefault(metric, []).append(Sample(labels, value))
