"""Slurm's configuration files as values, and their one parser.

A file is a list of lines, a line is a list of `Key=Value` pairs: `NodeSet=a Feature=a` is one line with two. Configuration is data and not a
template, so one function decides how values are quoted, and tests compare `parse(render(lines))` with `lines`.

The parser reads text exactly as Slurm does, because a line that it reads differently escapes the checks. Slurm removes comments before it joins
continued lines, even between quotation marks. It ignores the case of keys. `Key = value` and `Key+=value` are settings. A backslash before `#` or
another backslash takes its meaning away.

Source: slurm.conf(5), parse_config.c of 24.11.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*[-*+/]?=\s*("[^"]*"|[^\s]+)(?=\s|$)')
_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#.*")
#: Settings that take the rest of their line: what follows belongs to them.
_WHOLE_LINE = frozenset({"nodename", "nodeset", "partitionname", "downnodes", "frontendname", "name"})


class ConfError(ValueError):
    """A line that Slurm would not read, with its number."""


@dataclass(frozen=True)
class Line:
    """One line: its pairs in order, and its line number."""

    pairs: tuple[tuple[str, str], ...]
    number: int = 0

    def get(self, key: str) -> str | None:
        """Return the value of a key, without regard to its case; None if the line lacks it."""
        return next((v for k, v in self.pairs if k.lower() == key.lower()), None)

    @property
    def head(self) -> str:
        """The first key, which names the kind of the line, such as NodeName."""
        return self.pairs[0][0]


@dataclass(frozen=True)
class Setting:
    """One `key=value` and the number of the line on which its logical line begins; `rest` is text that Slurm cannot read."""

    key: str
    value: str
    line: int
    rest: str = ""


@dataclass(frozen=True)
class LogicalLine:
    """One line as Slurm reads it, and its number: its pairs, or the name of an included file, and text that Slurm cannot read."""

    number: int
    pairs: tuple[tuple[str, str], ...] = ()
    include: str = ""
    rest: str = ""

    @property
    def is_object(self) -> bool:
        """Whether the line describes one object, such as a node, whose name is in the first pair."""
        return bool(self.pairs) and self.pairs[0][0].lower() in _WHOLE_LINE


def line(**pairs: str | int) -> Line:
    """Return a line of the keyword arguments, in their order."""
    return Line(tuple((key, str(value)) for key, value in pairs.items()))


def lines(settings: Mapping[str, str | int]) -> list[Line]:
    """Return one line for each setting, in order."""
    return [Line(((key, str(value)),)) for key, value in settings.items()]


def render(content: Iterable[Line]) -> str:
    """Return the text of a file; raises ConfError for a key or a value that Slurm would read differently."""
    return "".join(" ".join(_pair(key, value) for key, value in each.pairs) + "\n" for each in content)


def parse(text: str) -> list[Line]:
    """Return the lines of a file, each with all its pairs; raises ConfError with the number of a line that is not made of `Key=Value` pairs."""
    found = []
    for number, logical in _logical_lines(text):
        pairs, rest = _pairs(logical)
        if rest:
            raise ConfError(f"line {number}: {rest.split()[0]!r} is not of the form Key=Value")
        if pairs:
            found.append(Line(tuple(pairs), number))
    return found


def settings(text: str) -> Iterator[Setting]:
    """Yield the settings of a file as Slurm reads them; `Include` is a setting too, and text that Slurm cannot read has no key.

    If a line describes one object, such as a node, only its first pair is a setting.
    """
    for each in logical_lines(text):
        if each.include:
            yield Setting("Include", each.include, each.number)
        for key, value in each.pairs[:1] if each.is_object else each.pairs:
            yield Setting(key, value, each.number)
        if each.rest:
            yield Setting("", "", each.number, each.rest)


def logical_lines(text: str) -> Iterator[LogicalLine]:
    """Yield the lines of a file as Slurm reads them, with continuations joined; lines without content are left out."""
    for number, logical in _logical_lines(text):
        if include := _INCLUDE.match(logical):
            yield LogicalLine(number, include=include[1])
            continue
        pairs, rest = _pairs(logical)
        if pairs or rest:
            yield LogicalLine(number, tuple(pairs), rest=rest)


def _pairs(logical: str) -> tuple[list[tuple[str, str]], str]:
    """Return the pairs of a logical line, and the rest of the line, which Slurm cannot read."""
    found, at = [], 0
    while match := _PAIR.match(logical, at):
        found.append((match[1], match[2].strip('"')))
        at = match.end()
    return found, logical[at:].strip()


def _pair(key: str, value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.]+", key):
        raise ConfError(f"{key!r} cannot be a key of a Slurm configuration file")
    if re.search(r'[\n\r"]', value):
        raise ConfError(f"{key}: the value {value!r} contains a line break or a quotation mark")
    escaped = re.sub(r"([\\#])", r"\\\1", value)
    return f'{key}="{escaped}"' if re.search(r"\s", value) or not value else f"{key}={escaped}"


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its continuations joined and its comments removed, as `_get_next_line` of Slurm does."""
    start, joined = 0, ""
    for number, raw in enumerate(text.split("\n"), 1):
        start = start or number
        without = _COMMENT.sub(r"\1", raw)
        stripped = without.rstrip()
        slashes = len(stripped) - len(stripped.rstrip("\\"))
        if slashes % 2:
            joined += stripped[:-1]
            continue
        yield start, re.sub(r"\\(.)", r"\1", joined + without)
        start, joined = 0, ""
    if joined.strip():
        yield start, joined
