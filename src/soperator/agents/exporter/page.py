"""Renders the web page for people without Grafana: the state of the cluster in the last answers.

The page is read-only and needs only page.html. Users may have written Slurm's texts, so one function here escapes all of them, and the
Content-Security-Policy allows no scripts.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from string import Template

from soperator.agents.exporter.refresh import ClusterView, Refresher

TEMPLATE = Template((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))
HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'", "X-Content-Type-Options": "nosniff"}  # fmt: skip
#: Seconds between two points of the plot, and the number of points, which make a day.
STEP, DAY = 300.0, 288
_SHOWN = 100
_WIDTH, _HEIGHT = 720, 120


@dataclass
class History:
    """The allocated share of CPUs, and of GPUs if there are any, over the last day, but not from before this process started."""

    points: deque[tuple[float, float, float | None]] = field(default_factory=lambda: deque(maxlen=DAY))

    def note(self, now: float, seen: ClusterView) -> None:
        """Add a point, unless the last one is too recent or there is no data."""
        if not seen.shares.get("CPUs") or (self.points and now - self.points[-1][0] < STEP):
            return
        gpus = [shares for name, shares in seen.shares.items() if name.partition(":")[0] == "gpu"]
        self.points.append((now, _allocated([seen.shares["CPUs"]]), _allocated(gpus) if gpus else None))


def page(refresher: Refresher, history: History) -> str:
    """Return the page as HTML."""
    seen, sources = refresher.seen, refresher.sources
    read = [each.read_at for each in sources.values() if each.read_at]
    about = (
        f"Slurm {seen.version or 'of unknown version'}, as of {_clock(min(read))} UTC"
        if read
        else "nothing is known yet"
    )
    troubles = sorted({each.trouble for each in sources.values() if each.trouble})
    waiting = [
        (str(each.number), each.user, each.account, each.partition, each.reason, _clock(each.since))
        for each in seen.waiting
    ]
    return TEMPLATE.substitute(
        cluster=escape(refresher.options.cluster),
        about=escape(about),
        troubles="".join(f'<p class="trouble">{escape(each)}</p>' for each in troubles),
        nodes=_counts(seen.nodes),
        shares="".join(_bar(name, shares) for name, shares in seen.shares.items()),
        plot=_plot(list(history.points)),
        unwell=_table(
            ("node", "state", "health", "why"), _unwell(seen), len(seen.unwell) - _SHOWN, "All nodes are well."
        ),
        jobs=_counts(seen.jobs),
        waiting=""
        if refresher.options.private
        else _table(
            ("job", "user", "account", "partition", "waits for", "since (UTC)"),
            waiting,
            0,
            "No job is pending for nodes.",
        ),
    )


def _unwell(seen: ClusterView) -> list[tuple[str, ...]]:
    return [(each.name, _plain(each.state), each.health, each.message) for each in seen.unwell[:_SHOWN]]


def _counts(counts: dict[str, float]) -> str:
    found = [(name, count) for name, count in counts.items() if count]
    return "".join(f"<li><b>{count:.0f}</b>{escape(_plain(name))}</li>" for name, count in found) or "<li>none</li>"


def _bar(name: str, shares: dict[str, float]) -> str:
    whole = sum(shares.values())
    if not whole:
        return ""
    parts = "".join(
        f'<div class="{state}" style="width:{100 * count / whole:.2f}%"></div>' for state, count in shares.items()
    )
    words = ", ".join(f"{count:.0f} {_plain(state)}" for state, count in shares.items() if count)
    return f'<p>{escape(name)} <span class="faint">{words}</span></p><div class="bar">{parts}</div>'


def _plot(points: Sequence[tuple[float, float, float | None]]) -> str:
    """Return the plot of the allocated shares over the last day, as SVG."""
    if len(points) < 2:
        return '<h2>Last day</h2><p class="faint">The plot starts ten minutes after the exporter.</p>'
    first, last = points[0][0], points[-1][0]

    def line(values: Iterable[tuple[float, float | None]], kind: str) -> str:
        spots = [
            f"{(moment - first) / (last - first) * _WIDTH:.1f},{_HEIGHT - value * _HEIGHT:.1f}"
            for moment, value in values
            if value is not None
        ]
        return f'<polyline class="{kind}" points="{" ".join(spots)}"/>' if spots else ""

    gpus = line(((moment, gpu) for moment, _, gpu in points), "second")
    lines = line(((moment, cpu) for moment, cpu, _ in points), "first") + gpus
    grid = "".join(f'<line x1="0" x2="{_WIDTH}" y1="{y}" y2="{y}"/>' for y in (0, _HEIGHT / 2, _HEIGHT))
    ends = f'<p class="faint ends"><span>{_clock(first)}</span><span>{_clock(last)} UTC</span></p>'
    key = '<span class="key" style="background:var(--busy)"></span>CPUs' + (
        '<span class="key" style="background:var(--other)"></span>GPUs' if gpus else ""
    )
    return (
        f'<h2>Given to jobs in the last day</h2><p class="faint">0 to 100 %{key}</p>'
        f'<svg viewBox="0 -1 {_WIDTH} {_HEIGHT + 2}" preserveAspectRatio="none" role="img" aria-label="Share given to jobs">'
        f"{grid}{lines}</svg>{ends}"
    )


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], more: int, none: str) -> str:
    """Return a table; on a narrow screen each row becomes a few lines, each with its title."""
    if not rows:
        return f'<p class="faint">{escape(none)}</p>'
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(_cells(titles, row))}</tr>" for row in rows)
    rest = f'<p class="faint">And {more} more.</p>' if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cells(titles: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    for title, cell in zip(titles, row, strict=True):
        yield f'<td data-of="{escape(title)}">{escape(cell)}</td>'


def _allocated(shares: Sequence[dict[str, float]]) -> float:
    whole = sum(sum(each.values()) for each in shares)
    return sum(each.get("allocated", 0.0) for each in shares) / whole if whole else 0.0


def _plain(state: str) -> str:
    return state.replace("_", " ")


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%b %d, %H:%M")
