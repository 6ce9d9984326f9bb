"""Compares the cost of the jail at two commits of this tree.

It puts the reports of `bench_jail.py` of both commits, made alternately on one machine, into one table. `beside.py --out PAGE
COMMIT=REPORT,REPORT… COMMIT=REPORT,REPORT…`
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

_KINDS = ("`srun true` in a running job", "`srun true`, a job of its own", "64 tasks in one step")
_DIFFERENCE = "median of the differences of neighbours"


def differences(report: str) -> Iterator[tuple[float, float]]:
    """Return for each kind of step the median without the jail, and the median of the jail's additional time, in ms."""
    rows = re.findall(r"^\| (.*?) \| \d+ \| (-?[0-9.]+) \|", report, re.MULTILINE)
    plain = {name.removesuffix(", plain"): float(value) for name, value in rows if name.endswith(", plain")}
    added = [float(value) for name, value in rows if name == _DIFFERENCE]
    for kind, more in zip(_KINDS, added, strict=True):
        yield plain[kind], more


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("sides", nargs=2)
    said = parser.parse_args()
    lines = [
        "# What the jail costs, before and after",
        "",
        "Written by `spank/bench/beside.py` from reports of `make bench-jail` that two commits made in turns on one machine.",
        "Of each run: the median of a plain step, and the median of what the jail adds to its neighbour, in ms.",
        "",
        "| step | commit | plain, each run | the jail adds, each run | mean of what it adds, of a plain step |",
        "|---|---|---|---|---|",
    ]
    for place, kind in enumerate(_KINDS):
        for side in said.sides:
            commit, _, reports = side.partition("=")
            runs = [list(differences(Path(each).read_text()))[place] for each in reports.split(",")]
            share = sum(more for _, more in runs) / sum(plain for plain, _ in runs)
            plains, more = ("; ".join(f"{run[column]:.2f}" for run in runs) for column in (0, 1))
            lines.append(f"| {kind} | {commit} | {plains} | {more} | {share:.1%} |")
    said.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
