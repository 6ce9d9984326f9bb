"""slurm.conf and its companions, from the SlurmCluster, and the memory per CPU and the GPUs of its NodeSets.

No line depends on how many workers there are: they register as dynamic nodes, and a partition over a NodeSet is a partition over the feature
that its nodes carry. So scaling changes no file; an edit of the cluster, of the size of the smallest nodes, or of GPUs, restarts slurmctld.
Source of each setting: slurm.conf(5) of 24.11.
"""

import hashlib

from soperator.api.cluster import Containers, Partition, SlurmClusterSpec
from soperator.render import gpus, labels, limits, names, pod
from soperator.render.model import Cluster, Object
from soperator.slurm import conf
from soperator.slurm.lint import shared_lines
from soperator.slurm.owned import SHARED

BUNDLE = "/opt/soperator"
PLAN_PATH = "/etc/soperator/jail/plan"
#: An upper bound, for which slurmctld sets aside only pointers and bitmaps.
MAX_NODES = 16384


def render_config(cluster: Cluster) -> Object:
    """The ConfigMap with Slurm's configuration files."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": pod.metadata(cluster, names.config(cluster.name), "controller"),
        "data": files(cluster),
    }


def config_hash(cluster: Cluster) -> str:
    """A short name of the content of all files, for the pods that read them."""
    text = "\0".join(f"{name}\0{content}" for name, content in sorted(files(cluster).items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def files(cluster: Cluster) -> dict[str, str]:
    """The text of each file by its name."""
    extra = cluster.spec.config
    return {
        "slurm.conf": slurm_conf(cluster),
        "cgroup.conf": _with_extra(conf.render(conf.lines(limits.cgroup_settings(cluster))), extra.cgroup),
        "gres.conf": _with_extra(gpus.gres_conf(cluster), extra.gres),
        "plugstack.conf": plugstack_conf(cluster.spec),
    }


def slurm_conf(cluster: Cluster) -> str:
    """The text of slurm.conf: ours, then the partitions, then the user's lines."""
    ours = [conf.line(ClusterName=cluster.name), *_hosts(cluster)]
    ours += conf.lines(_identity() | _auth(cluster.spec) | _paths() | _behaviour() | limits.settings(cluster))
    ours += _node_sets(cluster.spec) + [_partition(cluster, each) for each in cluster.spec.partitions or [_MAIN]]
    extra = cluster.spec.config.slurm
    return _with_extra(conf.render(ours), extra) + shared_lines(extra)


def plugstack_conf(spec: SlurmClusterSpec) -> str:
    """The text of plugstack.conf. Where a step ends, a container is saved before the jail's plugin ends what is left, so it stands first."""
    ours = [*_containers(spec.containers), f"required {BUNDLE}/lib/slurm/spank_jail.so plan={PLAN_PATH}\n"]
    return _with_extra("".join(ours), spec.config.plugstack)


def _containers(spec: Containers) -> list[str]:
    if not spec.enabled:
        return []
    said = {
        "container_scope": "" if spec.scope == "job" else spec.scope,
        "execute_entrypoint": "1" if spec.entrypoint else "",
        "remap_root": "1" if spec.remap_root else "",
        "mount_home": "1" if spec.mount_home else "",
    }
    words = [
        f"required {BUNDLE}/lib/slurm/spank_container.so",
        *(f"{key}={value}" for key, value in said.items() if value),
    ]
    return [" ".join(words) + "\n"]


_MAIN = Partition(name="main", default=True)


def _hosts(cluster: Cluster) -> list[conf.Line]:
    """The slurmctlds in the order in which they take over. Each is reached by a Service, whose address outlives its pod."""
    count, name = cluster.spec.controller.replicas, cluster.name
    hosts = [(names.controller_host(name, number), names.controller_address(name, number)) for number in range(count)]
    return [conf.line(SlurmctldHost=f"{host}({address})") for host, address in hosts]


def _identity() -> dict[str, str | int]:
    return {
        "SlurmUser": "slurm",
        "SlurmctldPort": names.CONTROLLER_PORT,
        "SlurmdPort": names.SLURMD_PORT,
        "SlurmctldParameters": SHARED["SlurmctldParameters"],
        "MaxNodeCount": MAX_NODES,
    }


def _auth(spec: SlurmClusterSpec) -> dict[str, str | int]:
    return {
        "AuthType": f"auth/{spec.auth.type}",
        "CredType": f"cred/{spec.auth.type}",
        "AuthAltTypes": "auth/jwt",
        "AuthAltParameters": f"jwt_key={pod.PRIVATE}/keys/jwt_hs256.key",
    }


def _paths() -> dict[str, str | int]:
    return {
        "PluginDir": f"{BUNDLE}/lib/slurm",
        "JobContainerType": "job_container/jail",  # what slurmd opens for a user is opened in the jail
        "StateSaveLocation": "/var/spool/slurmctld",
        "SlurmdSpoolDir": "/var/spool/slurmd",
        "SlurmctldPidFile": "/tmp/slurmctld.pid",
        "SlurmdPidFile": "/tmp/slurmd.pid",
    }


def _behaviour() -> dict[str, str | int]:
    """Settings that users may override: they stand before the extra lines, and Slurm takes the last."""
    return {
        "ReturnToService": 2,
        "SlurmctldTimeout": 30,
        "SlurmdTimeout": 60,
        "MessageTimeout": 30,
        "InactiveLimit": 120,  # an srun or salloc whose login pod is gone gives its nodes back
        "SelectType": "select/cons_tres",
        "GresTypes": "gpu",
        "MpiDefault": "pmix",
        "PropagateResourceLimitsExcept": "MEMLOCK",
    }


def _node_sets(spec: SlurmClusterSpec) -> list[conf.Line]:
    used = sorted({nodeset for partition in spec.partitions for nodeset in partition.node_sets})
    return [conf.line(NodeSet=nodeset, Feature=nodeset) for nodeset in used]


def _partition(cluster: Cluster, partition: Partition) -> conf.Line:
    pairs = [("PartitionName", partition.name), ("Nodes", ",".join(partition.node_sets) or "ALL")]
    pairs += [("Default", "YES")] if partition.default else []
    pairs += [("Hidden", "YES")] if partition.hidden else []
    pairs += limits.partition_options(cluster, partition)
    return conf.Line((*pairs, *sorted(partition.options.items())))


def _with_extra(ours: str, extra: str) -> str:
    return f"{ours}{extra.rstrip()}\n" if extra.strip() else ours


def annotations(cluster: Cluster) -> dict[str, str]:
    """The annotation that replaces a pod when the configuration that it mounts has changed."""
    return {labels.CONFIG: config_hash(cluster)}
