"""What a person reads who looks all the time: the lines of `kubectl get … -o wide` as they change, between what was done meanwhile.

The API server itself makes the cells that kubectl prints (a Table), so these are asked for. A line is kept when it differs from the one before.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from local.api import Api
from local.progress import Failure
from soperator.api.base import API_VERSION

#: How long until the next look, in seconds.
PAUSE = 0.3
#: Columns that never change, and one that always does.
LEFT_OUT = {"Cluster", "Address", "Age"}
#: A line of a report is cut after so many characters.
WIDE = 300


@dataclass
class Log:
    """Lines, each with its moment in seconds since the beginning; one that begins with # says what was done."""

    began: float = field(default_factory=time.monotonic)
    lines: list[tuple[float, str]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    is_aloud: bool = False

    def note(self, text: str) -> None:
        """Keep a line."""
        self.lines.append((time.monotonic() - self.began, " ".join(text.rstrip().splitlines())))
        if self.is_aloud:
            print("{:7.1f}  {}".format(*self.lines[-1]), flush=True)

    def text(self, since: int = 0) -> str:
        """The lines from one number on, as a report shows them; time begins with the first of them."""
        chosen = self.lines[since:]
        return "".join(f"{at - chosen[0][0]:7.1f}  {_cut(said)}\n" for at, said in chosen)


def _cut(line: str) -> str:
    return line if len(line) <= WIDE else f"{line[:WIDE]}…"


@contextmanager
def reading(log: Log, api: Api, namespace: str, names: Mapping[str, str]) -> Iterator[None]:
    """Keep each new line of some objects, by the plural of their kinds; nothing while the API server does not answer."""
    stop = threading.Event()
    thread = threading.Thread(target=_read, args=(log, api, namespace, names, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


def _read(log: Log, api: Api, namespace: str, names: Mapping[str, str], stop: threading.Event) -> None:
    last: dict[str, str] = {}
    while not stop.wait(PAUSE):
        for plural, name in names.items():
            try:
                table = api.get(f"/apis/{API_VERSION}/namespaces/{namespace}/{plural}/{name}", table=True)
            except (OSError, Failure):
                continue
            header, line = printed(table) if table else ("", "(it is not there)")
            if header and header not in log.headers:
                log.headers.append(header)
            if line != last.get(plural):
                last[plural] = line
                log.note(line)


def printed(table: Mapping[str, Any]) -> tuple[str, str]:
    """Header and line of the first object of a Table."""
    columns = [(index, each["name"]) for index, each in enumerate(table["columnDefinitions"])]
    shown = [(index, name) for index, name in columns if name not in LEFT_OUT]
    cells = table["rows"][0]["cells"]
    header = "  ".join(name.upper() for _, name in shown)
    return header, "  ".join(_cell(cells[index]).ljust(len(name)) for index, name in shown)


def _cell(value: object) -> str:
    return "" if value is None else str(value)
