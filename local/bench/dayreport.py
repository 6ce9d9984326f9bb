"""`make bench-day`: writes the simulated day as a page and a plot, docs/reports/power-day.md and power-day.svg."""

import statistics

from local.bench.day import Day
from local.bench.dayjobs import BOOT, REQUEUE, SEED, SETS, SHORTAGES, SUSPEND, WISH, Result, ideal, jobs
from local.paths import REPOSITORY

COUNT = 2000
_WIDTH, _HEIGHT, _EDGE, _POINTS = 900, 300, 40, 450
_FOLDER = REPOSITORY / "docs/reports"


def main() -> None:
    """Simulate the day, and write the page and the plot."""
    todo = jobs(COUNT)
    lived, best = Day(todo).run(), ideal(todo)
    (_FOLDER / "power-day.svg").write_text(plot(lived))
    (_FOLDER / "power-day.md").write_text(page(lived, best))
    print(f"{lived.ended} jobs, {lived.node_hours:.0f} node-hours, {_more(lived, best):.1f} % more than at best")


def page(lived: Result, best: Result) -> str:
    """Return the page."""
    short = "; ".join(f"`{name}` {start:g}-{end:g} h: {most}" for name, start, end, most in SHORTAGES)
    rows = (
        ("jobs that ended", f"{lived.ended}", f"{best.ended}"),
        ("jobs that waited although nodes were available", f"{len(set(lived.needless))}", "-"),
        ("jobs requeued because machines were missing", f"{lived.requeued}", "-"),
        ("node-hours", f"{lived.node_hours:.0f}", f"{best.node_hours:.0f}"),
        ("wait, median", f"{statistics.median(lived.waited):.0f} s", f"{statistics.median(best.waited):.0f} s"),
        ("wait, mean", f"{statistics.mean(lived.waited):.0f} s", f"{statistics.mean(best.waited):.0f} s"),
    )
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    sets = ", ".join(f"`{name}` of {most} nodes" for name, most in SETS.items())
    return f"""# A day of jobs on nodes that sleep

Written by `make bench-day`: the policy itself
([`policy/workers/on_demand.py`](../../src/soperator/policy/workers/on_demand.py)) over a stand-in of Slurm and of
Kubernetes, in virtual time.

{COUNT} jobs (seed {SEED}) on {sets}.
A node takes {BOOT:.0f} s to boot and {SUSPEND:.0f} s to go; suspendTime, resumeTimeout and retryAfter are
{WISH.idle:.0f} s, {WISH.resume:.0f} s and {WISH.backoff:.0f} s; Slurm looks at a job that it queued again after {REQUEUE:.0f} s.
Machines are short at times ({short}).
Beside it the same scheduler with nodes that boot in no time, go the moment that nobody needs them, and never lack a machine.

| | policy | at best |
|---|---|---|
{table}

{_more(lived, best):.1f} % more node-hours than at best. A node that has a machine counts, whatever it does there.

![nodes with a job, and nodes that are there, over the day](power-day.svg)
"""


def _more(lived: Result, best: Result) -> float:
    return 100 * (lived.node_hours / best.node_hours - 1)


def plot(lived: Result) -> str:
    """Plot the nodes with a job, and the nodes that exist, by the hour."""
    last, top = lived.curve[-1][0], max(there for _, _, there in lived.curve)
    points = lived.curve[:: max(1, len(lived.curve) // _POINTS)]

    def line(which: int, colour: str) -> str:
        found = " ".join(
            f"{_EDGE + each[0] / last * (_WIDTH - 2 * _EDGE):.1f},{_HEIGHT - _EDGE - each[which] / top * (_HEIGHT - 2 * _EDGE):.1f}"
            for each in points
        )
        return f'<polyline fill="none" stroke="{colour}" points="{found}"/>'

    hours = [
        f'<text x="{_EDGE + hour * 3600 / last * (_WIDTH - 2 * _EDGE):.0f}" y="{_HEIGHT - 15}">{hour} h</text>'
        for hour in range(0, int(last // 3600) + 1, 4)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">'
    words = [
        f'<text x="5" y="{_EDGE}">{top}</text><text x="5" y="{_HEIGHT - _EDGE}">0</text>',
        f'<text x="{_EDGE + 10}" y="20" fill="#b45309">nodes that are there</text>',
        f'<text x="{_EDGE + 170}" y="20" fill="#1d4ed8">nodes that a job has</text>',
    ]
    return "\n".join([head, *words, *hours, line(2, "#b45309"), line(1, "#1d4ed8"), "</svg>\n"])


if __name__ == "__main__":
    main()
