"""The GPUs of a node in Slurm: the lines of gres.conf, and the links that make their device names valid.

A pod has the GPUs of its Node that the device plugin allocated, for example /dev/nvidia2 and /dev/nvidia5. Slurm needs the names beforehand, and all
nodes share one gres.conf. So the entry script links a node's GPUs, in the order of their numbers, to /run/soperator/gpus/0, 1, …, which are the names
in gres.conf. AutoDetect=nvidia does not work here: it reads /proc/driver/nvidia, which may list GPUs of the Node that the pod does not have; slurmd
24.11.5 crashes if the driver's folder in /sys is missing; and Debian's slurmd has none for AMD.

A shard is a part of a GPU only by convention: each GPU has a number of shards, and a job with shards learns its GPU as a job with GPUs does.

Lines in `config.extraLines.gres` replace all of this.
"""

from collections.abc import Mapping

from soperator.api.nodeset import Gpu, NodeSetSpec
from soperator.render.parts import pod
from soperator.render.parts.model import Cluster, NodeSet, Object
from soperator.slurm import conf

#: Names of the devices that are GPUs. Those that belong to no single one (/dev/nvidiactl, /dev/kfd) are not among them.
DEVICES = {"nvidia": "/dev/nvidia[0-9]*", "amd": "/dev/dri/renderD[0-9]*"}
#: Which variables of a job name its GPUs: gres.conf(5), Flags.
_FLAGS = {"nvidia": "nvidia_gpu_env", "amd": "amd_gpu_env"}
_FOLDER = f"{pod.PRIVATE}/gpus"
_LAST = 16383


def counted(nodesets: Mapping[str, NodeSetSpec]) -> dict[str, Gpu]:
    """Return the GPUs of each NodeSet whose nodes have any."""
    return {name: spec.gpu for name, spec in sorted(nodesets.items()) if has_gpus(spec)}


def has_gpus(spec: NodeSetSpec) -> bool:
    """Return whether the nodes have GPUs for Slurm to count."""
    return spec.gpu.vendor != "None" and spec.gpu.count > 0


def is_ours(cluster: Cluster) -> bool:
    """Return whether the operator writes gres.conf."""
    return not cluster.spec.config.extra_lines.gres.strip()


def gres_conf(cluster: Cluster) -> str:
    """Return the lines of gres.conf: those of each NodeSet with GPUs, over all names that its nodes may have."""
    return (
        conf.render(line for name, gpu in cluster.gpus.items() for line in lines(name, gpu)) if is_ours(cluster) else ""
    )


def gres_types(cluster: Cluster) -> str:
    """Return the kinds of GRES of slurm.conf."""
    return "gpu,shard" if any(gpu.shards for gpu in cluster.gpus.values()) else "gpu"


def lines(name: str, gpu: Gpu) -> list[conf.Line]:
    """Return the lines of gres.conf for a NodeSet of this name."""
    numbers = f"[0-{gpu.count - 1}]" if gpu.count > 1 else "0"
    nodes, flags = ("NodeName", f"{name}-[0-{_LAST}]"), ("Flags", _FLAGS[gpu.vendor])
    kind = [("Type", gpu.type)] if gpu.type else []
    found = [conf.Line((nodes, ("Name", "gpu"), *kind, ("File", f"{_FOLDER}/{numbers}"), flags))]
    if gpu.shards:
        found.append(conf.Line((nodes, ("Name", "shard"), ("Count", str(gpu.shards)), flags)))
    return found


def environment(cluster: Cluster, nodeset: NodeSet) -> list[Object]:
    """Return the environment that gives the entry script the number of GPUs to link, and their names."""
    gpu = nodeset.spec.gpu
    if not has_gpus(nodeset.spec) or not is_ours(cluster):
        return []
    return pod.env(SOPERATOR_GPUS=f"{gpu.count} {DEVICES[gpu.vendor]}")
