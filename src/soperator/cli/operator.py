"""`soperator operator`: the program in the operator's pod."""

from typing import Annotated

import typer


def operator(
    lease: Annotated[
        bool, typer.Option(help=("Elect one leader among several operators by a Lease; without it only one may run."))
    ] = True,
) -> None:
    """Run the operator for the Kubernetes cluster of its pod, or of KUBECONFIG."""
    import asyncio
    import os

    from soperator.reconcile.app import main, options

    raise typer.Exit(asyncio.run(main(options(os.environ, use_lease=lease))))
