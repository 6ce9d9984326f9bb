"""`soperator why CLUSTER NODE` and `soperator why CLUSTER JOB`: reports what Slurm and Kubernetes know about one node or one job, in sentences.

It runs scontrol in a pod of slurmctld. Users who may execute commands there may see the answer, so no token or port is needed.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from soperator.policy import explain
from soperator.policy.health.policy import HealthPolicy
from soperator.slurm.node import RestNode, SlurmNode, read_node
from soperator.slurmrest.client import SlurmError

if TYPE_CHECKING:
    from soperator.kube.api import Api
    from soperator.reconcile.io.slurm_exec import PodExec
    from soperator.render.parts.model import Cluster

#: The most nodes of a job that the answer covers.
_MOST = 64


class _Nodes(msgspec.Struct):
    nodes: list[RestNode] = []


class _Jobs(msgspec.Struct):
    jobs: list[dict[str, Any]] = []


async def why(api: "Api", cluster: "Cluster", of: str) -> list[str]:
    """Return the sentences about a node or a job of a cluster; raises SlurmError."""
    from soperator.reconcile.io.slurm_exec import PodExec

    inside = PodExec(api)
    if of.replace("_", "").isdecimal():
        return await _job(inside, cluster, of)
    found = await _nodes(inside, cluster, [of])
    if not found:
        return [f"Slurm knows no node {of}.", *await _pod(api, cluster, of)]
    return explain.of_node(found[0], await _place(api, cluster, of), time.time(), _silence(cluster))


def _silence(cluster: "Cluster") -> float:
    from soperator.api.fields.change import seconds

    return HealthPolicy(False, 0, seconds(cluster.spec.health.interval)).silence


async def _job(inside: "PodExec", cluster: "Cluster", of: str) -> list[str]:
    try:
        said = await inside.scontrol(cluster, "show", "job", of, "--json")
    except SlurmError as error:
        if "Invalid job id" not in str(error):
            raise
        return [
            f"Slurm has no job {of}: it never existed, or it ended more than five minutes ago (MinJobAge); see its output file."
        ]
    lines: list[str] = []
    for raw in msgspec.json.decode(said, type=_Jobs).jobs:
        nodes = await _nodes(inside, cluster, explain.nodes_of(raw)[:_MOST])
        lines += explain.of_job(raw, nodes, time.time())
    return lines or [f"Slurm knows no job {of}."]


async def _nodes(inside: "PodExec", cluster: "Cluster", names: Sequence[str]) -> list[SlurmNode]:
    if not names:
        return []
    try:
        said = await inside.scontrol(cluster, "show", "node", ",".join(names), "--json")
    except SlurmError as error:
        if "not found" not in str(error) and "Invalid node name" not in str(error):
            raise
        return []
    return [read_node(each) for each in msgspec.json.decode(said, type=_Nodes).nodes]


async def _place(api: "Api", cluster: "Cluster", node: str) -> explain.PodLocation:
    from soperator.kube.errors import NotFound
    from soperator.kube.kinds import NODE, POD
    from soperator.kube.objects import Node
    from soperator.kube.views import Pod
    from soperator.reconcile.pod_status import trouble
    from soperator.runtime.cache.store import Store

    nodes: Store[Node] = Store()
    try:
        pod = await api.get(POD, Pod, cluster.namespace, f"{cluster.name}-{node}")
        if pod.spec.node_name:
            nodes.learn(await api.get(NODE, Node, "", pod.spec.node_name))
    except NotFound:
        return explain.PodLocation()
    return explain.PodLocation(pod.metadata.name, pod.spec.node_name, trouble(pod, nodes).partition(": ")[2])


async def _pod(api: "Api", cluster: "Cluster", node: str) -> list[str]:
    place = await _place(api, cluster, node)
    if not place.pod:
        return [f"Pod {cluster.name}-{node} does not exist either."]
    return [f"Its pod {place.pod} is there{f': {place.trouble}' if place.trouble else ', and has not registered yet'}."]
