"""``python -m local.bench``: measures, and writes docs/performance.md.

`make bench` measures everything except `cold`, which deletes the caches and takes 15 minutes. Each part can be measured alone. With --add
the runs are added to earlier ones. With --counts the program judges only the figures that do not depend on the machine.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence

from local.bench import alone, counts, live, record, report
from local.bench.counts import Measured
from local.bench.figures import FIGURES, PARTS
from local.demo import DemoError
from local.progress import Failure

MEASURE = {
    "alone": alone.measure,
    "warm": live.measure_warm,
    "start": live.measure_start,
    "idle": live.measure_idle,
    "memory": live.measure_memory,
    "worker": live.measure_worker,
    "cold": live.measure_cold,
}
ONCE = ("idle", "memory", "cold")


def main() -> int:
    """Measure the given parts and write the page."""
    parser = argparse.ArgumentParser(prog="python -m local.bench", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}, or report to write the page only"
    )
    parser.add_argument(
        "--runs", type=int, default=5, help="number of runs (default: %(default)s); some parts run once"
    )
    parser.add_argument("--add", action="store_true", help="keep earlier runs")
    parser.add_argument(
        "--counts", action="store_true", help="write no page; exit with 1 if a count of requests exceeds its limit"
    )
    options = parser.parse_args()
    wanted = options.parts or [part for part in MEASURE if part != "cold"]
    if unknown := [part for part in wanted if part not in (*MEASURE, "report")]:
        parser.error(f"there is no part {unknown[0]!r}: choose of {', '.join(MEASURE)}, report")
    try:
        for part in wanted:
            if part == "report":
                continue
            if not options.add:
                record.forget(PARTS[part])
            MEASURE[part](1 if part in ONCE else options.runs)
    except (Failure, DemoError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        if not options.counts:
            report.write(record.read())
        shutil.rmtree(live.ASIDE, ignore_errors=True)
    return counts.verdict(_measured(wanted)) if options.counts else 0


def _measured(parts: Sequence[str]) -> list[Measured]:
    keys = {key for part in parts for key in PARTS.get(part, ())}
    figures = {each.key: each for each in FIGURES if each.key in keys}
    return [
        Measured(found.title, found.unit, run.value, run.limit if found.limit is None else found.limit)
        for run in record.read()
        if (found := figures.get(run.figure))
    ]


if __name__ == "__main__":
    sys.exit(main())
