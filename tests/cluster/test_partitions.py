"""Partitions are edited while jobs run."""

import time

import pytest

from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster


def test_a_new_partition_appears_while_a_job_runs(lab: Lab, alice: str) -> None:
    """slurmctld comes back with the partition, takes jobs in it, and the job that ran before ends by itself; so it is when it goes again."""
    held = lab.hold("worker-0")
    both = [{"name": "main", "default": True}, {"name": "extra", "nodeSets": ["worker"], "options": {"MaxTime": "60"}}]
    lab.patch("slurmcluster", lab.cluster, {"partitions": both})
    lab.timed("a new partition: kubectl patch → sinfo shows it with two nodes", lambda: nodes(lab, "extra") == "2", 60)
    assert lab.ssh(alice, "srun -p extra -w worker-1 hostname") == "worker-1\n"
    assert held.state() == "RUNNING"
    lab.wait_available()
    lab.patch("slurmcluster", lab.cluster, {"partitions": None})
    lab.timed("a partition goes: kubectl patch → sinfo has it no more", lambda: nodes(lab, "extra") == "", 60)
    held.let_go()
    lab.wait_available()


def nodes(lab: Lab, partition: str) -> str:
    """How many nodes sinfo shows in a partition; empty where there is no such partition or no answer."""
    began = time.monotonic()
    found = lab.ssh("alice", "timeout 5 sinfo -h -o '%P %D' 2>/dev/null || echo silent").splitlines()
    assert time.monotonic() - began < 30
    if found[-1:] == ["silent"]:
        return "?"
    return next((line.split()[1] for line in found if line.split()[0] == partition), "")
