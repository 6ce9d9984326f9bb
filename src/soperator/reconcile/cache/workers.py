"""Caches the workers of each NodeSet, and reads a worker again only if one of its sources changed.

Otherwise an event of one pod would cause a pass that reads five thousand other workers again.

The sources of a worker (its pod, its Node, its Slurm node) are immutable, and a change replaces the whole object. So the same objects give the same
result, and this module needs no notification of changes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from soperator.api.fields.change import Maintenance
from soperator.kube.objects import Node
from soperator.kube.views import Pod
from soperator.policy.drain_reasons import JAIL
from soperator.policy.workers.settled import is_settled
from soperator.policy.workers.types import KubeNode, WorkerPod
from soperator.reconcile import pod_status
from soperator.reconcile.cache import kube_nodes
from soperator.render.parts import labels
from soperator.runtime.cache.store import Key, Store
from soperator.slurm.node import Shape, SlurmNode

#: How a NodeSet's status counts the states of its Slurm nodes; one can count twice.
COLUMNS = ("idle", "allocated", "draining", "down")


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker: its sources, and the values read from them.

    `seen` is None for a pod without an index, which is not a worker. `trouble` is why it cannot take jobs. `columns` are the columns of `COLUMNS` in
    which it counts. `began` is when slurmd's container started, in seconds since 1970; 0 if it does not run.
    """

    pod: Pod
    node: Node | None
    slurm: SlurmNode | None
    seen: WorkerPod | None
    machine: KubeNode | None
    trouble: str
    columns: tuple[str, ...]
    is_settled: bool
    began: float = 0.0


@dataclass(frozen=True)
class WorkerSet:
    """The workers of one NodeSet at one time, ordered by pod name, with totals."""

    workers: tuple[Worker, ...] = ()

    @cached_property
    def by_uid(self) -> Mapping[str, Worker]:
        """The worker of a pod, by the pod's uid."""
        return {each.pod.metadata.uid: each for each in self.workers}

    @cached_property
    def seen(self) -> Mapping[int, WorkerPod]:
        """The workers by index, as the policy reads them."""
        return {each.seen.index: each.seen for each in self.workers if each.seen}

    @cached_property
    def machines(self) -> Mapping[str, KubeNode]:
        """The Nodes of the pods."""
        return {each.machine.name: each.machine for each in self.workers if each.machine}

    @cached_property
    def settled(self) -> Mapping[str, frozenset[int]]:
        """The indexes of settled workers, by the hash of their template."""
        found: dict[str, list[int]] = {}
        for each in self.workers:
            if each.is_settled and each.seen:
                found.setdefault(each.seen.template, []).append(each.seen.index)
        return {template: frozenset(indexes) for template, indexes in found.items()}

    @cached_property
    def by_shape(self) -> Mapping[Shape, frozenset[int]]:
        """The indexes of workers, by the shape of their Slurm node, of which a NodeSet has few; equal nodes share one object."""
        found: dict[Shape, list[int]] = {}
        for each in self.workers:
            if each.slurm and each.slurm.shape and each.seen:
                found.setdefault(each.slurm.shape, []).append(each.seen.index)
        return {shape: frozenset(indexes) for shape, indexes in found.items()}

    @cached_property
    def templates(self) -> Mapping[str, int]:
        """The number of workers of each template."""
        return Counter(pod.template for pod in self.seen.values())

    @cached_property
    def plans(self) -> frozenset[str]:
        """The mount plans of the pods."""
        return frozenset(each.pod.metadata.annotations.get(labels.PLAN, "") for each in self.workers)

    @cached_property
    def troubles(self) -> tuple[str, ...]:
        """Why workers cannot take jobs: one text for each worker that cannot."""
        return tuple(each.trouble for each in self.workers if each.trouble)

    @cached_property
    def columns(self) -> Mapping[str, int]:
        """The number of workers in each column of a NodeSet's status."""
        alike = Counter(each.columns for each in self.workers)
        return {name: sum(alike[columns] for columns in alike if name in columns) for name in COLUMNS}


@dataclass(frozen=True)
class _Terms:
    """The inputs from which the workers were read, besides the objects themselves. Equal inputs and the same objects give the same workers."""

    maintenance: Maintenance
    pods: int
    nodes: int
    heard: Mapping[str, SlurmNode] | None

    def is_same(self, other: "_Terms") -> bool:
        """Return whether nothing that a pass reads has changed."""
        return (
            self.heard is other.heard and (self.pods, self.nodes) == (other.pods, other.nodes) and self.reads_as(other)
        )

    def reads_as(self, other: "_Terms") -> bool:
        """Return whether the same inputs were used, so that cached workers stay valid."""
        return self.maintenance == other.maintenance and (self.heard is None) == (other.heard is None)


class WorkerCache:
    """The last `WorkerSet` of every NodeSet."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[_Terms, WorkerSet]] = {}

    def read(
        self,
        key: Key,
        found: Store[Pod],
        nodes: Store[Node],
        heard: Mapping[str, SlurmNode] | None,
        maintenance: Maintenance,
    ) -> WorkerSet:
        """Return the workers of a NodeSet; `heard` is Slurm's answer, None without one."""
        terms = _Terms(maintenance, found.version, nodes.version, heard)
        before, worker_set = self._known.get(key, (terms, WorkerSet()))
        if not (key in self._known and terms.is_same(before)):
            known = worker_set.by_uid if terms.reads_as(before) else {}
            worker_set = WorkerSet(tuple(_workers(found.by("nodeset", key), nodes, terms, known)))
            self._known[key] = (terms, worker_set)
        return worker_set

    def forget(self, key: Key) -> None:
        """Forget a NodeSet that no longer exists."""
        self._known.pop(key, None)


def _workers(found: Iterable[Pod], nodes: Store[Node], terms: _Terms, known: Mapping[str, Worker]) -> Iterable[Worker]:
    heard = terms.heard or {}
    for pod in found:
        node = nodes.get("", pod.spec.node_name) if pod.spec.node_name else None
        slurm = heard.get(pod.spec.hostname)
        old = known.get(pod.metadata.uid)
        if old is not None and old.pod is pod and old.node is node and old.slurm is slurm:
            yield old
        else:
            yield _read(pod, nodes, slurm, terms)


def _read(pod: Pod, nodes: Store[Node], slurm: SlurmNode | None, terms: _Terms) -> Worker:
    node = nodes.get("", pod.spec.node_name) if pod.spec.node_name else None
    machine = kube_nodes.machine(node, terms.maintenance) if node else None
    seen = pod_status.worker(pod, nodes)
    return Worker(
        pod=pod,
        node=node,
        slurm=slurm,
        seen=seen,
        machine=machine,
        trouble=_trouble(pod, nodes, slurm, terms.heard is None),
        columns=_columns(slurm) if slurm else (),
        is_settled=seen is not None and is_settled(seen, slurm, machine),
        began=pod_status.began(pod, "slurmd"),
    )


def _trouble(pod: Pod, nodes: Store[Node], slurm: SlurmNode | None, is_silent: bool) -> str:
    """Return why a worker cannot take jobs: not ready in Kubernetes, or not up in Slurm's last answer; empty if it can."""
    if slurm and slurm.is_draining and slurm.our_reason.startswith(JAIL):
        return f"Slurm node {slurm.name} is {slurm.state_text}"
    if text := pod_status.trouble(pod, nodes):
        return text
    if is_silent:
        return ""
    if slurm is None:
        return f"Slurm node {pod.spec.hostname} has not registered yet"
    if slurm.is_slurms:
        return f"Slurm node {slurm.name} is {slurm.state_text}: slurmctld drained it; {slurm.remedy}"
    return "" if slurm.is_up else f"Slurm node {slurm.name} is {slurm.state_text}"


def _columns(slurm: SlurmNode) -> tuple[str, ...]:
    holds = (
        slurm.is_up and not slurm.is_busy and not slurm.is_draining,
        slurm.is_busy,
        slurm.is_draining and not slurm.is_down,
        not slurm.is_up and not slurm.is_draining,
    )
    return tuple(name for name, does in zip(COLUMNS, holds, strict=True) if does)
