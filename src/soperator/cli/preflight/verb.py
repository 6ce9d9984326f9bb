"""`soperator preflight`: lists the unmet requirements of a Kubernetes cluster before an installation, each with its remedy."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from soperator.cli.support.errors import report_errors
from soperator.cli.support.output import OutputFormat, OutputOption, emit

if TYPE_CHECKING:
    from soperator.cli.preflight.checks import PreflightResult


def preflight(
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace in which the Slurm cluster is or will be.")
    ] = "slurm",
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Check whether Slurm clusters can run in this Kubernetes cluster: ok, warn or fail, with the remedy. Exit code 1: a check failed.

    For example: soperator preflight -n slurm
    """
    with report_errors(""):
        found = asyncio.run(_check(namespace))
    emit(output, {"checks": [{**asdict(each), "level": each.level.value} for each in found]}, _lines(found))
    raise typer.Exit(1 if any(each.level == "fail" for each in found) else 0)


async def _check(namespace: str) -> "list[PreflightResult]":
    from soperator.cli.preflight.checks import CHECKS
    from soperator.cli.preflight.facts import read_facts
    from soperator.kube.api import Api

    async with Api.connect("soperator-cli") as api:
        facts = await read_facts(api, namespace)
    return [check(facts) for check in CHECKS]


def _lines(found: "Sequence[PreflightResult]") -> Iterator[str]:
    for each in found:
        yield f"{each.level.value:4}  {each.check}: {each.message}"
        if each.remedy:
            yield f"      {'remedy' if each.level == 'fail' else 'next'}: {each.remedy}"
