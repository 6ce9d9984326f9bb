"""`make chaos`: every fault under live jobs, some times each, on the running cluster, and what came of the jobs in docs/reliability.md.

What `kubectl get nodeset,slurmcluster -o wide` showed during the last repeat of each case goes to docs/reports/faults.md.

python3 -m tests.faults [--repeats 3] [--slow 1] [--only "slurmctld killed"] [--minutes 60]
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache

from local import demo
from local.demo import CLUSTER, NAMESPACE, local_target
from local.report import commit
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, Timings
from tests.faults.case import Case, Result, Stage, play
from tests.faults.cases import CASES
from tests.faults.crowd import crowd_of
from tests.faults.judge import Verdict

REPORT = demo.ROOT / "docs" / "reliability.md"
READ = demo.ROOT / "docs" / "reports" / "faults.md"
USER = "chaos"


def main() -> int:
    """Play the cases and write the report; the exit code is 0 when nothing was lost, run twice or said wrongly."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.faults", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--slow", type=int, default=1000, help="repeat no oftener the cases that take over half a minute"
    )
    parser.add_argument("--minutes", type=float, default=120, help="begin no case after so long")
    parser.add_argument(
        "--only", action="append", metavar="CASE", help="a part of its name; other lines stay as they are"
    )
    said = parser.parse_args()
    chosen = [case for case in CASES if not said.only or any(part in case.name for part in said.only)]
    target = local_target()
    lab = Lab(target, NAMESPACE, CLUSTER, Timings())
    make_user(lab, USER)
    until = time.monotonic() + 60 * said.minutes
    results: list[Result] = []
    with crowd_of(lab, USER, f"/home/{USER}/ledger") as crowd:
        stage = Stage(lab, crowd)
        with stage.reading():
            for number, case in ((number, case) for number in range(said.repeats) for case in chosen):
                if time.monotonic() < until and not (case.is_slow and number >= said.slow):
                    results.append(attempt(stage, case))
                    write(results)
                    write_log(results, stage.log.headers)
    return 1 if any(each.wrong for each in results) else 0


def attempt(stage: Stage, case: Case) -> Result:
    """Play a case; one that does not come to its end is a result too."""
    since = len(stage.log.lines)
    try:
        result = play(stage, case)
    except (AssertionError, demo.DemoError) as error:
        result = Result(case.name, Verdict(), "", 0.0, [str(error)], stage.log.text(since))
        print(error, file=sys.stderr)
    unsaved = f", {len(result.verdict.unsaved)} not saved" if result.verdict.unsaved else ""
    told = (
        "; ".join(result.wrong) or f"{result.verdict.jobs} jobs, none lost{unsaved}, back after {result.seconds:.1f} s"
    )
    print(f"{datetime.now(UTC):%H:%M:%S} {case.name}: {told.splitlines()[0]}", flush=True)
    return result


def write(results: Iterable[Result]) -> None:
    """The page's table: new lines for what was played, the former ones for what was not."""
    page = REPORT.read_text()
    head, _, rest = page.partition(BEGIN)
    former, _, tail = rest.partition(END)
    rows = {
        case.name: next((line for line in former.splitlines() if line.startswith(f"| {case.name} |")), "")
        for case in CASES
    }
    for name in {each.case for each in results}:
        rows[name] = row(name, [each for each in results if each.case == name])
    table = "".join(f"{line}\n" for line in (*TABLE, *filter(None, rows.values())))
    REPORT.write_text(f"{head}{BEGIN}\n{table}{END}{tail}")


def write_log(results: Iterable[Result], headers: Iterable[str]) -> None:
    """The page of what was to be read: new blocks for what was played, the former ones for what was not."""
    former = READ.read_text().split("\n## ")[1:] if READ.exists() else []
    blocks = {block.partition("\n")[0]: block.rstrip() for block in former}
    for each in results:
        blocks[each.case] = f"{each.case}\n\n{_run()}\n\n```\n{each.log}```"
    titles = "".join(f"{'':9}{header}\n" for header in headers)
    text = "".join(f"\n## {blocks[case.name]}\n" for case in CASES if case.name in blocks)
    READ.write_text(f"{HEAD}\n```\n{titles}```\n{text}")


HEAD = """# What was to be read while things broke

Written by `make chaos`: the lines that `kubectl get nodeset,slurmcluster -o wide` showed during the last repeat of each case, whenever one
changed, with seconds since the case began; lines with # say what was done. [What became of the jobs](../reliability.md).
"""
BEGIN, END = "<!-- written by make chaos -->", "<!-- end -->"
COLUMNS = (
    "case", "repeats", "jobs", "lost", "run twice", "not saved", "repeated by Slurm's rule",
    "back after, median (longest)", "what a condition said", "run",
)  # fmt: skip
TABLE = (f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|")


def row(name: str, results: list[Result]) -> str:
    """The line of one case."""
    whole = [each for each in results if each.verdict.jobs]
    counts = [sum(numbers) for numbers in zip(*map(_counts, whole), strict=True)] or [0] * 5
    seconds = [each.seconds for each in whole]
    back = f"{statistics.median(seconds):.1f} s ({max(seconds):.1f} s)" if seconds else "–"
    said = next((each.said for each in whole if each.said), "–").replace("|", "\\|")
    failed = len(results) - len(whole)
    repeats = f"{len(results)}{f', {failed} not to the end' if failed else ''}"
    return " | ".join(["| " + name, repeats, *map(str, counts), back, said, f"{_run()} |"])


@cache
def _run() -> str:
    """Of which day, commit and machine a line is: as they were when the first one was written."""
    return f"{datetime.now(UTC):%Y-%m-%d}, commit {commit()}, {os.cpu_count()} cores"


def _counts(result: Result) -> Iterator[int]:
    told = result.verdict
    yield from (told.jobs, len(told.lost), len(told.twice), len(told.unsaved), told.requeued)


if __name__ == "__main__":
    sys.exit(main())
