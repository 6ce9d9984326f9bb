"""Runs the attack tests in every kind of pod with each authentication type, and writes docs/reports/attack-suite.md (root, about 15 min).

The tests report their attempts and the successful ones (SPANK_ATTACKS of tests/test_attacks.py); this program formats them. Its exit code
is that of pytest, and it writes the report even if an attempt succeeded.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SPANK = Path(__file__).parents[1]
REPOSITORY = SPANK.parent

#: What the tests count, and how the report calls it.
WHATS = {
    "paths": "paths that Slurm opens, writes or enters",
    "threads": "numbers of slurmstepd's threads",
    "options": "values of options",
}
PODS = {"userns-move": "user namespace", "root-pivot": "no user namespace"}
USERS = {"root": "root of the jail", "alice": "user"}


def play(results: Path) -> int:
    """Run the tests; return pytest's exit code."""
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "pytest", "tests/test_attacks.py"]
    return subprocess.run(
        [*words, "-p", "no:cacheprovider"],
        cwd=SPANK,
        check=False,
        env={**os.environ, "SPANK_TEST_ALL": "1", "SPANK_ATTACKS": str(results)},
    ).returncode


def cell(found: list[dict[str, Any]], what: str, user: str) -> str:
    """Return `successful of made` attempts for one test and user."""
    each = [line for line in found if line["what"] == what and line["user"] == user]
    if not each:
        return "not played"
    return ", ".join(f"{len(line['through'])} of {line['made']}" for line in each)


def table(lines: list[dict[str, Any]], is_jailed: bool) -> list[str]:
    """Return one row for each pod and authentication type, with a column for each user and kind of attempt."""
    whats = [what for what in WHATS if is_jailed or what != "options"]
    columns = [(what, user) for what in whats for user in USERS]
    head = ["pod", "authentication", *(f"{WHATS[what]}: {USERS[user]}" for what, user in columns)]
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for pod, pod_name in PODS.items():
        for auth in ("slurm", "munge"):
            found = [each for each in lines if (each["pod"], each["auth"], each["jail"]) == (pod, auth, is_jailed)]
            rows.append(f"| {' | '.join([pod_name, auth, *(cell(found, what, user) for what, user in columns)])} |")
    return rows


def page(lines: list[dict[str, Any]], code: int, of: str) -> str:
    """Return the whole report."""
    through = [
        f"- {each['pod']}, {each['auth']}, {each['user']}: {name}"
        for each in lines
        if each["jail"]
        for name in each["through"]
    ]
    missed = [f"- {each['pod']}, {each['auth']}, {each['user']}: {name}" for each in lines for name in each["missed"]]
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    parts = [
        "# The attacker's suite in every kind of pod",
        "",
        f"Written by `make -C spank attack-suite` on {when} UTC, commit {of}: {os.cpu_count()} cores, Linux {os.uname().release}.",
        f"pytest ended with {code}. A cell says how many attempts got through, of how many. A real Slurm 24.11;",
        "`spank/tests/test_attacks.py` says what is tried. A pod with a user namespace forbids `pivot_root`, the one without allows it.",
        "",
        "## In the jail",
        "",
        *table(lines, is_jailed=True),
        "",
        *(through or ["Nothing got through."]),
        "",
        "## The same without a jail",
        "",
        "The control: an attempt that fails here too would prove nothing. The kernel itself holds the others;",
        "guesses of a thread's number end with the first that is right.",
        "",
        *table(lines, is_jailed=False),
        "",
        *(missed or ["Every attempt that has to get through here did."]),
    ]
    return "\n".join(parts) + "\n"


def commit() -> str:
    """Return the commit of the tree in the form of all reports."""
    words = [sys.executable, "-c", "from local.report import commit; print(commit())"]
    return subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Run the tests, write the report, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs/reports/attack-suite.md")
    said = parser.parse_args()
    of = commit()  # the tree may change meanwhile
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        code = play(results)
        lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    said.out.write_text(page(lines, code, of))
    print(f"{said.out}: pytest ended with {code}")
    return code


if __name__ == "__main__":
    sys.exit(main())
