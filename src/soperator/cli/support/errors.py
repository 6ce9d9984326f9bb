"""Ends a verb whose request Kubernetes refused: with one line, and exit code 1."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from soperator.cli.support.say import say


class CliError(Exception):
    """An error whose message a verb prints, without a traceback."""


@contextmanager
def report_errors(cluster: str) -> Iterator[None]:
    """Print the error about this SlurmCluster to standard error."""
    from soperator.kube.errors import KubeError, NotFound

    try:
        yield
    except CliError as error:
        why = str(error)
    except NotFound as error:
        why = f"SlurmCluster {cluster}: {error}"
    except KubeError as error:
        why = no_answer(error)
    else:
        return
    say(why, err=True)
    raise typer.Exit(1) from None


def no_answer(error: Exception) -> str:
    """Return why Kubernetes gave no answer; if no kubeconfig names a cluster, that message alone."""
    from soperator.kube.kubeconfig import NoCluster

    return str(error) if isinstance(error, NoCluster) else f"Kubernetes did not answer: {error}"
