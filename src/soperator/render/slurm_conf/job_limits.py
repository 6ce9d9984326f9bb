"""The settings that limit jobs to their allocated CPUs and memory: `spec.jobs.limits`.

Slurm allocates memory like CPUs as soon as a NodeSet sets the size of its nodes. A job that requests no memory then gets a share for each CPU: the
node's memory divided by its CPUs. With Slurm's own default it would get all memory of the node, and two jobs could never share a node. The share is
the only line of slurm.conf that depends on NodeSets, but not on the number of nodes. A NodeSet without a size has the memory of the machine
(images/slurm/roles/slurmd), which suffices for the share of the others.

The kernel enforces the limit if a pod may write its own cgroups; otherwise slurmstepd samples it every few seconds. Sources: slurm.conf(5) and
cgroup.conf(5) of 24.11.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import Partition
from soperator.render.parts.model import Cluster
from soperator.slurm import quantity
from soperator.slurm.conf import settings as read

#: How often slurmstepd looks at the memory of its step, in seconds.
SAMPLE = 10
_DEFAULTS = ("defmempercpu", "defmempergpu", "defmempernode")


def shares(nodesets: Mapping[str, NodeSetSpec]) -> dict[str, int | None]:
    """Return the memory per CPU of each NodeSet's nodes in MiB; None if its resources do not set it."""
    return {name: share(spec) for name, spec in nodesets.items()}


def share(spec: NodeSetSpec) -> int | None:
    """Return the memory per CPU of a node in MiB, without the memory that `MemSpecLimit` reserves; None if the resources do not set it."""
    resources = {**spec.resources.requests, **spec.resources.limits}
    cpus, memory = quantity.cpus(resources) or 1, quantity.memory_mib(resources)
    if memory is None:
        return None
    aside = [each.value for each in read(spec.extra_conf) if each.key.lower() == "memspeclimit"]
    return max(1, (memory - (int(aside[-1]) if aside and aside[-1].isdigit() else 0)) // cpus)


def settings(cluster: Cluster) -> dict[str, str | int]:
    """Return the lines of slurm.conf that follow from the limits; they are defaults, which extra lines override."""
    return {
        "SelectTypeParameters": "CR_Core_Memory" if is_memory_given_out(cluster) else "CR_Core",
        "TaskPlugin": ",".join(_task_plugins(cluster)) or "task/none",
        **_HOLDER[cluster.spec.jobs.limits],
    }


_LINUX = {"ProctrackType": "proctrack/linuxproc", "JobAcctGatherType": "jobacct_gather/linux"}
#: NoShared, for the sum over processes counts what they share once for each; what is in /dev/shm has a bound of its own.
_KILLED = {"JobAcctGatherParams": "OverMemoryKill,NoShared", "JobAcctGatherFrequency": f"task={SAMPLE}"}
_HOLDER: Mapping[str, Mapping[str, str | int]] = MappingProxyType(
    {
        "None": _LINUX,
        "Sampled": _LINUX | _KILLED,
        "Cgroup": {"ProctrackType": "proctrack/cgroup", "JobAcctGatherType": "jobacct_gather/cgroup"},
    }
)


def _task_plugins(cluster: Cluster) -> list[str]:
    jobs = cluster.spec.jobs
    return [
        *(["task/cgroup"] if jobs.limits == "Cgroup" else []),
        *(["task/affinity"] if jobs.bind_cpus else []),
    ]


def cgroup_settings(cluster: Cluster) -> dict[str, str | int]:
    """Return the lines of cgroup.conf. The jail restricts devices: a device filter cannot be loaded from a user namespace."""
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
    """Return the memory of a job that requests none, unless the administrator sets it for the partition or for all partitions."""
    said = [*partition.options, *(each.key for each in read(cluster.spec.config.extra_lines.slurm))]
    if not is_memory_given_out(cluster) or any(key.lower() in _DEFAULTS for key in said):
        return []
    smallest = _smallest(
        cluster, partition.node_sets if partition.node_sets and not partition.features else cluster.shares
    )
    return [("DefMemPerCPU", str(smallest))] if smallest else []


def is_memory_given_out(cluster: Cluster) -> bool:
    """Return whether Slurm counts memory: not if limits are None, and not while no NodeSet sets the size of its nodes."""
    known = [each for each in cluster.shares.values() if each]
    return cluster.spec.jobs.limits != "None" and bool(known or not cluster.shares)


def unsized(cluster: Cluster) -> list[str]:
    """Return the names of the NodeSets whose resources do not set memory."""
    return sorted(name for name, each in cluster.shares.items() if each is None)


def shortfall(cluster: Cluster) -> tuple[str, str]:
    """Return why jobs may exceed their allocation, as a reason and a message; the message is empty if the kernel limits them."""
    if cluster.spec.jobs.limits == "None":
        return "Off", "spec.jobs.limits is None: Slurm counts CPUs but not memory, and nothing limits a job to either"
    if names := unsized(cluster):
        return "SizeUnknown", (
            f"NodeSet {names[0]} does not set its memory in spec.resources, so Slurm allocates the whole machine, which "
            "other pods use too: set cpu and memory"
        )
    if cluster.spec.jobs.limits == "Sampled":
        return "Sampled", (
            f"Slurm samples memory every {SAMPLE} s and ends a step above its memory, but a job may use more CPUs than "
            "allocated: if Nodes give pods a writable cgroup v2, set spec.jobs.limits to Cgroup; if workers have "
            "exclusive CPUs, set spec.jobs.bindCpus"
        )
    return "Cgroup", ""


def _smallest(cluster: Cluster, nodesets: Iterable[str]) -> int | None:
    known = [each for each in (cluster.shares.get(name) for name in nodesets) if each]
    return min(known, default=None)
