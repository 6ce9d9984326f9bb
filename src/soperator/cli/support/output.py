"""The options that many verbs share, and the output as text, JSON or YAML.

JSON and YAML are ASCII with escapes, so that what others wrote cannot control the terminal.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from soperator.cli.shell.completion import cluster_names
from soperator.cli.support.say import line, say

#: Seconds between two screens of --watch.
_PAUSE = 2.0
#: Clears a terminal, and moves to its beginning.
_CLEAR = "\x1b[2J\x1b[H"


class OutputFormat(StrEnum):
    """The formats of a verb's output."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[
    OutputFormat, typer.Option("--output", "-o", help="text for people; json or yaml for programs.")
]
ClusterArgument = Annotated[
    str,
    typer.Argument(
        metavar="[CLUSTER]", help="Name of the SlurmCluster; default: the only one.", autocompletion=cluster_names
    ),
]
NamespaceOption = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace of the cluster; default: that of the kubeconfig.")
]


def repeated(watch: bool) -> Iterator[None]:
    """Yield once; with `watch` again after each pause, until the user presses Ctrl-C."""
    try:
        yield
        while watch:
            time.sleep(_PAUSE)
            yield
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def emit(form: OutputFormat, data: Any, text: Iterable[str], watch: bool = False) -> None:
    """Print the lines of the text, or the data in one of the formats for programs. With `watch` a terminal is cleared first."""
    if form is OutputFormat.TEXT:
        lines = "\n".join(map(line, text))
        if watch and sys.stdout.isatty():
            typer.echo(_CLEAR, nl=False)
        say(lines)
    else:
        typer.echo(serialized(form, data), nl=False)


def serialized(form: OutputFormat, data: Any) -> str:
    """Return the data as one JSON or YAML document in ASCII, with a line break at its end."""
    if form is OutputFormat.JSON:
        import json

        return json.dumps(data, indent=2) + "\n"
    import yaml

    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=False))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table with aligned columns; the last column is not padded, and an empty cell is a dash."""
    cells = [tuple(head), *(tuple(line(str(cell)) if str(cell) else "-" for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in cells
    ]
