"""Nodes, pods and reports for the tests of what follows from checks."""

from soperator.checks.check_state import CheckState
from soperator.checks.report import Report
from soperator.policy.health.policy import HealthPolicy, decide
from soperator.policy.workers.types import WorkerPod, WorkerSnapshot
from soperator.slurm.node import SlurmNode

NOW = 1e6
POLICY = HealthPolicy(drains=True, most=2, interval=60.0)
WELL = Report(NOW - 5000)


def bad(check="disk-full", state="failing", since=NOW - 100, message="/tmp is 97 % full", **said):
    return Report(since, (CheckState(check, state, since, message, **said),))


def node(index=0, *flags, report=WELL, reason="", at=NOW - 100, base="IDLE", by="root"):
    states = frozenset({base, *flags})
    return SlurmNode(f"w-{index}", states, reason=reason, reason_at=at, reason_by=by, report=report)


def out(index=0, report=None, reason="soperator: check disk-full: /tmp is 97 % full", **said):
    return node(index, "DRAIN", report=report or bad(), reason=reason, by="slurm", **said)


def pod(index=0, noted="", protected=True, **said):
    return WorkerPod(index, "t", "Running", deleting=False, ready=True, protected=protected, noted=noted, **said)


def seen(*nodes, pods=(), now=NOW):
    known = {each.name: each for each in nodes}
    given_pods = {each.index: each for each in pods}
    indexes = [int(name.partition("-")[2]) for name in known]
    return WorkerSnapshot("w", len(known), "t", {n: given_pods.get(n, pod(n)) for n in indexes}, known, now=now)


def actions(*nodes, pods=(), policy=POLICY, now=NOW):
    return list(decide(seen(*nodes, pods=pods, now=now), policy).actions)
