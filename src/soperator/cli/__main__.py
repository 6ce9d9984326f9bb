"""The command line `soperator`: one module per verb, and no slow import before a verb runs.

People type `soperator --help` first and often, so the verbs' modules import only typer, and each verb imports other modules when it runs. An error in
the input ends with one line per fault and exit code 1, never with a traceback.
"""

import os
import sys
from typing import Annotated

import typer

from soperator.cli import crds, diff, explain, images, join, lint, operator, render, request, restore, token, why
from soperator.cli.cluster import bundle, drain, jobs, logs, ssh, status, top
from soperator.cli.importing import verb as importing
from soperator.cli.preflight import verb as preflight
from soperator.cli.shell import completion, kubectl

app = typer.Typer(
    name="soperator",
    help="Check, render and inspect Slurm clusters on Kubernetes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from soperator import __version__

        typer.echo(f"soperator {__version__}")
        raise typer.Exit


@app.callback()
def options(
    kubeconfig: Annotated[
        str, typer.Option(metavar="FILE", help="Kubeconfig to use instead of KUBECONFIG and ~/.kube/config.")
    ] = "",
    context: Annotated[str, typer.Option(metavar="NAME", help="Context to use instead of the current one.")] = "",
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Slurm clusters as Kubernetes resources."""
    if kubeconfig:
        os.environ["KUBECONFIG"] = kubeconfig
    if context:
        os.environ["SOPERATOR_CONTEXT"] = context


app.command("status")(status.status)
app.command("ssh", cls=ssh.WithCommand)(ssh.ssh)
app.command("logs")(logs.logs)
app.command("jobs")(jobs.jobs)
app.command("top")(top.top)
app.command("drain")(drain.drain)
app.command("resume")(drain.resume)
app.command("bundle")(bundle.bundle)
app.command("completion")(completion.completion)
app.command("preflight")(preflight.preflight)
app.command("crds")(crds.crds)
app.command("lint")(lint.lint)
app.command("render")(render.render)
app.command("diff")(diff.diff)
app.command("explain")(explain.explain)
app.command("why")(why.why)
app.command("request")(request.request)
app.command("restore")(restore.restore)
app.command("images")(images.images)
app.command("token")(token.token)
app.command("join")(join.join)
app.command("import")(importing.import_)
app.command("operator")(operator.operator)


def main() -> None:
    """Run the command line. An unexpected error ends with one line and exit code 70, or with a traceback if SOPERATOR_DEBUG is set."""
    try:
        if kubectl.is_completer(sys.argv[0]):
            os.environ.update(kubectl.as_bash_asks(sys.argv[1:]))
        completion.prepare()
        app(prog_name=kubectl.name_of_program(sys.argv[0]), complete_var=completion.VARIABLE)
    except SystemExit:
        if kubectl.is_completer(sys.argv[0]):
            typer.echo(kubectl.NO_FILES)
        raise
    except BrokenPipeError:
        sys.stderr.close()
    except Exception as error:
        if os.environ.get("SOPERATOR_DEBUG"):
            raise
        print(_sentence(error), file=sys.stderr)
        sys.exit(70)


def _sentence(error: Exception) -> str:
    from soperator.kube.errors import KubeError

    if isinstance(error, KubeError):
        return str(error)
    return (
        f"soperator failed: {type(error).__name__}: {error}; run it again with SOPERATOR_DEBUG=1 and report its output"
    )


if __name__ == "__main__":
    main()
