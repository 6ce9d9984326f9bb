"""docs/performance.md: the table between two markers is written by the bench, the text around it by people."""

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from local.bench.figures import FIGURES, Figure
from local.bench.record import Run
from local.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "performance.md"
COLD = REPOSITORY / "docs" / "reports" / "cold-demo.md"


@dataclass(frozen=True)
class Marks:
    """The lines of the page between which a bench writes."""

    begin: str
    end: str


BEGIN = "<!-- bench: begin; written by make bench -->"
END = "<!-- bench: end -->"
MARKS = Marks(BEGIN, END)
FRAME = f"# How fast, how small\n\n{BEGIN}\n{END}\n"


def write(runs: Sequence[Run], page: Path = PAGE, cold: Path = COLD) -> None:
    """Put the tables of these runs into the page."""
    text = page.read_text() if page.exists() else FRAME
    made = [*runs, *committed(cold.read_text() if cold.exists() else "", runs)]
    page.write_text(replace(text, f"{facts(machine(), made)}\n\n{table(made)}\n\n{breakdown(made)}"))


def replace(text: str, content: str, marks: Marks = MARKS) -> str:
    """Return the page with `content` between its markers; raise ValueError for a page that has none."""
    head, begin, rest = text.partition(marks.begin)
    _, end, tail = rest.partition(marks.end)
    if not begin or not end:
        raise ValueError(
            f"docs/performance.md: the markers {marks.begin!r} and {marks.end!r} are missing: put them back"
        )
    return f"{head}{marks.begin}\n\n{content.strip()}\n\n{marks.end}{tail}"


def committed(text: str, runs: Sequence[Run]) -> list[Run]:
    """Return the run from the committed report of a cold start, unless there is a newer one."""
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if any(run.figure == "cold" for run in runs) or "seconds" not in fields:
        return []
    load = float(fields.get("load before", 0.0))
    return [
        Run("cold", float(fields["seconds"]), commit=fields.get("commit", ""), when=fields.get("when", ""), load=load)
    ]


def machine() -> str:
    """Return a line about the machine of the measurements."""
    cpu = _first(Path("/proc/cpuinfo"), "model name").partition(":")[2].strip() or "unknown processor"
    memory = int(_first(Path("/proc/meminfo"), "MemTotal").split()[1]) / 1024**2
    release = _first(Path("/etc/os-release"), "PRETTY_NAME").partition("=")[2].strip('"')
    return f"{os.cpu_count()} cores of {cpu}, {memory:.0f} GiB, {release}, Linux {os.uname().release}"


def _first(file: Path, begin: str) -> str:
    return next((line for line in file.read_text().splitlines() if line.startswith(begin)), " 0")


def facts(machine_line: str, runs: Sequence[Run], target: str = "make bench", module: str = "local.bench") -> str:
    """Return the lines above the table: machine, commits, load, command."""
    commits = ", ".join(dict.fromkeys(run.commit for run in runs if run.commit))
    loads = [run.load for run in runs] or [0.0]
    times = sorted(run.when for run in runs if run.when) or ["never"]
    return (
        f"Made by `{target}` (`.venv/bin/python -m {module}`) on {machine_line}.\n"
        f"Commits: {commits or 'none'} (+: with changes that were not committed). Runs from {times[0]} to {times[-1]} UTC;\n"
        f"the load average of the minute before a run was {min(loads):.1f} to {max(loads):.1f}."
    )


def table(runs: Sequence[Run]) -> str:
    """Return the figures beside their goals; the median of the runs decides about a figure."""
    lines = ["| figure | runs | min | median | max | goal | |", "|---|---:|---:|---:|---:|---|---|"]
    return "\n".join(lines + [_row(figure, [run for run in runs if run.figure == figure.key]) for figure in FIGURES])


def is_met(figure: Figure, runs: Sequence[Run]) -> bool:
    """Return whether the median of the runs keeps the goal, or, if each run has its own limit, whether all runs do."""
    if figure.limit is None:
        return all(run.limit is not None and run.value <= run.limit for run in runs)
    return statistics.median(run.value for run in runs) <= figure.limit


def _row(figure: Figure, runs: Sequence[Run]) -> str:
    if not runs:
        return f"| {figure.title} | 0 | – | – | – | {figure.goal} | not measured |"
    values = [run.value for run in runs]
    shown = [show(value, figure.unit) for value in (min(values), statistics.median(values), max(values))]
    note = runs[-1].note
    few = f", by {len(runs)} run{'s' * (len(runs) > 1)} of {figure.runs}" if len(runs) < figure.runs else ""
    verdict = ("met" if is_met(figure, runs) else "**missed**") + few + (f"; {note}" if note else "")
    return f"| {figure.title} | {len(runs)} | {' | '.join(shown)} | {figure.goal} | {verdict} |"


def show(value: float, unit: str) -> str:
    """Return a value with its unit, rounded to its precision."""
    if unit in ("requests", "per min"):
        return f"{value:g}" if unit == "requests" else f"{value:.1f}"
    digits = 2 if unit == "s" and value < 5 else 1 if value < 100 else 0
    return f"{value:.{digits}f} {unit}"


def breakdown(runs: Sequence[Run]) -> str:
    """Return the table of the start: the median time of each step, in order."""
    started = [run for run in runs if run.figure == "start" and run.parts]
    if not started:
        return ""
    names = [name for name in started[0].parts if all(name in run.parts for run in started)]
    columns = {name: [run.parts[name] for run in started] for name in names}
    rows = sorted((statistics.median(values), min(values), max(values), name) for name, values in columns.items())
    lines = [
        f"From `kubectl apply` to a job, median of {len(started)} runs:\n",
        "| moment | min | median | max |",
        "|---|---:|---:|---:|",
    ]
    lines += [f"| {name} | {low:.1f} s | {middle:.1f} s | {high:.1f} s |" for middle, low, high, name in rows]
    return "\n".join(lines)
