"""What is written into the comments of jobs whose node is not well."""

from dataclasses import replace

from soperator.policy.workers.job_comment import LONGEST, commented, messages_by_node
from soperator.policy.workers.types import KubeNode
from tests.unit.policy.checked import (
    NOW,
    node,
    out,
    pod,
    seen,
)

CHECK = "w-0 failed check disk-full at 1970-01-12T13:45:00Z: /tmp is 97 % full"


def test_only_the_jobs_of_a_busy_node_that_is_not_well_are_told():
    """One that takes jobs, one that an administrator drained, and one on which nothing runs say nothing."""
    plain, by_hand, empty = node(1, base="MIXED"), node(2, "DRAIN", base="MIXED", reason="fan"), out(3)
    assert messages_by_node(seen(out(0, base="ALLOCATED"), plain, by_hand, empty)) == {"w-0": CHECK}


def test_a_node_that_does_not_answer_is_told_with_its_machine_where_that_is_why():
    """Since when the machine is away, which stays the same; else what is wrong with the pod."""
    silent, away = node(0, "NOT_RESPONDING", base="ALLOCATED"), KubeNode("m1", ready=False, since=NOW)
    looks = seen(silent, pods=[pod(0, machine="m1", trouble="container slurmd ended")])
    assert messages_by_node(looks) == {"w-0": "w-0 did not answer: container slurmd ended"}
    says = "w-0 was on Node m1, which has not been ready since 1970-01-12T13:46:40Z"
    assert messages_by_node(replace(looks, machines={"m1": away})) == {"w-0": says}


def test_a_comment_keeps_what_stands_there_and_says_nothing_twice():
    """What an administrator wrote stays in front; an operator that begins anew changes nothing; no comment grows without end."""
    once = commented("", [CHECK])
    assert once == f"soperator: {CHECK}"
    assert commented(once, [CHECK]) == once
    assert commented("see ticket 7", [CHECK, "more"]) == f"see ticket 7; {CHECK}; more"
    full = "x" * LONGEST
    assert commented(full, [CHECK]) == full
