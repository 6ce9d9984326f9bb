"""How jobs are held to the CPUs and the memory that they were given: `spec.jobs.limits`.

Memory is given out like CPUs as soon as every NodeSet says how large its nodes are. A job that asks for none then gets its share, the
node's memory divided by its CPUs, for each CPU: with Slurm's own default it would get the whole node's, and no two jobs could share one.
The share is the one line of slurm.conf that follows from NodeSets, and how many nodes there are does not matter to it.

Who holds a job to it depends on the Nodes: the kernel, where a pod may write its own cgroups, or slurmstepd, which looks every few seconds.
Sources: slurm.conf(5) and cgroup.conf(5) of 24.11.
"""

from collections.abc import Iterable, Mapping

from soperator.api.cluster import Partition
from soperator.api.nodeset import NodeSetSpec
from soperator.render.model import Cluster
from soperator.slurm import size
from soperator.slurm.lint import settings as read

#: How often slurmstepd looks at the memory of its step, in seconds.
SAMPLE = 10
_DEFAULTS = ("defmempercpu", "defmempergpu", "defmempernode")


def shares(nodesets: Mapping[str, NodeSetSpec]) -> dict[str, int | None]:
    """The memory per CPU of each NodeSet's nodes in MiB; None where its resources do not say both."""
    return {name: share(spec) for name, spec in nodesets.items()}


def share(spec: NodeSetSpec) -> int | None:
    """The memory per CPU of a node in MiB, without what `MemSpecLimit` sets aside; None where resources do not say both."""
    resources = {**spec.resources.requests, **spec.resources.limits}
    cpus, memory = size.cpus(resources), size.memory_mib(resources)
    if cpus is None or memory is None:
        return None
    aside = [each.value for each in read(spec.slurmd_conf) if each.key.lower() == "memspeclimit"]
    return max(1, (memory - (int(aside[-1]) if aside and aside[-1].isdigit() else 0)) // cpus)


def settings(cluster: Cluster) -> dict[str, str | int]:
    """The lines of slurm.conf that follow from the limits; they are defaults, which extra lines override."""
    return {
        "SelectTypeParameters": "CR_Core_Memory" if is_memory_given_out(cluster) else "CR_Core",
        **_HOLDER[cluster.spec.jobs.limits],
    }


_HOLDER: Mapping[str, Mapping[str, str | int]] = {
    "None": {
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/affinity",
        "TaskPluginParam": "None",
        "JobAcctGatherType": "jobacct_gather/linux",
    },
    "Sampled": {
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/affinity",
        "TaskPluginParam": "None",
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherParams": "OverMemoryKill,NoShared",
        "JobAcctGatherFrequency": f"task={SAMPLE}",
    },
    "Cgroup": {
        "ProctrackType": "proctrack/cgroup",
        "TaskPlugin": "task/cgroup,task/affinity",
        "JobAcctGatherType": "jobacct_gather/cgroup",
    },
}


def cgroup_settings(cluster: Cluster) -> dict[str, str | int]:
    """The lines of cgroup.conf. Devices are the jail's part: a filter for them cannot be loaded from a user namespace."""
    if cluster.spec.jobs.limits != "Cgroup":
        return {"CgroupPlugin": "disabled"}
    return {
        "CgroupPlugin": "cgroup/v2",
        "IgnoreSystemd": "yes",
        "EnableControllers": "yes",
        "ConstrainCores": "yes",
        "ConstrainRAMSpace": "yes",
        "ConstrainDevices": "no",
    }


def partition_options(cluster: Cluster, partition: Partition) -> list[tuple[str, str]]:
    """The memory of a job that asks for none, unless the administrator says it for the partition or for all of them."""
    said = [*partition.options, *(each.key for each in read(cluster.spec.config.slurm))]
    if not is_memory_given_out(cluster) or any(key.lower() in _DEFAULTS for key in said):
        return []
    smallest = _smallest(cluster, partition.node_sets or cluster.shares)
    return [("DefMemPerCPU", str(smallest))] if smallest else []


def is_memory_given_out(cluster: Cluster) -> bool:
    """Whether Slurm counts memory: not where limits are None, nor while a NodeSet does not say how large its nodes are."""
    return cluster.spec.jobs.limits != "None" and not unsized(cluster)


def unsized(cluster: Cluster) -> list[str]:
    """The NodeSets whose resources do not say both CPUs and memory."""
    return sorted(name for name, each in cluster.shares.items() if each is None)


def shortfall(cluster: Cluster) -> tuple[str, str]:
    """Why jobs may exceed what they were given, as a reason and a sentence; an empty sentence where the kernel holds them."""
    if cluster.spec.jobs.limits == "None":
        return "Off", "spec.jobs.limits is None: CPUs are counted, memory is not, and nothing holds a job to either"
    if names := unsized(cluster):
        return "SizeUnknown", (
            f"NodeSet {names[0]} does not say cpu and memory in its resources, so Slurm gives out CPUs alone: say both"
        )
    if cluster.spec.jobs.limits == "Sampled":
        return "Sampled", (
            f"memory is looked at every {SAMPLE} s, and a step that is above its own is ended; CPUs are counted, and a job may use "
            "more of them: where Nodes give pods a writable cgroup v2, set spec.jobs.limits to Cgroup"
        )
    return "Cgroup", ""


def _smallest(cluster: Cluster, nodesets: Iterable[str]) -> int | None:
    known = [each for each in (cluster.shares.get(name) for name in nodesets) if each]
    return min(known, default=None)
