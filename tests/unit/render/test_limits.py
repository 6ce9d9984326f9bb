"""Limits of jobs: memory is given out where every node's size is known, and who holds a job to it is said."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.jail.mount_plan import worker_plan
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.slurm_conf import job_limits, slurm_conf
from soperator.render.worker import pod
from tests.golden.cases import DEFAULTS

SIZED = {"clusterRef": {"name": "demo"}, "resources": {"limits": {"cpu": "4", "memory": "8Gi"}}}
SMALL = {"clusterRef": {"name": "demo"}, "resources": {"limits": {"cpu": "4", "memory": "4Gi"}}}
UNSIZED = {"clusterRef": {"name": "demo"}, "resources": {"limits": {"cpu": "4"}}}


def cluster(nodesets: dict[str, Any], **spec: Any) -> Cluster:
    """A cluster with NodeSets."""
    members = {name: NodeSetSpec.model_validate(each) for name, each in nodesets.items()}
    return Cluster("slurm", "demo", "uid", SlurmClusterSpec.model_validate(spec), job_limits.shares(members))


def lines(made: Cluster) -> list[str]:
    """The lines of slurm.conf."""
    return slurm_conf.slurm_conf(made).splitlines()


def test_a_job_that_asks_for_no_memory_gets_the_share_of_its_cpus() -> None:
    """The default partition gives each CPU the memory of the node divided by its CPUs, and memory is given out."""
    said = lines(cluster({"a": SIZED}))
    assert "PartitionName=main Nodes=ALL Default=YES DefMemPerCPU=2048" in said
    assert "SelectTypeParameters=CR_Core_Memory" in said


def test_a_partition_takes_the_smallest_share_of_its_own_nodesets() -> None:
    """So a job on all CPUs of a node always fits, and a small NodeSet elsewhere does not matter."""
    parts = [{"name": "all"}, {"name": "large", "nodeSets": ["a"]}]
    said = lines(cluster({"a": SIZED, "b": SMALL}, partitions=parts))
    assert [line for line in said if line.startswith("PartitionName")] == [
        "PartitionName=all Nodes=ALL DefMemPerCPU=1024",
        "PartitionName=large Nodes=a DefMemPerCPU=2048",
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"partitions": [{"name": "all", "options": {"DefMemPerNode": "100"}}]},
        {"config": {"extraLines": {"slurm": "defmempercpu=100"}}},
        {"jobs": {"limits": "None"}},
    ],
)
def test_the_administrator_s_word_stands(spec: dict[str, Any]) -> None:
    """Where a default is said already, or limits are off, no share is written."""
    assert "DefMemPerCPU" not in slurm_conf.slurm_conf(cluster({"a": SIZED}, **spec))


def test_what_slurm_sets_aside_is_nobodys() -> None:
    """MemSpecLimit of extraConf is taken off before the memory is divided."""
    assert job_limits.share(NodeSetSpec.model_validate(SIZED | {"extraConf": "MemSpecLimit=192"})) == 2000


def test_a_nodeset_of_unknown_size_changes_nothing_for_the_others() -> None:
    """Its nodes have the machine's memory, so the share of the others fits; the condition names it."""
    made = cluster({"a": SIZED, "b": UNSIZED})
    assert lines(made) == lines(cluster({"a": SIZED}))
    assert job_limits.shortfall(made)[0] == "SizeUnknown"
    assert "NodeSet b" in job_limits.shortfall(made)[1]


def test_where_no_size_is_known_cpus_alone_are_given_out() -> None:
    """A job without --mem would otherwise take the whole node."""
    assert "SelectTypeParameters=CR_Core" in lines(cluster({"b": UNSIZED}))


@given(
    st.dictionaries(st.from_regex("[a-z]{1,3}", fullmatch=True), st.integers(1, 512), min_size=1), st.integers(1, 64)
)
def test_a_job_on_all_cpus_of_any_node_fits(memory: dict[str, int], cpus: int) -> None:
    """The share times the CPUs is never more than the smallest node has."""
    sets = {
        name: {"clusterRef": {"name": "demo"}, "resources": {"limits": {"cpu": str(cpus), "memory": f"{each}Gi"}}}
        for name, each in memory.items()
    }
    found = re.search("DefMemPerCPU=([0-9]+)", slurm_conf.slurm_conf(cluster(sets)))
    assert found
    assert int(found[1]) * cpus <= min(memory.values()) * 1024


@pytest.mark.parametrize(
    ("limit", "reason", "expected"),
    [
        ("Sampled", "Sampled", {"ProctrackType=proctrack/linuxproc", "JobAcctGatherParams=OverMemoryKill,NoShared"}),
        ("Cgroup", "Cgroup", {"ProctrackType=proctrack/cgroup", "TaskPlugin=task/cgroup"}),
        ("None", "Off", {"SelectTypeParameters=CR_Core", "ProctrackType=proctrack/linuxproc"}),
    ],
)
def test_who_holds_a_job(limit: str, reason: str, expected: set[str]) -> None:
    """Each setting chooses its plugins, and only the kernel's is told without a shortfall."""
    made = cluster({"a": SIZED}, jobs={"limits": limit})
    assert expected <= set(lines(made))
    assert job_limits.shortfall(made)[0] == reason
    assert bool(job_limits.shortfall(made)[1]) is (limit != "Cgroup")


def test_with_cgroups_slurmd_prepares_its_own_and_a_step_sees_them() -> None:
    """cgroup.conf constrains cores and memory without systemd, the pod is told to prepare, and the plan shows the tree writable to root alone."""
    made = cluster({"a": SIZED}, jobs={"limits": "Cgroup"})
    nodeset = NodeSet("slurm", "a", "uid", NodeSetSpec.model_validate(SIZED))
    said = set(slurm_conf.files(made)["cgroup.conf"].splitlines())
    assert {"CgroupPlugin=cgroup/v2", "IgnoreSystemd=yes", "ConstrainCores=yes", "ConstrainRAMSpace=yes"} <= said
    assert "/sys/fs/cgroup" in [each.target for each in worker_plan(made, nodeset)]
    env = pod.render_worker(made, nodeset, 0, DEFAULTS)["spec"]["containers"][0]["env"]
    assert {"name": "SOPERATOR_LIMITS", "value": "Cgroup"} in env


def test_binding_tasks_takes_a_plugin_and_a_capability() -> None:
    """bindCpus adds task/affinity and SYS_NICE, by which slurmstepd may set the affinity of a user's task; without it there is neither."""
    nodeset = NodeSet("slurm", "a", "uid", NodeSetSpec.model_validate(SIZED))
    for binds, plugin in ((True, "TaskPlugin=task/cgroup,task/affinity"), (False, "TaskPlugin=task/cgroup")):
        made = cluster({"a": SIZED}, jobs={"limits": "Cgroup", "bindCpus": binds})
        context = pod.render_worker(made, nodeset, 0, DEFAULTS)["spec"]["containers"][0]["securityContext"]
        assert plugin in lines(made)
        assert ("SYS_NICE" in context["capabilities"]["add"]) is binds
