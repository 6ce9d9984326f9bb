"""`python -m tests.backup.report LOG...`: writes docs/reports/backup.md from what pytest -v printed; `make test-backup` ends with it."""

import ast
import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from local.paths import REPOSITORY
from local.report import commit

PAGE = REPOSITORY / "docs/reports/backup.md"
_RESULT = re.compile(r"^(tests/\S+\.py)::(\w+)(\[\S+\])? (PASSED|FAILED|ERROR)", re.MULTILINE)
_SECONDS = re.compile(r"^ *([0-9.]+) s  (.*)$", re.MULTILINE)


def results(log: str) -> Iterator[str]:
    """Yield a row of the table for each test: its name, its docstring and how it ended; of a test that was run again, the last time."""
    ended = {(file, name, which): result for file, name, which, result in _RESULT.findall(log)}
    for (file, name, which), result in ended.items():
        words = f"{name.removeprefix('test_').replace('_', ' ')} {which}".strip()
        yield f"| {words} | {_docstring(REPOSITORY / file, name)} | {result.lower()} |"


def _docstring(file: Path, name: str) -> str:
    found = (each for each in ast.walk(ast.parse(file.read_text())) if isinstance(each, ast.FunctionDef))
    return " ".join((ast.get_docstring(next(each for each in found if each.name == name)) or "").split())


def page(log: str) -> str:
    """Return the report."""
    rows = list(results(log))
    where = (
        " and on the local cluster (`tests/cluster/test_backup.py`)" if "tests/cluster/test_backup.py::" in log else ""
    )
    times = [
        f"| {text} | {seconds} s |" for seconds, text in _SECONDS.findall(log) if "backup" in text or "restore" in text
    ]
    return "\n".join(
        [
            "# Backups, and what goes wrong with them",
            "",
            f"Written by `make test-backup`, {datetime.now(UTC):%Y-%m-%d}, commit {commit()}, {os.cpu_count()} cores: restic of the image into",
            f"versitygw, without a cluster (`tests/backup`){where}.",
            "",
            "| test | what holds while it passes | result |",
            "|---|---|---|",
            *rows,
            "",
            *(["| on the local cluster | |", "|---|---|", *times, ""] if times else []),
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page("\n".join(Path(each).read_text() for each in sys.argv[1:])))
