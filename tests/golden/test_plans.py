"""Mount plans, written down as a person reads them. `make golden` rewrites them."""

import os
from pathlib import Path

import pytest

from tests.golden.cases import PLANS, planned

FOLDER = Path(__file__).parent / "plans"


@pytest.mark.parametrize("case", PLANS)
def test_the_plan_is_the_one_written_down(case):
    """Login's plan and the NodeSet's are, line by line, those of the file."""
    file = FOLDER / f"{case}.txt"
    if os.environ.get("GOLDEN") == "write":
        FOLDER.mkdir(exist_ok=True)
        file.write_text(planned(case))
    assert planned(case) == file.read_text()


def test_no_plan_is_left_over():
    """Every file belongs to a case."""
    assert {path.stem for path in FOLDER.iterdir()} == set(PLANS)
