"""`soperator explain`: the documentation of a field, from the models, where the person types."""

from typing import Annotated

import typer


def explain(
    field: Annotated[
        str, typer.Argument(metavar="KIND[.FIELD...]", help=("For example cluster.login.service, or nodeset.gpu."))
    ] = "",
) -> None:
    """Explain a field of SlurmCluster or NodeSet, with its type, default, limits and the fields inside it."""
    from soperator.crd.fields import KINDS, describe

    if not field:
        for kind in KINDS:
            typer.echo(f"{kind}: {KINDS[kind].description}\n")
        typer.echo("Go on with `soperator explain cluster` or `soperator explain nodeset.gpu`.")
        return
    try:
        typer.echo(describe(field))
    except KeyError as error:
        typer.echo(error.args[0], err=True)
        raise typer.Exit(1) from None
