"""Explains why a Slurm node or a job is in its state, from Slurm's answers alone, so that `soperator why` needs no history.

Source of the states and reasons of jobs: squeue(1) of 24.11; of nodes: sinfo(1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from soperator.policy import drain_reasons
from soperator.policy.health.policy import HealthState, health
from soperator.slurm.hostlist import expand
from soperator.slurm.job import NEVER, number
from soperator.slurm.node import SlurmNode

#: Why a job waits, in other words than Slurm's one.
_WAITS: Mapping[str, str] = MappingProxyType(
    {
        "Resources": "the nodes that it could run on are busy, and it is the next in the queue",
        "Priority": "jobs with a higher priority wait for the same nodes",
        "ReqNodeNotAvail": "a node that it requests by name is not available now",
        "Dependency": "it waits for another job",
        "DependencyNeverSatisfied": "the job that it depends on can no longer end as required: cancel it",
        "BeginTime": "its start time has not come, or it was requeued a moment ago",
        "JobHeldUser": "its user holds it: release it with scontrol release",
        "JobHeldAdmin": "an administrator holds it, or Slurm held it after a failure: release it with scontrol release",
        "PartitionDown": "its partition is down",
        "PartitionNodeLimit": "it requests more nodes than its partition allows or than are in service",
        "PartitionTimeLimit": "it requests more time than its partition allows",
        "BadConstraints": "no node has the requested resources",
        "Reservation": "it waits for its reservation",
    }
)
_HINTS = ("Resources", "Priority", "ReqNodeNotAvail", "PartitionNodeLimit", "BadConstraints")
_NAMED = 5


@dataclass(frozen=True)
class PodLocation:
    """A node's pod: its Kubernetes Node and its fault; each is empty without a pod or without a fault."""

    pod: str = ""
    machine: str = ""
    trouble: str = ""


def of_node(node: SlurmNode, place: PodLocation, now: float, silence: float = NEVER) -> list[str]:
    """Return sentences on why a node is in service or not: what drained it, since when, the evidence, and the next step."""
    where = f"Pod {place.pod} on Node {place.machine or 'none yet'}" if place.pod else "It has no pod"
    return [
        f"{node.name} is {_state(node)}.",
        *_cause(node, now),
        *_checks(node, now, silence),
        f"{where}{f': {place.trouble}' if place.trouble else ''}.",
    ]


def of_job(raw: Mapping[str, Any], nodes: Sequence[SlurmNode], now: float) -> list[str]:
    """Return sentences on why a job is pending, was requeued or failed, from slurmrestd's JSON; `nodes` are the nodes that it has, requests, or
    had.
    """
    state, name = (
        "+".join(raw.get("job_state") or ("UNKNOWN",)),
        f"Job {raw.get('job_id')} of {raw.get('user_name', '?')}",
    )
    reason, said = raw.get("state_reason") or "None", str(raw.get("state_description") or "")
    lines = [f"{name} is {state}{f' ({reason})' if reason != 'None' else ''}."]
    base = (raw.get("job_state") or [""])[0]
    if base == "PENDING":
        lines.append(_sentence(_WAITS.get(reason.partition(",")[0], said or f"Slurm says {reason}")))
    if said and reason.partition(",")[0] in _HINTS:
        lines.append(f"Slurm says: {said}.")
    if again := int(number(raw.get("restart_cnt"))):
        lines.append(
            f"It was requeued {again} time{'s' * (again > 1)}: a node failed or was taken from it, or a person requeued it."
        )
    lines += _end(base, raw)
    lines += [f"Its comment: {raw[key]}." for key in ("comment", "admin_comment", "system_comment") if raw.get(key)]
    bad = [each for each in nodes if each.is_draining or not each.is_up or (each.report and each.report.checks)]
    for each in bad[:_NAMED]:
        lines += [f"Of its nodes {each.name} is {_state(each)}.", *_cause(each, now)]
    return [*lines, *([f"And {len(bad) - _NAMED} more of its nodes have faults."] if bad[_NAMED:] else [])]


def nodes_of(raw: Mapping[str, Any]) -> list[str]:
    """Return the nodes that a job has or had, or requests by name."""
    return expand(raw.get("nodes") or raw.get("required_nodes") or raw.get("failed_node") or "")


def _state(node: SlurmNode) -> str:
    words = "+".join(sorted(node.states - {"DYNAMIC_NORM"})).lower() or "unknown"
    takes = node.is_up and not node.is_draining
    return (
        f"{words}: it {'takes jobs' if takes else 'takes no new jobs'}{', and jobs run on it' if node.is_busy else ''}"
    )


def _cause(node: SlurmNode, now: float) -> Iterator[str]:
    since = (
        f"since {drain_reasons.stamp(node.reason_at)} ({_ago(now - node.reason_at)})"
        if node.reason_at
        else "at a time unknown"
    )
    if drain_reasons.is_of_check(node):
        check, says = drain_reasons.check_of(node)
        yield f"The operator drained it for its check {check}, {since}: {says}."
        yield "Next: running jobs continue; when the check has passed often enough, the operator resumes the node."
    elif node.is_draining and node.is_ours:
        yield f"The operator drained it, {since}: {node.reason.removeprefix('soperator: ')}."
        yield "Next: when the cause is over, the operator resumes the node or replaces its pod."
    elif node.is_slurms:
        yield f"slurmctld drained it, {since}: {node.reason}."
        yield f"Next: nothing by itself; {node.remedy}."
    elif node.is_draining:
        yield f"{node.reason_by or 'somebody'} drained it, {since}: {node.reason or 'without a reason'}."
        yield f"Next: nothing automatic, because the operator never undoes a person's drain: scontrol update nodename={node.name} state=resume."
    elif not node.is_up:
        yield f"Slurm has set it DOWN, {since}: {node.reason or 'it does not answer'}."
        yield "Next: it returns to service when its slurmd answers; the pod shows why it does not answer."


def _checks(node: SlurmNode, now: float, silence: float) -> Iterator[str]:
    found = health(node, now, silence)
    report = node.report
    if report is None:
        yield "It has not reported any check yet."
        return
    for each in report.checks:
        evidence = ", ".join(f"{key} {value}" for key, value in each.values.items())
        broken = f"; it is broken now: {each.broken}" if each.broken else ""
        yield (
            f"Check {each.check} is {each.state} since {drain_reasons.stamp(each.since)}: {each.message}{broken}."
            + (f" Measured: {evidence}." if evidence else "")
        )
    if found.state is HealthState.SUSPECT and found.check == "runner":
        yield f"Its checks do not run: {found.message}; see the log of slurmd."
    elif not report.checks:
        yield f"All its checks pass{f', and {report.more} more are not told' if report.more else ''}."
    if report.last:
        until, since = drain_reasons.stamp(report.last.until), drain_reasons.stamp(report.last.since)
        yield f"The last failure, which has ended: {report.last.check} from {since} to {until}: {report.last.message}."


def _end(base: str, raw: Mapping[str, Any]) -> Iterator[str]:
    code = (raw.get("exit_code") or {}).get("return_code") or {}
    match base:
        case "NODE_FAIL":
            yield "A node failed under it, and it could not be requeued: it is not a batch job, or has --no-requeue."
        case "FAILED":
            yield f"Its program ended with exit code {int(number(code))}: see its output."
        case "TIMEOUT":
            yield "It reached its time limit."
        case "OUT_OF_MEMORY":
            yield "It used more memory than it had requested, and the kernel killed it."
        case "CANCELLED":
            yield "It was cancelled."


def _sentence(text: str) -> str:
    return f"Why: {text}."


def _ago(seconds: float) -> str:
    for length, word in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {word} ago"
    return f"{max(0, int(seconds))} seconds ago"
