"""`make chaos`: every fault under live jobs, some times each, on the running cluster, and what came of the jobs in docs/reliability.md.

python3 -m tests.faults [--repeats 3] [--only "slurmctld killed"] [--minutes 60]
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from local import binaries, demo
from local.demo import CLUSTER, NAMESPACE, STATE, Target
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, Timings
from tests.faults.case import Case, Result, Stage, play
from tests.faults.cases import CASES
from tests.faults.crowd import crowd_of
from tests.faults.judge import Verdict

REPORT = demo.ROOT / "docs" / "reliability.md"
USER = "chaos"


def main() -> int:
    """Play the cases and write the report; the exit code is 0 when nothing was lost, run twice or said wrongly."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.faults", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=120, help="begin no case after so long")
    parser.add_argument(
        "--only", action="append", metavar="CASE", help="a part of its name; other lines stay as they are"
    )
    said = parser.parse_args()
    chosen = [case for case in CASES if not said.only or any(part in case.name for part in said.only)]
    target = Target(str(STATE / "kubeconfig"), f"{binaries.folder()}:{os.environ['PATH']}", is_local=True)
    lab = Lab(target, NAMESPACE, CLUSTER, Timings())
    make_user(lab, USER)
    until = time.monotonic() + 60 * said.minutes
    results: list[Result] = []
    with crowd_of(lab, USER, f"/home/{USER}/ledger") as crowd:
        stage = Stage(lab, crowd)
        for case in (case for _ in range(said.repeats) for case in chosen):
            if time.monotonic() < until:
                results.append(attempt(stage, case))
                write(results)
    return 1 if any(each.wrong for each in results) else 0


def attempt(stage: Stage, case: Case) -> Result:
    """Play a case; one that does not come to its end is a result too."""
    try:
        result = play(stage, case)
    except (AssertionError, demo.DemoError) as error:
        result = Result(case.name, Verdict(), "", 0.0, [str(error)])
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
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=demo.ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    when = f"{datetime.now(UTC):%Y-%m-%d}, {commit}, {os.cpu_count()} cores"
    return " | ".join(["| " + name, repeats, *map(str, counts), back, said, when + " |"])


def _counts(result: Result) -> Iterator[int]:
    told = result.verdict
    yield from (told.jobs, len(told.lost), len(told.twice), len(told.unsaved), told.requeued)


if __name__ == "__main__":
    sys.exit(main())
