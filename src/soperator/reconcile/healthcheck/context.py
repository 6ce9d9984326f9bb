"""Gathers the inputs of a HealthCheck's pass: the cluster, its nodes, and the client of its Slurm."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from soperator.api.base import numbers
from soperator.api.fields.change import seconds, share
from soperator.checks.deep_check import (
    DeepCheck,
    applicable,
    command,
    shipped_deep,
)
from soperator.kube import kinds
from soperator.policy.healthcheck import status_codec as status_codec
from soperator.policy.healthcheck.job_result import ReadingRules
from soperator.policy.healthcheck.types import (
    CheckHistory,
    CheckPolicy,
    CheckTarget,
    Shared,
)
from soperator.reconcile import finalizers, inputs, membership
from soperator.reconcile.cache.decode import read_cluster, read_healthcheck
from soperator.reconcile.context import Operator
from soperator.reconcile.memory import object_memory
from soperator.render.parts.model import Cluster, HealthCheck, NodeSet
from soperator.render.slurm_conf import health_checks
from soperator.slurm.node import SlurmNode
from soperator.slurmrest.client import SlurmRest


@dataclass(frozen=True)
class CheckContext:
    """The inputs of a pass; `shipped` is the shipped check to run, None for a script of the user's."""

    check: HealthCheck
    cluster: Cluster
    settings: CheckPolicy
    targets: Sequence[CheckTarget]
    gpus: Mapping[str, int]
    client: SlurmRest
    facts: Mapping[str, Mapping[str, object]]
    shipped: DeepCheck | None

    @property
    def minutes(self) -> int:
        """The time limit of the job, as Slurm writes it."""
        return max(1, -(-int(seconds(self.check.spec.time_limit)) // 60))

    def judge(self, history: CheckHistory) -> ReadingRules | None:
        """Return the judgement of the check's readings; None for a script, whose exit code decides."""
        return (
            ReadingRules(self.shipped, numbers(self.check.spec.thresholds), history.readings) if self.shipped else None
        )

    def script(self, node: str) -> str:
        """Return the program that runs on a node."""
        if not self.shipped:
            return self.check.spec.script
        facts = self.facts.get(node.rpartition("-")[0], {})
        known = next(iter(applicable([self.shipped], facts)), self.shipped)
        return f"#!/bin/sh\nexec {' '.join([*_step(known), *command(known)])}\n"


def _step(check: DeepCheck) -> list[str]:
    """Return the command that starts the program: as one task per node if the job has several nodes."""
    if check.per == "node":
        return []
    mpi = ["--mpi=pmix"] if check.program == "nccl" else []
    return ["srun", "--ntasks-per-node=1", "--cpu-bind=none", "--mem=0", *mpi]


async def gather(operator: Operator, check: HealthCheck) -> tuple[CheckContext | None, str]:
    """Return the inputs of the pass, or None and why it cannot begin."""
    found = operator.stores.clusters.get(check.namespace, check.spec.cluster)
    cluster = read_cluster(found) if found else None
    if not isinstance(cluster, Cluster):
        return None, f"SlurmCluster {check.spec.cluster} is refused: see its status"
    nodes, client = operator.slurm.nodes(cluster.key), operator.slurm.client(cluster.key)
    if nodes is None or client is None:
        return None, operator.slurm.trouble(cluster.key) or "Slurm has not answered yet"
    if not inputs.running_config(operator, inputs.sized(operator, cluster)):
        return None, "slurmctld does not run with the partitions of checks yet"
    accepted = inputs.members(operator, cluster)
    if lost := sorted(membership.started_nodesets(operator, cluster) - {each.name for each in accepted}):
        # Its nodes would count as deleted, and a bad one among them would be in service when it is readable again.
        return None, f"NodeSet {lost[0]} is refused or unreadable: see its status"
    members = [each for each in accepted if not check.spec.node_sets or each.name in check.spec.node_sets]
    shipped = next((each for each in shipped_deep() if each.name == check.spec.check), None)
    facts = {each.name: health_checks.facts(each) for each in members}
    if shipped:
        members = [each for each in members if applicable([shipped], facts[each.name])]
    others = await _histories(operator, check, cluster)
    targets = [_held(target, others, cluster) for each in members for target in _places(operator, each, nodes)]
    gpus = {each.name: each.spec.gpu.count for each in members if each.spec.gpu.count}
    settings = _settings(check, len(targets))
    if shipped and shipped.per != "node":
        settings = replace(settings, most=max(2, settings.most), shared=Shared(shipped, numbers(check.spec.thresholds)))
    return CheckContext(check, cluster, settings, targets, gpus, client, facts, shipped), ""


async def with_fresh(context: CheckContext, history: CheckHistory) -> CheckContext:
    """Return the same inputs with a fresh answer of Slurm about drained nodes under test; raises SlurmError."""
    names = {name for each in history.runs if each.retest for name in each.nodes} & {
        each.name for each in context.targets if each.node
    }
    if not names:
        return context
    fresh = await context.client.only(names)
    return replace(context, targets=[replace(each, node=fresh.get(each.name, each.node)) for each in context.targets])


def _places(operator: Operator, nodeset: NodeSet, nodes: Mapping[str, SlurmNode]) -> Iterable[CheckTarget]:
    """Yield the nodes of a NodeSet, including those whose pod is being replaced."""
    pods = inputs.worker_set(operator, nodeset).seen
    for index in sorted({*pods, *range(nodeset.spec.size)}):
        pod, name = pods.get(index), f"{nodeset.name}-{index}"
        ready = bool(pod and pod.ready and not pod.deleting)
        yield CheckTarget(name, pod.born if pod else 0.0, ready, nodes.get(name))


async def _histories(operator: Operator, check: HealthCheck, cluster: Cluster) -> Mapping[str, CheckHistory]:
    """Return the results of the cluster's other deep checks, by name. A check that only reports keeps no node drained and is left out."""
    found = {}
    for obj in operator.stores.healthchecks_of(cluster.key):
        other = read_healthcheck(obj)
        if isinstance(other, HealthCheck) and other.name != check.name and not finalizers.is_ending(obj):
            memory = await object_memory.recall(operator, kinds.HEALTHCHECK, obj)
            found[other.name] = status_codec.read_found(other.name, memory, follows(other.spec.on_failure))
    return found


def _held(target: CheckTarget, others: Mapping[str, CheckHistory], cluster: Cluster) -> CheckTarget:
    """Return the node, with the deep checks that keep it drained."""
    failures = {name: history.failures.get(target.name) for name, history in others.items()}
    bad = frozenset(
        name
        for name, failure in failures.items()
        if failure and failure.check_state.is_bad and failure.check_state.takes_out
    )
    return replace(target, deep=bad, every=frozenset(others), quick=cluster.spec.health.mode == "Drain")


def _settings(check: HealthCheck, targets: int) -> CheckPolicy:
    """Converts a HealthCheck's spec to the settings of the policy."""
    spec, when = check.spec, check.spec.when
    return CheckPolicy(
        name=check.name,
        on_failure=follows(spec.on_failure),
        confirm=spec.failure_threshold,
        passes=spec.success_threshold,
        retest=None if spec.on_failure in ("Report", "Drain") else seconds(spec.retry_interval),
        most=share(targets, spec.max_parallel),
        schedule=when.schedule,
        since=check.since,
        after_creation=when.after_creation,
        after_repair=when.after_repair,
        idle=(seconds(when.on_idle.after), seconds(when.on_idle.min_interval)) if when.on_idle else None,
        request=when.run_request,
        suspended=spec.suspend,
    )


def follows(then: str) -> str:
    """Return the consequence of a failure, in the terms of a check's file: `report`, `drain` or `replace`."""
    return {"Report": "report", "Replace": "replace"}.get(then, "drain")
