from dataclasses import replace

import pytest

from soperator.checks.check_state import CheckState
from soperator.checks.report import Report, ResolvedCheck
from soperator.policy import explain
from soperator.policy.explain import PodLocation
from soperator.slurm.node import SlurmNode

NOW = 1_795_316_400.0
PLACE = PodLocation("demo-gpu-3", "rack-7")
FULL = CheckState("disk-full", "failing", NOW - 300, "/tmp is 97 % full", values={"of": "/tmp", "used": 97.2})


def node(*states, reason="", by="root", report=None):
    return SlurmNode("gpu-3", frozenset(states), reason, reason_at=NOW - 240, reason_by=by, report=report)


def said(given, place=PLACE):
    return "\n".join(explain.of_node(given, place, NOW, 1500))


def job(state, reason="None", **more):
    return {"job_id": 42, "user_name": "alice", "job_state": [state], "state_reason": reason, **more}


def test_a_node_that_a_check_drained_is_told_with_who_since_when_why_and_what_next():
    """With the numbers that it rests on, and where its pod is."""
    out = node(
        "MIXED",
        "DRAIN",
        reason="soperator: check disk-full: /tmp is 97 % full",
        by="slurm",
        report=Report(NOW, (FULL,)),
    )
    assert said(out).splitlines() == [
        "gpu-3 is drain+mixed: it takes no new jobs, and jobs run on it.",
        "The operator drained it for its check disk-full, since 2026-11-22T02:56:00Z (4 minutes ago): /tmp is 97 % full.",
        "Next: running jobs continue; when the check has passed often enough, the operator resumes the node.",
        "Check disk-full is failing since 2026-11-22T02:55:00Z: /tmp is 97 % full. Measured: of /tmp, used 97.2.",
        "Pod demo-gpu-3 on Node rack-7.",
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (node("IDLE", "DRAIN", reason="new disk"), "root drained it, since"),
        (
            node("IDLE", "DRAIN", reason="new disk"),
            "the operator never undoes a person's drain: scontrol update nodename=gpu-3 state=resume",
        ),
        (node("IDLE", "DRAIN", reason="soperator: scale-in", by="slurm"), "The operator drained it, since"),
        (node("IDLE", "DRAIN", reason="Kill task failed", by="slurm"), "slurmctld drained it, since"),
        (node("DOWN", "NOT_RESPONDING", reason="Not responding", by="slurm"), "Slurm has set it DOWN"),
        (node("IDLE"), "it takes jobs"),
        (node("IDLE"), "It has not reported any check"),
        (node("IDLE", report=Report(NOW - 60)), "All its checks pass."),
        (node("IDLE", report=Report(NOW - 9000)), "Its checks do not run: no check has been reported since"),
        (
            node("IDLE", report=Report(NOW, last=ResolvedCheck("gpu-lost", NOW - 3600, NOW - 60, "a GPU is lost"))),
            "The last failure, which has ended: gpu-lost from 2026-11-22T02:00:00Z to 2026-11-22T02:59:00Z: a GPU is lost.",
        ),
        (
            node("IDLE", report=Report(NOW, (replace(FULL, broken="it was killed"),))),
            "/tmp is 97 % full; it is broken now: it was killed.",
        ),
    ],
)
def test_every_other_way_of_being_out_has_its_words(given, words):
    """A person, slurmctld, the operator for another reason, silence; and a node in service says how its checks stand."""
    assert words in said(given)


def test_what_is_wrong_with_the_pod_is_told():
    """And that there is none."""
    assert said(node("IDLE"), PodLocation("demo-gpu-3", "", "no Node has room")).endswith(
        "Pod demo-gpu-3 on Node none yet: no Node has room."
    )
    assert said(node("IDLE"), PodLocation()).endswith("It has no pod.")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (job("PENDING", "Priority"), "Why: jobs with a higher priority wait for the same nodes."),
        (job("PENDING", "Dependency"), "Why: it waits for another job."),
        (job("PENDING", "Licenses"), "Why: Slurm says Licenses."),
        (
            job("PENDING", "ReqNodeNotAvail", state_description="ReqNodeNotAvail, UnavailableNodes:gpu-3"),
            "Slurm says: ReqNodeNotAvail, UnavailableNodes:gpu-3.",
        ),
        (job("PENDING", "BeginTime", restart_cnt=2), "It was requeued 2 times: a node failed"),
        (job("NODE_FAIL"), "A node failed under it"),
        (job("FAILED", exit_code={"return_code": {"set": True, "number": 3}}), "exit code 3"),
        (job("RUNNING", comment="mine"), "Its comment: mine."),
    ],
)
def test_a_job_is_told_why_it_waits_was_requeued_or_failed(raw, words):
    """In words beside Slurm's."""
    assert words in "\n".join(explain.of_job(raw, [], NOW))


def test_a_job_that_waits_for_a_bad_node_is_told_what_is_wrong_with_it():
    """Who drained it and why, for nodes that are not well, and for no others."""
    bad = node("IDLE", "DRAIN", reason="soperator: check disk-full: /tmp is 97 % full", by="slurm")
    raw = job("PENDING", "ReqNodeNotAvail", required_nodes="gpu-[3-4]")
    lines = explain.of_job(raw, [bad, replace(node("IDLE"), name="gpu-4")], NOW)
    assert explain.nodes_of(raw) == ["gpu-3", "gpu-4"]
    assert any("for its check disk-full" in line for line in lines)
    assert not any("gpu-4" in line for line in lines)
