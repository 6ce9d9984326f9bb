"""Quick checks on workers: the plan of a NodeSet's nodes, and the lines of slurm.conf by which slurmd runs it.

The plan is one ConfigMap for each NodeSet, updated in place: new thresholds reach running pods without a new template.
"""

from typing import Any

from soperator.api.fields.change import seconds
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.checks import node_plan
from soperator.render.parts import labels, names, pod
from soperator.render.parts.model import Cluster, NodeSet, Object

_FOLDER = "/etc/soperator/checks"
_PROGRAM = "/usr/lib/soperator/checks"


def is_on(spec: SlurmClusterSpec) -> bool:
    """Return whether workers run checks."""
    return spec.health.mode != "Off"


def settings(spec: SlurmClusterSpec) -> dict[str, str | int]:
    """Return the lines of slurm.conf by which all nodes run checks at the same time, busy or not, so that a job over many nodes is delayed only
    once.
    """
    if not is_on(spec):
        return {}
    interval = int(seconds(spec.health.interval))
    return {"HealthCheckProgram": _PROGRAM, "HealthCheckInterval": interval, "HealthCheckNodeState": "ANY"}


def hooks(spec: SlurmClusterSpec) -> dict[str, str]:
    """Return the scripts around jobs by their key in slurm.conf. They never fail, because Slurm would then drain the node itself, without any
    limit.
    """
    if not is_on(spec) or not spec.health.prolog_epilog:
        return {}
    return {key: f"#!/bin/sh\n{_PROGRAM} {key.lower()}\nexit 0\n" for key in ("Prolog", "Epilog")}


def facts(nodeset: NodeSet) -> dict[str, Any]:
    """Return the facts about a NodeSet that decide which checks apply to its nodes."""
    gpu, spec = nodeset.spec.gpu, nodeset.spec
    return {
        "gpus": gpu.count,
        "nvidia": gpu.vendor == "nvidia",
        "amd": gpu.vendor == "amd",
        "infiniband": spec.rdma.infiniband,
        "kernelLog": any(each.get("mountPath") == "/dev/kmsg" for each in spec.volume_mounts),
    }


def render(cluster: Cluster, nodeset: NodeSet) -> list[Object]:
    """Return the ConfigMap with the plan; none if no checks run."""
    if not is_on(cluster.spec):
        return []
    meta = {
        "name": names.checks(cluster.name, nodeset.name),
        "namespace": nodeset.namespace,
        "labels": labels.recommended(labels.worker(cluster.name, nodeset.name)),
        "ownerReferences": [nodeset.owner],
    }
    text = node_plan.plan(cluster.spec.health, nodeset.name, facts(nodeset))
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"plan.json": text}}]


def volumes(cluster: Cluster, nodeset: NodeSet) -> list[Object]:
    """Return the volume with the plan."""
    if not is_on(cluster.spec):
        return []
    return [{"name": "checks", "configMap": {"name": names.checks(cluster.name, nodeset.name)}}]


def mounts(cluster: Cluster) -> list[Object]:
    """Return the mount of the plan in slurmd's container."""
    return [pod.mount("checks", _FOLDER, readOnly=True)] if is_on(cluster.spec) else []
