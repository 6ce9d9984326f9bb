"""`soperator jobs`: the queue of a cluster, as squeue prints it, without a login."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from soperator.cli.support.errors import CliError, report_errors
from soperator.cli.support.output import ClusterArgument, NamespaceOption, OutputFormat, OutputOption, emit, table

if TYPE_CHECKING:
    from soperator.cli.support.slurm_queries import JobLine

_HEAD = ("JOB", "USER", "PARTITION", "STATE", "TIME", "LIMIT", "NODES", "NODES OR REASON", "NAME")


def jobs(
    name: ClusterArgument = "",
    user: Annotated[str, typer.Option("--user", "-u", help="Only the jobs of this user.")] = "",
    state: Annotated[str, typer.Option("--state", "-t", help="Only jobs in this state, such as PENDING.")] = "",
    namespace: NamespaceOption = "",
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """List the jobs of a cluster, running ones first. `soperator why CLUSTER JOB` explains one.

    For example: soperator jobs demo -n slurm --state PENDING
    """
    from soperator.cli.support.slurm_queries import as_dicts

    with report_errors(name):
        found, count = asyncio.run(_jobs(name, namespace))
        chosen = [each for each in found if user in ("", each.user) and state.upper() in ("", each.state)]
        emit(output, {"jobs": as_dicts(chosen), "total": count}, _lines(chosen, len(found), count))


async def _jobs(name: str, namespace: str) -> "tuple[list[JobLine], int]":
    from soperator.cli.support.find_cluster import as_cluster, connected, find_cluster
    from soperator.cli.support.slurm_queries import read_jobs
    from soperator.reconcile.io.slurm_exec import PodExec
    from soperator.slurmrest.client import SlurmError

    async with connected(namespace) as (api, where):
        try:
            return await read_jobs(PodExec(api), as_cluster(await find_cluster(api, where, name)))
        except SlurmError as error:
            raise CliError(f"Slurm did not answer: {error}") from None


def _lines(chosen: "Sequence[JobLine]", read: int, count: int) -> Iterator[str]:
    if not chosen:
        yield "There is no such job." if count else "The queue is empty."
        return
    yield from job_table(chosen)
    if count > read:
        yield f"Only the first {read} of {count} jobs were read: squeue on a login node lists all."


def job_table(found: "Sequence[JobLine]") -> list[str]:
    """Return the lines of a table of jobs."""
    fields = (
        (each.job, each.user, each.partition, each.state, each.time, each.limit, each.nodes, each.where, each.name)
        for each in found
    )
    return table(_HEAD, fields)
