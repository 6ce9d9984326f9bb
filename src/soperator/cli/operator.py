"""`soperator operator`: the program that runs in the operator's pod."""

from typing import Annotated

import typer


def operator(
    lease: Annotated[
        bool, typer.Option(help=("Take turns with other operators by a Lease; without it, be the only one."))
    ] = True,
) -> None:
    """Run the operator against its own cluster, or the one of KUBECONFIG."""
    import asyncio
    import os

    from soperator.reconcile.app import main, options

    raise typer.Exit(asyncio.run(main(options(os.environ, use_lease=lease))))
