"""What `soperator import` makes of examples of other systems, written down and reviewed like code. `make golden` rewrites it.

Each folder of `imports` has the name of the system and of the example; `given` holds the files, which were written for these tests.
"""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from soperator.cli.__main__ import app

HERE = Path(__file__).parent / "imports"
CASES = sorted(path.name for path in HERE.iterdir() if path.is_dir())
RUN = CliRunner()


def imported(case: str, report: Path) -> tuple[str, str]:
    """The objects and the report of a case; slurm finds the files beside slurm.conf by itself."""
    given = HERE / case / "given"
    system = case.partition("-")[0]
    files = [given] if system == "slurm" else sorted(given.iterdir())
    words = [word for file in files for word in ("-f", str(file))]
    done = RUN.invoke(app, ["import", "--from", system, *words, "--report", str(report)])
    assert done.exit_code == 3, done.output
    return done.stdout, report.read_text().replace(f"{given}/", "")


@pytest.mark.parametrize("case", CASES)
def test_the_import_is_the_one_written_down(case, tmp_path):
    """The objects and every line of the report are equal to the files."""
    objects, report = imported(case, tmp_path / "report")
    if os.environ.get("GOLDEN") == "write":
        (HERE / case / "objects.yaml").write_text(objects)
        (HERE / case / "report.txt").write_text(report)
    assert objects == (HERE / case / "objects.yaml").read_text()
    assert report == (HERE / case / "report.txt").read_text()


@pytest.mark.parametrize("case", CASES)
def test_lint_accepts_what_is_imported(case, tmp_path):
    """The objects have no problem, and render."""
    file = tmp_path / "objects.yaml"
    file.write_text(imported(case, tmp_path / "report")[0])
    done = RUN.invoke(app, ["lint", str(file)])
    assert (done.exit_code, "no problems" in done.stdout) == (0, True), done.output
    assert RUN.invoke(app, ["render", str(file)]).exit_code == 0
