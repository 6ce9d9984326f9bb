"""The commands of the pages' shell blocks, and what is wrong with each as far as no cluster is needed to know.

A check that finds a command of its program returns the faults, and None if the command is not of that program: so what nobody checks can be counted.
`python -m tests.unit.doc_commands` prints how many commands of which program are checked, and those that are not.
"""

import argparse
import contextlib
import importlib.util
import io
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
import typer.main
import yaml

from local import __main__ as local_main
from soperator.cli.__main__ import app
from tests.unit.doc_kubectl import kubectl_faults

ROOT = Path(__file__).resolve().parents[2]
#: Without the generated page whose commands are forms, such as `soperator top [CLUSTER] [OPTIONS]`.
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(set(ROOT.glob("docs/**/*.md")) - {ROOT / "docs/reference/cli.md"}),
]
#: What the command line raises for words that it does not know.
USAGE: Any = typer.BadParameter.__base__
BLOCK = re.compile(r"^( *)```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)

ANY_BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
#: Words of the shell before which no command has begun.
KEYWORDS = {"do", "done", "then", "else", "fi", "if", "while", "!"}
#: A code span that is a whole command of ours, or one of kubectl with its namespace.
SPAN = re.compile(r"`((?:\.venv/bin/)?soperator [a-z]+ [^`]+|kubectl (?:-n|get|slurm) [^`]+)`")
COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)


@dataclass(frozen=True)
class Typed:
    """One command of a page, cut into words as a shell does; a span within a sentence may leave arguments out."""

    page: str
    words: tuple[str, ...]
    is_span: bool = False

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"


def shell_blocks(page: Path) -> Iterator[str]:
    """The shell blocks of a page, without their indentation."""
    for indent, body in BLOCK.findall(page.read_text()):
        yield "".join(line.removeprefix(indent) for line in body.splitlines(keepends=True))


def typed(page: Path) -> Iterator[Typed]:
    """The commands of a page's shell blocks and code spans, those within `$(…)` and `<(…)` too; batch scripts of Slurm count as any block."""
    for block in shell_blocks(page):
        for words in split(block):
            yield Typed(str(page.relative_to(ROOT)), tuple(words))
    for span in SPAN.findall(ANY_BLOCK.sub("", page.read_text())):
        for words in split(span.replace("\n", " ")):
            yield Typed(str(page.relative_to(ROOT)), tuple(words), is_span=True)


def split(script: str) -> Iterator[list[str]]:
    """The simple commands of a script, without comments, redirections and assignments before them."""
    for inner in re.findall(r"[$<]\(([^()]+)\)", script):
        yield from split(inner)
    lexer = shlex.shlex(re.sub(r"\\\n", " ", COMMENT.sub("", script)), posix=True, punctuation_chars=";&|<>()\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    words: list[str] = []
    skip = False
    for token in [*lexer, "\n"]:
        if re.fullmatch(r"[;&|()\n]+", token):
            if words:
                yield words
            words, skip = [], False
        elif re.fullmatch(r"[<>&]+", token):
            skip = True
        elif skip:
            skip = False
        elif words or not (token in KEYWORDS or re.fullmatch(r"\w+=.*", token, re.DOTALL)):
            words.append(token)


def faults(command: Typed) -> list[str] | None:
    """What is wrong with a command, or None if no check knows its program."""
    for check in (_soperator, _make, _module, _helm, kubectl_faults, _createuser):
        found = check(list(command.words))
        if found is not None:
            wrong = found + _paths(list(command.words))
            return [
                each for each in wrong if not (command.is_span and each.startswith(("Missing ", "no kind is named")))
            ]
    return None


def _paths(words: list[str]) -> list[str]:
    """Files of the repository that are not there."""
    named = [
        each for each in words if re.fullmatch(r"(examples|local|charts|docs|images|spank|src|tests)/[\w./-]+", each)
    ]
    return [f"there is no {each}" for each in named if not (ROOT / each).exists()]


def _soperator(words: list[str]) -> list[str] | None:
    """Verb, options and arguments, by the command line's own parser; nothing runs."""
    if words[0] in ("soperator", ".venv/bin/soperator"):
        rest = words[1:]
    elif words[:2] == ["kubectl", "slurm"]:
        rest = words[2:]
    else:
        return None
    verb = typer.main.get_command(app).commands.get(rest[0]) if rest else None  # type: ignore[attr-defined]
    if verb is None:
        return [f"no verb {rest[:1]}"]
    try:
        verb.make_context(rest[0], rest[1:])
    except USAGE as error:
        return [error.format_message()]
    return []


def _make(words: list[str]) -> list[str] | None:
    """Targets of the Makefile, and variables that it or the programs of `local` read."""
    if words[0] != "make":
        return None
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z0-9-]+):", text, re.MULTILINE))
    readers = text + "".join(each.read_text() for each in ROOT.glob("local/**/*.py"))
    wrong = []
    for word in words[1:]:
        name, is_set, _ = word.partition("=")
        if not is_set and name not in targets:
            wrong.append(f"no target {name}")
        elif is_set and not re.search(rf"\b{re.escape(name)}\b", readers):
            wrong.append(f"nobody reads {name}")
    return wrong


def _module(words: list[str]) -> list[str] | None:
    """Modules of the repository that Python runs, and the first word of `python3 -m local`."""
    if not re.fullmatch(r"(\.venv/bin/)?python3?", words[0]) or words[1:2] != ["-m"]:
        return None
    place = ROOT / words[2].replace(".", "/")
    if words[2] in ("http.server", "venv"):
        return []
    if not (place.with_suffix(".py").exists() or (place / "__main__.py").exists()):
        return [f"no module {words[2]}"]
    if words[2] == "local":
        return _parsed(local_main.parser(), words[3:])
    return []


def _parsed(parser: argparse.ArgumentParser, words: list[str]) -> list[str]:
    """What argparse prints about words that it does not take."""
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        try:
            parser.parse_args(words)
        except SystemExit:
            return [printed.getvalue()]
    return []


def _createuser(words: list[str]) -> list[str] | None:
    """Options of `createuser`, by its own parser."""
    words = words[1:] if words[0] == "$root" else words
    if words[0] != "createuser":
        return None
    spec = importlib.util.spec_from_file_location("createuser", ROOT / "images/login/createuser.py")
    assert spec
    assert spec.loader
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return _parsed(program.arguments(), words[1:])


def _helm(words: list[str]) -> list[str] | None:
    """Charts, and the values that `--set` names in their schemas."""
    if words[0] != "helm":
        return None
    if words[1] not in ("install", "upgrade", "uninstall", "template", "package", "push", "registry"):
        return [f"no subcommand {words[1]}"]
    named = [found[1] for word in words if (found := re.search(r"(?:^|/)charts/([\w-]+)$", word))]
    wrong = [f"no chart {chart}" for chart in named if not (ROOT / "charts" / chart / "Chart.yaml").exists()]
    given = [words[number + 1] for number, word in enumerate(words) if word == "--set"]
    for chart in named:
        wrong += [
            f"{chart} has no value {key}"
            for key in (each.partition("=")[0] for each in given)
            if not _has_value(chart, key)
        ]
    return wrong


def _has_value(chart: str, key: str) -> bool:
    """Whether a chart's values have a path, or a map above it that takes any key."""
    here = yaml.safe_load((ROOT / "charts" / chart / "values.yaml").read_text())
    for name in key.split("."):
        if not isinstance(here, dict) or (here and name not in here):
            return False
        here = here.get(name, {})
    return True


def main() -> None:
    """Print the counts."""
    checked: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for page in PAGES:
        for command in typed(page):
            (left if faults(command) is None else checked)[command.words[0]] += 1
    print(f"{checked.total()} of {checked.total() + left.total()} commands are checked:", dict(checked.most_common()))
    print("only as shell syntax:", dict(left.most_common()))


if __name__ == "__main__":
    main()
