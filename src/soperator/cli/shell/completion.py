"""`soperator completion`: prints the script with which a shell completes verbs, options and the names of clusters.

The scripts come from typer. For names, a completion queries Kubernetes for at most a second and prints no error, so that a shell neither
hangs nor prints a message while a person types.
"""

import asyncio
import os
from enum import StrEnum
from typing import Annotated

import typer

VARIABLE = "_SOPERATOR_COMPLETE"
_PATIENCE = 1.5


class ShellName(StrEnum):
    """The shells with a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[ShellName, typer.Argument(metavar="bash|zsh|fish", help="The shell.")]) -> None:
    """Print the completion script of a shell.

    For example: source <(soperator completion bash), or soperator completion fish > ~/.config/fish/completions/soperator.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    typer.echo(get_completion_script(prog_name="soperator", complete_var=VARIABLE, shell=shell.value))


def prepare() -> None:
    """Let typer answer if a shell has called this program for a completion."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()


def cluster_names(incomplete: str) -> list[str]:
    """Return the names of the SlurmClusters of the kubeconfig's namespace, or of all namespaces if that has none; empty without an answer."""
    try:
        return [each for each in asyncio.run(_names()) if each.startswith(incomplete)]
    except Exception:
        return []


async def _names() -> list[str]:
    from soperator.cli.support.find_cluster import connected, list_clusters

    async with asyncio.timeout(_PATIENCE), connected("") as (api, namespace):
        found = await list_clusters(api, namespace) or await list_clusters(api, None)
    return sorted({each.metadata.name for each in found})
