"""slurm.conf and its companion files, from the SlurmCluster and the memory per CPU and GPUs of its NodeSets.

No line depends on the number of workers: they register as dynamic nodes, and a partition over a NodeSet selects the feature of its nodes. So scaling
changes no file.

The files together are a *generation*, named by their hash. Its name is in SlurmctldParameters, where Slurm ignores unknown values. So slurmctld
itself reports the generation that it runs with (`scontrol show config`), and every copy that it sends has the name. Source of each setting:
slurm.conf(5) of 24.11.
"""

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType

from soperator.api.base import Problem
from soperator.api.fields.change import seconds
from soperator.api.fields.config import TOPOLOGY_FILES
from soperator.api.slurmcluster import JobContainers, Partition, SlurmClusterSpec
from soperator.render.jail import gres
from soperator.render.parts import names, pod
from soperator.render.parts.memoize import once
from soperator.render.parts.model import Cluster
from soperator.render.parts.paths import BUNDLE, PLAN_PATH
from soperator.render.slurm_conf import (
    accounting,
    health_checks,
    job_limits,
    power_saving,
    site_files,
    topology,
)
from soperator.slurm import check_job, conf
from soperator.slurm.conf import settings
from soperator.slurm.settings.lint import shared_lines
from soperator.slurm.settings.managed import SHARED

#: An upper bound, for which slurmctld allocates only pointers and bitmaps.
MAX_NODES = 16384
#: What a ConfigMap holds, less some room for its metadata.
LARGEST = 1000 * 1024
#: Five arrays of ten thousand tasks at a time: each task counts as a job, and becomes a record of some KiB when it starts or is changed.
SIZES: Mapping[str, int] = MappingProxyType({"MaxArraySize": 10001, "MaxJobCount": 60000})
MARK = "generation="
#: The longest life of the tokens that slurmctld creates for users.
LONGEST = "max_token_lifespan="
_CHECKS = "checks-{}.sh"  # without a path, because then slurmctld distributes them


@once
def generation(cluster: Cluster) -> str:
    """Return the name of the generation of a cluster's spec: a short hash of all files."""
    return _name(_files(cluster, ""))


def _name(content: Mapping[str, str]) -> str:
    text = "\0".join(f"{name}\0{text}" for name, text in sorted(content.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_generation(name: str, content: Mapping[str, str]) -> bool:
    """Return whether these files have the hash in the name of a generation."""
    marked = {file: text.replace(f"{MARK}{name}", MARK) for file, text in content.items()}
    return bool(name) and _name(marked) == name


@once
def files(cluster: Cluster) -> Mapping[str, str]:
    """Return the text of each file by its name."""
    return MappingProxyType(_files(cluster, generation(cluster)))


def too_large(cluster: Cluster) -> list[Problem]:
    """Return a problem if the files are too large for a ConfigMap."""
    size = sum(len(text.encode()) for text in files(cluster).values())
    if size <= LARGEST:
        return []
    remedy = f"Slurm's files have {size // 1024} KiB together, but a ConfigMap holds {LARGEST // 1024}: shorten spec.config and spec.partitions"
    return [Problem("spec.config", f"{size} bytes", remedy, f"SlurmCluster {cluster.name}")]


def _files(cluster: Cluster, mark: str) -> dict[str, str]:
    extra, own = cluster.spec.config, site_files.texts(cluster)
    for name in TOPOLOGY_FILES:
        if name in own:
            own[name] = topology.with_known_nodes(cluster, own[name])
    tree = topology.topology_conf(cluster)
    return {
        "slurm.conf": _slurm_conf(cluster, mark),
        "cgroup.conf": _with_extra(
            conf.render(conf.lines(job_limits.cgroup_settings(cluster))), extra.extra_lines.cgroup
        ),
        "gres.conf": _with_extra(gres.gres_conf(cluster), extra.extra_lines.gres),
        "plugstack.conf": plugstack_conf(cluster.spec),
        **({"topology.conf": f"{tree.rstrip()}\n"} if tree else {}),
        **own,
        **{_CHECKS.format(key.lower()): text for key, text in health_checks.hooks(cluster.spec).items()},
    }


def slurm_conf(cluster: Cluster) -> str:
    """Return the text of slurm.conf: the operator's lines, then the partitions, then the user's lines."""
    return files(cluster)["slurm.conf"]


def _slurm_conf(cluster: Cluster, mark: str) -> str:
    shared = _shared(cluster, mark)
    ours = [conf.line(ClusterName=cluster.name), *_hosts(cluster)]
    ours += conf.lines(
        _identity(shared) | _auth(cluster.spec) | _paths() | _behaviour(shared) | job_limits.settings(cluster)
    )
    ours += conf.lines(accounting.settings(cluster) | power_saving.settings(cluster.sleeps))
    ours += [conf.line(**{key: _CHECKS.format(key.lower())}) for key in health_checks.hooks(cluster.spec)]
    ours += conf.lines(health_checks.settings(cluster.spec) | topology.settings(cluster))
    ours += site_files.settings(cluster)
    ours += topology.spares(cluster) + _node_sets(cluster.spec)
    ours += conf.lines(_preemption(cluster))
    ours += [_partition(cluster, each) for each in cluster.spec.partitions or [_MAIN]]
    ours += (
        [conf.Line(tuple(each.items())) for each in check_job.partitions(_preempts(cluster))] if cluster.checked else []
    )
    extra = cluster.spec.config.extra_lines.slurm
    return _with_extra(conf.render(ours), extra) + shared_lines(extra, shared)


def _shared(cluster: Cluster, mark: str) -> dict[str, str]:
    """Return the lists that merge the operator's values with the user's."""
    mine = {"JobSubmitPlugins": "lua"} if cluster.spec.config.file("job_submit.lua") else {}
    mine |= {"GresTypes": gres.gres_types(cluster)}
    return {**SHARED, "SlurmctldParameters": f"{SHARED['SlurmctldParameters']},{MARK}{mark}", **mine}


def plugstack_conf(spec: SlurmClusterSpec) -> str:
    """Return the text of plugstack.conf. The containers' plugin comes first, because it saves a container before the jail's plugin ends the
    remaining processes of a step.
    """
    ours = [*_containers(spec.job_containers), f"required {BUNDLE}/lib/slurm/spank_jail.so plan={PLAN_PATH}\n"]
    return _with_extra("".join(ours), spec.config.extra_lines.plugstack)


def _containers(spec: JobContainers) -> list[str]:
    if not spec.enabled:
        return []
    said = {
        "container_scope": "" if spec.scope == "Job" else spec.scope.lower(),
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
    """Return the slurmctlds in the order of takeover; each has the address of its Service, which outlives its pod."""
    count, name = cluster.spec.controller.replicas, cluster.name
    hosts = [(names.controller_host(name, number), names.controller_address(name, number)) for number in range(count)]
    return [conf.line(SlurmctldHost=f"{host}({address})") for host, address in hosts]


def _identity(shared: Mapping[str, str]) -> dict[str, str | int]:
    return {
        "SlurmUser": "slurm",
        "SlurmctldPort": names.CONTROLLER_PORT,
        "SlurmdPort": names.SLURMD_PORT,
        "SlurmctldParameters": shared["SlurmctldParameters"],
        "MaxNodeCount": MAX_NODES,
    }


def _auth(spec: SlurmClusterSpec) -> dict[str, str | int]:
    return {
        "AuthType": f"auth/{spec.auth.type}",
        "CredType": f"cred/{spec.auth.type}",
        "AuthAltTypes": "auth/jwt",
        "AuthAltParameters": f"jwt_key={pod.PRIVATE}/keys/jwt_hs256.key,{_users_tokens(spec)}",
    }


def _users_tokens(spec: SlurmClusterSpec) -> str:
    """Return the settings for `scontrol token`: tokens with a limited lifetime if users have a slurmrestd, otherwise none.

    By default Slurm gives every user tokens without an expiry, which the operator's slurmrestd also accepts.
    """
    users = spec.rest.users
    return f"{LONGEST}{seconds(users.max_lifetime):.0f}" if users else "disable_token_creation"


def _paths() -> dict[str, str | int]:
    return {
        "PluginDir": f"{BUNDLE}/lib/slurm",
        "JobContainerType": "job_container/jail",  # slurmd opens users' files in the jail
        "StateSaveLocation": "/var/spool/slurmctld",
        "SlurmdSpoolDir": "/var/spool/slurmd",
        "SlurmctldPidFile": "/tmp/slurmctld.pid",
        "SlurmdPidFile": "/tmp/slurmd.pid",
    }


def _behaviour(shared: Mapping[str, str]) -> dict[str, str | int]:
    """Return the settings that users may override: they come before the extra lines, and Slurm uses the last value."""
    return {
        "ReturnToService": 2,
        "SlurmctldTimeout": 30,
        "SlurmdTimeout": 60,
        "MessageTimeout": 30,
        "InactiveLimit": 120,  # an srun or salloc whose login pod is gone gives its nodes back
        "SelectType": "select/cons_tres",
        "GresTypes": shared["GresTypes"],
        "MpiDefault": "pmix",
        "PropagateResourceLimitsExcept": "MEMLOCK",
        **SIZES,
    }


def _node_sets(spec: SlurmClusterSpec) -> list[conf.Line]:
    used = sorted({each for partition in spec.partitions for each in members_of(partition)})
    return [conf.line(NodeSet=each, Feature=each) for each in used]


def members_of(partition: Partition) -> list[str]:
    """Return the features whose nodes belong to a partition; the name of a NodeSet is a feature of its nodes."""
    return list(dict.fromkeys([*partition.node_sets, *partition.features]))


def _partition(cluster: Cluster, partition: Partition) -> conf.Line:
    pairs = [("PartitionName", partition.name), ("Nodes", ",".join(members_of(partition)) or "ALL")]
    pairs += [("Default", "YES")] if partition.default else []
    pairs += [("Hidden", "YES")] if partition.hidden else []
    pairs += job_limits.partition_options(cluster, partition)
    is_said = any(key.lower() == "preemptmode" for key in partition.options)
    pairs += [("PreemptMode", "OFF")] if _preemption(cluster) and not is_said else []
    return conf.Line((*pairs, *sorted(partition.options.items())))


def _preemption(cluster: Cluster) -> dict[str, str | int]:
    """Return the settings by which every job preempts a deep check and nothing else; none if an administrator sets any of them."""
    if not cluster.checked or _user_value(cluster, "preempttype") or _user_value(cluster, "preemptmode"):
        return {}
    return {"PreemptType": "preempt/partition_prio", "PreemptMode": "CANCEL"}


def _preempts(cluster: Cluster) -> bool:
    """Return whether a partition may have a PreemptMode: only if Slurm preempts jobs by partition."""
    kind, mode = _user_value(cluster, "preempttype"), _user_value(cluster, "preemptmode")
    return bool(_preemption(cluster)) or (kind.lower() == "preempt/partition_prio" and mode.lower() not in ("", "off"))


def _user_value(cluster: Cluster, key: str) -> str:
    found = [each.value for each in settings(cluster.spec.config.extra_lines.slurm) if each.key.lower() == key]
    return found[-1] if found else ""


def _with_extra(ours: str, extra: str) -> str:
    return f"{ours}{extra.rstrip()}\n" if extra.strip() else ours


def place(cluster: Cluster, said: str) -> str:
    """Return Slurm's message about a line of slurm.conf or a partition, extended by the field of the spec."""
    for number, each in enumerate(cluster.spec.partitions):
        words = rf"\b[Pp]artition \(?{re.escape(each.name)}\b(?![.-])\)?"
        said = re.sub(words, lambda found, at=number: f"{found[0]} (spec.partitions[{at}])", said)  # type: ignore[misc]

    def with_place(found: re.Match[str]) -> str:
        number = int(found[1]) - first
        mine = 0 < number <= len(extra.rstrip().splitlines())
        return f"{found[0]} (spec.config.extraLines.slurm, line {number})" if mine else found[0]

    extra, whole = cluster.spec.config.extra_lines.slurm, slurm_conf(cluster)
    first = whole[: whole.rindex(extra.rstrip())].count("\n") if extra.strip() else 0
    return re.sub(r"slurm\.conf line (\d+)", with_place, said) if extra.strip() else said
