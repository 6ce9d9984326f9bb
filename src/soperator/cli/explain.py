"""`soperator explain`: prints the documentation of a field, or the mount plan of a node, in the terminal."""

from pathlib import Path
from typing import Annotated

import typer


def explain(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KIND[.FIELD...] | jail CLUSTER [NODESET]",
            help="For example: cluster.login.service, nodeset.gpu, or jail demo worker.",
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", help="With jail: read the objects from YAML files; - for standard input."),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", help="With jail: namespace of the objects; default: that of the kubeconfig."),
    ] = "",
) -> None:
    """Explain a field of a kind: its type, default, limits and the fields inside it. Without a field: list the kinds.

    With `jail`: print what the login nodes of a cluster, or the nodes of a NodeSet, mount for the jail, in which order, and why.
    """
    match what or []:
        case ["jail", cluster, *nodeset] if len(nodeset) < 2:
            from soperator.cli.support.explain_jail import explain_jail

            explain_jail(cluster, "".join(nodeset), files or [], namespace)
        case ["jail", *_]:
            _end(
                "jail: give the name of a SlurmCluster, and optionally of one NodeSet: soperator explain jail demo worker"
            )
        case [field]:
            _field(field)
        case []:
            _kinds()
        case [field, *_]:
            _end(f"{field}: give one field, or `jail` with the name of a SlurmCluster")


def _kinds() -> None:
    from soperator.crdgen.fields import KINDS

    for kind in KINDS:
        typer.echo(f"{kind}: {KINDS[kind].description}\n")
    typer.echo("Continue with `soperator explain cluster` or `soperator explain nodeset.gpu`.")


def _field(field: str) -> None:
    from soperator.crdgen.fields import describe

    try:
        typer.echo(describe(field))
    except KeyError as error:
        _end(error.args[0])


def _end(said: str) -> None:
    typer.echo(said, err=True)
    raise typer.Exit(1)
