"""How a verb that asks Kubernetes ends when it is refused: with one line, and exit code 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer


class Refused(Exception):  # noqa: N818
    """Why there is no answer, in a sentence."""


@contextmanager
def told(cluster: str) -> Iterator[None]:
    """Say what stops the work on this SlurmCluster, on standard error."""
    from soperator.kube.errors import KubeError, NotFound

    try:
        yield
    except Refused as error:
        why = str(error)
    except NotFound as error:
        why = f"SlurmCluster {cluster}: {error}"
    except KubeError as error:
        why = f"Kubernetes did not answer: {error}"
    else:
        return
    typer.echo(why, err=True)
    raise typer.Exit(1) from None
