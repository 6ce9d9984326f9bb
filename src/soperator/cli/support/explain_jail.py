"""`soperator explain jail`: prints the mount plan as a table, from the objects in Kubernetes or from files."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from soperator.cli.support.errors import no_answer
from soperator.cli.support.say import say

if TYPE_CHECKING:
    from soperator.api.base import Model
    from soperator.render.jail.mount_plan import Mount
    from soperator.render.parts.model import Cluster, NodeSet

#: (kind, namespace, name, spec) of what was found.
Specs = list[tuple[str, str, str, "Model"]]


class Missing(Exception):  # noqa: N818
    """The requested object does not exist; the message is for a person."""


def explain_jail(cluster: str, nodeset: str, files: Sequence[Path], namespace: str) -> None:
    """Yield the plan of the login nodes and of each NodeSet, or of the named NodeSet only."""
    from soperator.kube.errors import KubeError

    try:
        found = _from_files(files, namespace) if files else asyncio.run(_from_kubernetes(namespace))
        say("\n\n".join(_tables(_chosen(found, cluster), _members(found, cluster, nodeset), nodeset)))
    except Missing as error:
        say(str(error), err=True)
        raise typer.Exit(1) from None
    except KubeError as error:
        say(no_answer(error), err=True)
        raise typer.Exit(1) from None


def table(title: str, mounts: "Sequence[Mount]") -> str:
    """One plan as a table: a line for each mount in its order, with the reason at the end."""
    head = ("in the jail", "how", "from", "options", "why")
    rows = [(each.target, each.kind, each.source or "-", ",".join(each.options) or "-", each.why) for each in mounts]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(4)]

    def line(number: str, row: Sequence[str]) -> str:
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        return f"{number:>3}  {cells}  {row[-1]}"

    return "\n".join([title, line("", head), *(line(str(number), row) for number, row in enumerate(rows, 1))])


def _tables(cluster: "Cluster", nodesets: "Sequence[NodeSet]", only: str) -> Iterator[str]:
    from soperator.render.jail.mount_plan import login_plan, worker_plan

    if not only:
        yield table(f"login nodes of SlurmCluster {cluster.name}", login_plan(cluster))
    for each in nodesets:
        yield table(f"nodes of NodeSet {each.name} of SlurmCluster {cluster.name}", worker_plan(cluster, each))


def _chosen(found: Specs, name: str) -> "Cluster":
    from soperator.api.slurmcluster import SlurmClusterSpec
    from soperator.render.parts.model import Cluster

    for _, namespace, each, spec in found:
        if each == name and isinstance(spec, SlurmClusterSpec):
            return Cluster(namespace, name, "", spec)
    raise Missing(_there_is_no("SlurmCluster", name, found))


def _members(found: Specs, cluster: str, only: str) -> "list[NodeSet]":
    from soperator.api.nodeset import NodeSetSpec
    from soperator.render.parts.model import NodeSet

    members = [
        NodeSet(namespace, name, "", spec)
        for _, namespace, name, spec in found
        if isinstance(spec, NodeSetSpec) and spec.cluster == cluster
    ]
    chosen = [each for each in members if only in ("", each.name)]
    if only and not chosen:
        raise Missing(_there_is_no("NodeSet", only, [each for each in found if _is_member(each[3], cluster)]))
    return chosen


def _is_member(spec: "Model", cluster: str) -> bool:
    return getattr(spec, "cluster", "") == cluster


def _there_is_no(kind: str, name: str, among: Specs) -> str:
    known = ", ".join(each for found, _, each, _ in among if found == kind) or "none"
    return f"{kind} {name}: it does not exist, or cannot be read (found: {known})"


def _from_files(files: Sequence[Path], namespace: str) -> Specs:
    from soperator.cli.support.manifests import load

    found = load(files)
    if faults := [f"{each.file}: {problem}" for each in found for problem in each.faults]:
        raise Missing("\n".join(faults))
    return [
        (each.kind, each.namespace, each.name, each.spec)
        for each in found
        if each.spec is not None and namespace in ("", each.namespace)
    ]


async def _from_kubernetes(namespace: str) -> Specs:
    from soperator.kube.api import Api
    from soperator.kube.kinds import NODESET, SLURMCLUSTER
    from soperator.kube.views import Custom
    from soperator.reconcile.cache.decode import read_cluster, read_nodeset

    async with Api.connect("soperator-cli") as api:
        where = namespace or api.namespace
        clusters = [read_cluster(each) for each in (await api.list(SLURMCLUSTER, Custom, where)).items]
        nodesets = [read_nodeset(each) for each in (await api.list(NODESET, Custom, where)).items]
    return [
        (kind, each.namespace, each.name, each.spec)
        for kind, read in (("SlurmCluster", clusters), ("NodeSet", nodesets))
        for each in read
        if not isinstance(each, list)
    ]
