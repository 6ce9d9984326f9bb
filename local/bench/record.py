"""Stores every run, one JSON object a line, so an interrupted bench keeps its earlier runs.

A run has the data that is needed to judge it later: the commit, the machine's load at its start, and the durations of its parts.
"""

import json
import os
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from local.paths import DEFAULT_STATE
from local.report import commit

FILE = DEFAULT_STATE / "bench.jsonl"


@dataclass(frozen=True)
class Run:
    """One measurement; `parts` are named times in seconds after the start, or counts, for the second table."""

    figure: str
    value: float
    limit: float | None = None
    note: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    commit: str = ""
    load: float = 0.0
    when: str = ""


@dataclass(frozen=True)
class Scene:
    """The circumstances of a run, read before the run begins."""

    commit: str
    load: float
    when: str


def current_scene() -> Scene:
    """Return the commit, the load of the last minute, and the time."""
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    return Scene(commit(), round(os.getloadavg()[0], 2), when)


def read(file: Path = FILE) -> list[Run]:
    """Return the runs in the order in which they were made."""
    return [Run(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def append(run: Run, file: Path = FILE) -> None:
    """Keep a run."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(json.dumps(asdict(run)) + "\n")


def forget(figures: Collection[str], file: Path = FILE) -> None:
    """Drop the runs of these figures."""
    kept = [run for run in read(file) if run.figure not in figures]
    if file.exists():
        file.write_text("".join(json.dumps(asdict(run)) + "\n" for run in kept))
