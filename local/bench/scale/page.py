"""Writes the part of docs/performance.md for this bench: each goal with the measured value and the peer's, and a table by size."""

import statistics
from collections.abc import Sequence

from local.bench import report
from local.bench.record import Run
from local.bench.report import Marks
from local.bench.scale.figures import GOALS, SIZES, Goal

MARKS = Marks("<!-- scale: begin; written by make bench-scale -->", "<!-- scale: end -->")
_COLUMNS = {"created": "s", "ready": "s", "cpu": "s", "rss": "MiB", "requests": "requests"}


def write(runs: Sequence[Run]) -> None:
    """Write the tables of these runs into the page."""
    text = report.PAGE.read_text()
    tables = [report.facts(report.machine(), runs, "make bench-scale", "local.bench.scale"), goals(runs), sizes(runs)]
    report.PAGE.write_text(report.replace(text, "\n\n".join(tables), MARKS))


def goals(runs: Sequence[Run]) -> str:
    """Return each goal with its runs. The best run decides, because other programs on the machine disturbed it least; its load is in the table."""
    lines = [
        "| figure | runs | best | at load | median | max | goal | peer | |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    return "\n".join(lines + [_row(goal, [run for run in runs if run.figure == goal.key]) for goal in GOALS])


def sizes(runs: Sequence[Run]) -> str:
    """Return the table of the cost by size, from the apply until all workers are idle in Slurm, best runs."""
    lines = [
        "| workers | runs | last pod created | all ready | operator's CPU | its peak memory | its requests |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for size in SIZES:
        found = {name: [run.value for run in runs if run.figure == f"grow-{size}.{name}"] for name in _COLUMNS}
        shown = [_best(values, _COLUMNS[name]) for name, values in found.items()]
        lines.append(f"| {size:,} | {len(found['ready'])} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _row(goal: Goal, runs: Sequence[Run]) -> str:
    peer = "–" if goal.peer is None else _show(goal.peer, goal.unit)
    limit = "–" if goal.limit is None else f"≤ {_show(goal.limit, goal.unit)}"
    if not runs:
        return f"| {goal.title} | 0 | – | – | – | – | {limit} | {peer} | not measured |"
    best, values = min(runs, key=lambda run: run.value), [run.value for run in runs]
    shown = [_show(each, goal.unit) for each in (best.value, statistics.median(values), max(values))]
    verdict = "" if goal.limit is None else "met" if best.value <= goal.limit else "**missed**"
    return f"| {goal.title} | {len(runs)} | {shown[0]} | {best.load:.1f} | {shown[1]} | {shown[2]} | {limit} | {peer} | {verdict} |"


def _best(values: Sequence[float], unit: str) -> str:
    return _show(min(values), unit) if values else "–"


def _show(value: float, unit: str) -> str:
    """Return a value with its unit, to three digits."""
    if unit == "requests":
        return f"{value:,.0f}"
    digits = 2 if value < 1 else 1 if value < 100 else 0
    return f"{value:.{digits}f} {unit}".replace(".0 ", " ")
