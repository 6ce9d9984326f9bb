"""The command line `soperator`: one file per verb, and no slow import before a verb runs.

People type `soperator --help` first and often, so the verbs' modules import only typer; each verb imports what it needs when it is called. An error
in the input ends with one line per fault and exit code 1, never with a traceback.
"""

import sys

import typer

from soperator.cli import crds, diff, explain, join, lint, operator, render, token, why

app = typer.Typer(
    name="soperator",
    help="Slurm clusters as Kubernetes resources.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("crds")(crds.crds)
app.command("lint")(lint.lint)
app.command("render")(render.render)
app.command("diff")(diff.diff)
app.command("explain")(explain.explain)
app.command("why")(why.why)
app.command("token")(token.token)
app.command("join")(join.join)
app.command("operator")(operator.operator)


def main() -> None:
    """Run the command line."""
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()


if __name__ == "__main__":
    main()
