"""Slurm's configuration files as values.

A file is a list of lines, a line is a list of `Key=Value` pairs: `NodeSet=a Feature=a` is one line with two. Configuration is data and not
a template, so that quoting is decided in one place and `parse(render(lines)) == lines` can be tested. Comments, blank lines and lines continued
by a backslash are read; they are not kept. Source: slurm.conf(5).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_PAIR = re.compile(r"""\s*([^\s=#]+)=("[^"]*"|[^\s#"]*)""")


class ConfError(ValueError):
    """A line that Slurm would not read, with its number."""


@dataclass(frozen=True)
class Line:
    """One line: its pairs in order, and where it stood."""

    pairs: tuple[tuple[str, str], ...]
    number: int = 0

    def get(self, key: str) -> str | None:
        """The value of a key, whose case does not matter to Slurm."""
        return next((v for k, v in self.pairs if k.lower() == key.lower()), None)

    @property
    def head(self) -> str:
        """The first key, which says what the line is about."""
        return self.pairs[0][0]


def line(**pairs: str | int) -> Line:
    """A line from keyword arguments, in their order."""
    return Line(tuple((key, str(value)) for key, value in pairs.items()))


def lines(settings: Mapping[str, str | int]) -> list[Line]:
    """One line for each setting, in order."""
    return [Line(((key, str(value)),)) for key, value in settings.items()]


def render(content: Iterable[Line]) -> str:
    """The text of a file; raises ConfError for a key or value that cannot be written so that Slurm reads it back."""
    return "".join(" ".join(_pair(key, value) for key, value in each.pairs) + "\n" for each in content)


def parse(text: str) -> list[Line]:
    """The lines of a file; raises ConfError with the number of a line that is not made of `Key=Value` pairs."""
    return [_parse_line(number, raw) for number, raw in _logical_lines(text)]


def _pair(key: str, value: str) -> str:
    if not key or re.search(r"[\s=#\"]", key):
        raise ConfError(f"{key!r} cannot be a key of a Slurm configuration file")
    if re.search(r'[\n\r"]', value):
        raise ConfError(f"{key}: the value {value!r} holds a line break or a quotation mark")
    return f'{key}="{value}"' if re.search(r"[\s#]", value) else f"{key}={value}"


def _logical_lines(text: str) -> Iterable[tuple[int, str]]:
    start, joined = 0, ""
    for number, raw in enumerate(text.splitlines(), 1):
        start = start or number
        if raw.endswith("\\"):
            joined += raw[:-1]
            continue
        whole, first = joined + raw, start
        start, joined = 0, ""
        if whole.strip() and not whole.lstrip().startswith("#"):
            yield first, whole
    if joined.strip():
        yield start, joined


def _parse_line(number: int, raw: str) -> Line:
    pairs, at = [], 0
    while match := _PAIR.match(raw, at):
        value = match[2]
        pairs.append((match[1], value[1:-1] if value.startswith('"') else value))
        at = match.end()
    rest = raw[at:].strip()
    if rest and not rest.startswith("#"):
        raise ConfError(f"line {number}: {rest.split()[0]!r} is not of the form Key=Value")
    return Line(tuple(pairs), number)
