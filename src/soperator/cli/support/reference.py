"""The reference page of the command line, computed from the verbs' help; `make crds` writes it."""

from collections.abc import Iterator
from typing import Any

NAME = "cli.md"

_INTRODUCTION = """# The command line

<!-- Generated from src/soperator/cli by `make crds`. -->

`soperator VERB --help` prints the same. Options before the verb choose the cluster: `--kubeconfig FILE` (default: the files in `KUBECONFIG`, then
`~/.kube/config`) and `--context NAME`. An error is one line with the remedy, and the exit code is not 0. `-o json` and `-o yaml` print the same data
for programs, in ASCII; fields may be added in later versions.
"""


def page() -> str:
    """Return the page as Markdown."""
    from typer.main import get_command

    from soperator.cli.__main__ import app

    commands: dict[str, Any] = getattr(get_command(app), "commands")  # noqa: B009  (typer's class is its own)
    return "\n".join([_INTRODUCTION, *(text for name in sorted(commands) for text in _verb(name, commands[name]))])


def _verb(name: str, command: Any) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and each.name != "help"]
    shown = " ".join(_argument(each) for each in arguments)
    yield f"## {name}\n"
    yield f"`soperator {name}{' ' if shown else ''}{shown}{' [OPTIONS]' if options else ''}`\n"
    yield "\n\n".join(_escaped(" ".join(part.split())) for part in (command.help or "").split("\n\n")) + "\n"
    rows = [(f"`{_argument(each)}`".replace("|", "\\|"), each.help or "") for each in arguments] + [
        (_option(each), each.help or "") for each in options
    ]
    if rows:
        yield "| argument or option | meaning |\n|---|---|"
        yield "\n".join(f"| {first} | {_escaped(second)} |" for first, second in rows)
        yield ""


def _argument(parameter: Any) -> str:
    text = str(parameter.metavar or parameter.name.upper())
    return text if parameter.required or text.startswith("[") else f"[{text}]"


def _option(parameter: Any) -> str:
    names = ", ".join(f"`{each}`" for each in [*parameter.opts, *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} {parameter.metavar or parameter.name.upper()}".replace("|", "\\|")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
