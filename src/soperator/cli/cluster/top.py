"""`soperator top`: the nodes of a cluster with their usage, and its jobs, as Slurm counts them."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from soperator.cli.cluster.jobs import job_table
from soperator.cli.support.errors import CliError, report_errors
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
    from soperator.cli.support.slurm_queries import JobLine, NodeLine

#: States out of service in sinfo's words, and the marks behind a state: powered down, waking, does not answer (*) and so on.
_OUT = frozenset({"drained", "draining", "down", "fail", "failing", "unknown", "inval", "error"})
_FLAGS = "*$#~%@^!-+"
_HEAD = ("NODE", "STATE", "CPU USED", "CPU", "LOAD", "MEMORY MIB", "FREE MIB", "GRES", "REASON")


def top(
    name: ClusterArgument = "",
    most: Annotated[int, typer.Option("--lines", min=1, help="Print at most this many nodes, and as many jobs.")] = 20,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Print it again every two seconds.")] = False,
    namespace: NamespaceOption = "",
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Show the nodes with their use, those out of service first, then the busiest; and the running and pending jobs.

    For example: soperator top demo -n slurm --watch
    """
    from soperator.cli.support.slurm_queries import as_dicts

    with report_errors(name):
        for _ in repeated(watch):
            nodes, found, count = asyncio.run(_read(name, namespace))
            data = {"nodes": as_dicts(nodes), "jobs": as_dicts(found), "totalJobs": count}
            emit(output, data, _lines(nodes, found, (count, most)), watch)


async def _read(name: str, namespace: str) -> "tuple[list[NodeLine], list[JobLine], int]":
    from soperator.cli.support.find_cluster import as_cluster, connected, find_cluster
    from soperator.cli.support.slurm_queries import read_jobs, read_nodes
    from soperator.reconcile.io.slurm_exec import PodExec
    from soperator.slurmrest.client import SlurmError

    async with connected(namespace) as (api, where):
        cluster, inside = as_cluster(await find_cluster(api, where, name)), PodExec(api)
        try:
            nodes, (found, count) = await asyncio.gather(read_nodes(inside, cluster), read_jobs(inside, cluster))
        except SlurmError as error:
            raise CliError(f"Slurm did not answer: {error}") from None
    return nodes, found, count


def _lines(nodes: "Sequence[NodeLine]", found: "Sequence[JobLine]", counts: tuple[int, int]) -> Iterator[str]:
    count, most = counts
    shown = sorted(nodes, key=rank)
    yield f"{len(nodes)} nodes, {count} jobs"
    yield ""
    yield from table(_HEAD, map(_row, shown[:most]))
    if len(nodes) > most:
        yield f"{len(nodes) - most} more nodes"
    if found:
        yield ""
        yield from job_table(found[:most])
        if count > most:
            yield f"{count - most} more jobs: soperator jobs"


def rank(node: "NodeLine") -> tuple[int, float, str]:
    """Return the place of a node in the list: nodes out of service first, then by the part of their CPUs that is allocated."""
    used, total = _cpus(node)
    is_out = node.state.rstrip(_FLAGS) in _OUT or "*" in node.state
    return 0 if is_out else 1, -(used / total if total else 0.0), node.node


def _cpus(node: "NodeLine") -> tuple[int, int]:
    """Return the allocated CPUs and all CPUs, from sinfo's allocated/idle/other/total."""
    parts = [int(each) if each.isdecimal() else 0 for each in node.cpus.split("/")]
    return (parts[0], parts[3]) if len(parts) == 4 else (0, 0)


def _row(node: "NodeLine") -> tuple[object, ...]:
    used, total = _cpus(node)
    empty = ("none", "N/A", "(null)")
    cells = ("" if each in empty else each for each in (node.load, node.memory, node.free, node.gres, node.reason))
    return node.node, node.state, used, total, *cells
