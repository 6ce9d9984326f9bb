"""`soperator status`: the state of a cluster on one screen, from its status in Kubernetes and the queue of Slurm.

It sends three requests for any number of nodes: the SlurmCluster, the list of NodeSets, and one command beside slurmctld. Without the
permission to execute commands in pods, the queue is left out.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soperator.cli.support.errors import report_errors
from soperator.cli.support.output import (
    ClusterArgument,
    NamespaceOption,
    OutputFormat,
    OutputOption,
    emit,
    repeated,
    table,
)

if TYPE_CHECKING:
    from soperator.cli.support.slurm_queries import QueueSummary
    from soperator.kube.api import Api
    from soperator.kube.views import Custom
    from soperator.reconcile.io.slurm_exec import Run

_ROLES = ("controller", "login", "rest", "workers")
_COUNTS = ("desiredReplicas", "readyReplicas", "idle", "allocated", "draining", "down", "asleep", "updatedReplicas")
_MOST_REASONS = 10


def status(
    name: ClusterArgument = "",
    namespace: NamespaceOption = "",
    everywhere: Annotated[
        bool,
        typer.Option(
            "--all-namespaces", "-A", help="One line for each cluster: of all namespaces, or of the one that -n names."
        ),
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Print the state again every two seconds.")] = False,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Show the state of a cluster on one screen: what is ready, how to log in, nodes, jobs, drains, rollouts.

    For example: soperator status demo -n slurm --watch
    """
    with report_errors(name):
        for _ in repeated(watch):
            if everywhere:
                clusters = asyncio.run(_list(namespace))
                emit(output, clusters, _clusters_table(clusters), watch)
            else:
                data = asyncio.run(_status(name, namespace))
                emit(output, data, screen(data), watch)


async def _status(name: str, namespace: str) -> dict[str, Any]:
    from soperator.cli.support.find_cluster import connected

    async with connected(namespace) as (api, where):
        return await gather(api, where, name)


async def _list(namespace: str) -> list[dict[str, Any]]:
    from soperator.cli.support.find_cluster import connected, list_clusters

    async with connected("") as (api, _):
        return [summary(each, []) for each in await list_clusters(api, namespace or None)]


async def gather(api: "Api", namespace: str, name: str, run: "Run | None" = None) -> dict[str, Any]:
    """Return the state of a cluster as data. Raises CliError and KubeError; if the queue cannot be read, the data has the cause."""
    from soperator.cli.support.find_cluster import as_cluster, find_cluster, members_of
    from soperator.cli.support.slurm_queries import read_summary
    from soperator.kube.exec import exec as run_in_pod
    from soperator.reconcile.io.slurm_exec import PodExec
    from soperator.slurmrest.client import SlurmError

    custom = await find_cluster(api, namespace, name)
    members, answer = await asyncio.gather(
        members_of(api, custom),
        read_summary(PodExec(api, run or run_in_pod), as_cluster(custom)),
        return_exceptions=True,
    )
    if isinstance(members, BaseException):
        raise members
    if isinstance(answer, BaseException) and not isinstance(answer, SlurmError):
        raise answer
    data = summary(custom, members)
    return data | queue(answer)


def summary(custom: "Custom", members: "Sequence[Custom]") -> dict[str, Any]:
    """Return the statuses of a cluster and its NodeSets as data."""
    from soperator.cli.why import reasons

    status_, conditions = custom.status, _conditions(custom)
    nodesets = [_nodeset(each) for each in members]
    return {
        "cluster": custom.metadata.name,
        "namespace": custom.metadata.namespace,
        "slurm": status_.get("slurm", ""),
        "available": conditions.get("Available", {}).get("status", "Unknown"),
        "ready": conditions.get("Ready", {}).get("status", "Unknown"),
        "why": status_.get("why", "") or next(iter(reasons("SlurmCluster", custom)), ""),
        **{role: _role(status_.get(role, {})) for role in _ROLES},
        "address": status_.get("address", ""),
        "jail": _part(conditions, "JailReady"),
        "configuration": _part(conditions, "ConfigApplied"),
        "rollout": _part(conditions, "UpToDate"),
        "accounting": _part(conditions, "AccountingReady"),
        "nodeSets": nodesets,
    }


def queue(answer: "QueueSummary | BaseException") -> dict[str, Any]:
    """Return Slurm's answer as data, or the cause of its absence."""
    from soperator.cli.support.slurm_queries import as_dicts

    if isinstance(answer, BaseException):
        return {"jobs": {}, "drained": [], "queueError": str(answer)}
    return {"jobs": answer.jobs, "drained": as_dicts(answer.drained), "queueError": ""}


def _conditions(custom: "Custom") -> dict[str, dict[str, Any]]:
    return {each.get("type", ""): each for each in custom.status.get("conditions", ())}


def _role(counts: dict[str, Any]) -> dict[str, int]:
    return {"ready": counts.get("readyReplicas", 0), "wanted": counts.get("replicas", 0)}


def _part(conditions: dict[str, dict[str, Any]], kind: str) -> dict[str, str]:
    """Return one condition as data; a cluster without the feature has no such condition."""
    found = conditions.get(kind, {})
    return {key: str(found.get(key, "")) for key in ("status", "reason", "message")}


def _nodeset(custom: "Custom") -> dict[str, Any]:
    counts = {key: int(custom.status.get(key, 0)) for key in _COUNTS}
    settled = _part(_conditions(custom), "Settled")
    changes = "" if settled["status"] in ("True", "") else settled["message"]
    return {"name": custom.metadata.name, **counts, "why": custom.status.get("why", ""), "changes": changes}


def screen(data: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the screen."""
    version = f", Slurm {data['slurm']}" if data["slurm"] else ""
    yield f"SlurmCluster {data['cluster']} in namespace {data['namespace']}{version}"
    yield f"  Available      {data['available']}"
    yield f"  Ready          {data['ready']}" + (f": {data['why']}" if data["why"] else "")
    roles = (f"{role} {data[role]['ready']}/{data[role]['wanted']}" for role in _ROLES)
    yield f"  Pods           {', '.join(roles)}"
    yield f"  Log in         {data['address'] or 'its address is not known yet'}"
    for title, key in (
        ("Jail", "jail"),
        ("Configuration", "configuration"),
        ("Images", "rollout"),
        ("Accounting", "accounting"),
    ):
        yield f"  {title:13}  {_in_words(data[key])}"
    yield f"  Jobs           {_jobs(data)}"
    yield ""
    yield from _nodesets_table(data["nodeSets"])
    yield from _drained_table(data["drained"])


def _in_words(part: dict[str, str]) -> str:
    match part["status"]:
        case "":
            return "off"
        case "True":
            return part["reason"]
        case _:
            return f"{part['reason']}: {part['message']}"


def _jobs(data: dict[str, Any]) -> str:
    if data["queueError"]:
        return f"unknown: {data['queueError']}"
    order = {"RUNNING": 0, "PENDING": 1}
    states = sorted(data["jobs"], key=lambda state: (order.get(state, 2), state))
    return ", ".join(f"{data['jobs'][state]} {state.lower()}" for state in states) or "none"


def _nodesets_table(nodesets: list[dict[str, Any]]) -> Iterator[str]:
    if not nodesets:
        yield "It has no NodeSet."
        return
    head = ("NODESET", "WANTED", "READY", "IDLE", "ALLOCATED", "DRAINING", "DOWN", "ASLEEP", "UP-TO-DATE", "WHY")
    yield from table(
        head, ((each["name"], *(each[key] for key in _COUNTS), each["changes"] or each["why"]) for each in nodesets)
    )


def _drained_table(drained: list[dict[str, str]]) -> Iterator[str]:
    if not drained:
        return
    yield ""
    rows = [
        (each["nodes"], each["state"], each["by"], each["since"], each["reason"]) for each in drained[:_MOST_REASONS]
    ]
    yield from table(("OUT OF SERVICE", "STATE", "BY", "SINCE", "REASON"), rows)
    if more := len(drained[_MOST_REASONS:]):
        yield f"{more} more reasons: soperator top, or sinfo -R on a login node"


def _clusters_table(clusters: list[dict[str, Any]]) -> Iterator[str]:
    head = ("NAMESPACE", "CLUSTER", "AVAILABLE", "READY", "LOGIN", "WORKERS", "WHY")
    yield from table(head, (
        (each["namespace"], each["cluster"], each["available"], each["ready"], *(
            f"{each[role]['ready']}/{each[role]['wanted']}" for role in ("login", "workers")), each["why"])
        for each in clusters
    ))  # fmt: skip
    if not clusters:
        yield "There is no SlurmCluster."
