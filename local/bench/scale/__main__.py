"""`make bench-scale`: `python -m local.bench.scale [PART…] [--runs N] [--add] [--counts]`, PART of 1, 100, 1000, 5000, fifty, report.

It measures, and writes its tables in docs/performance.md. It shares nothing with the local cluster: all programs listen on the loopback, on
their own ports.
"""

import argparse
import sys

from local.bench import counts, record
from local.bench.counts import Measured
from local.bench.record import Run
from local.bench.scale import page, scenes
from local.bench.scale.figures import FILE, GOALS, SIZES, Goal
from local.progress import Failure

PARTS = (*map(str, SIZES), "fifty", "report")


def main() -> int:
    """Measure the given parts and write the page."""
    parser = argparse.ArgumentParser(prog="python -m local.bench.scale", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--runs", type=int, default=1, help="how often (default: %(default)s)")
    parser.add_argument("--add", action="store_true", help="keep earlier runs")
    parser.add_argument(
        "--counts", action="store_true", help="write no page; exit with 1 if a count of requests exceeds its limit"
    )
    options = parser.parse_args()
    wanted = options.parts or PARTS[:-1]
    if unknown := [part for part in wanted if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}: choose of {', '.join(PARTS)}")
    if not options.add and wanted != ["report"]:
        FILE.unlink(missing_ok=True)
    try:
        for part in wanted:
            for _ in range(options.runs if part != "report" else 0):
                scenes.fifty() if part == "fifty" else scenes.grow(int(part))
    except Failure as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        if not options.counts:
            page.write(record.read(FILE))
    return counts.verdict(_measured()) if options.counts else 0


def _measured() -> list[Measured]:
    goals = {each.key: each for each in GOALS}
    return [
        Measured(found.title, found.unit, _count(found, run), found.limit)
        for run in record.read(FILE)
        if (found := goals.get(run.figure))
    ]


def _count(goal: Goal, run: Run) -> float:
    """Return the counts of a scene.

    Its duration depends on the machine, so requests that grow with the duration are left out; the idle minute has a fixed length.
    """
    return counts.without_time(run.value, run.parts) if goal.unit == "requests" else run.value


if __name__ == "__main__":
    sys.exit(main())
