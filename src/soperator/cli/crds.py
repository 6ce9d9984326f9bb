"""`soperator crds`: prints the CustomResourceDefinitions that this version needs."""

from pathlib import Path
from typing import Annotated

import typer


def crds(
    write: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write one file per kind into this folder.")
    ] = None,
) -> None:
    """Print the CustomResourceDefinitions, ready for `kubectl apply --server-side -f -`."""
    from soperator.crdgen import generate

    if write is None:
        typer.echo("---\n".join(generate.files().values()), nl=False)
        return
    for path in generate.write(write, generate.files()):
        typer.echo(path)
