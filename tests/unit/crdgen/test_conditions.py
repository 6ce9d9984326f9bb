"""The page of conditions: what it has is in the code; that it lacks nothing is seen in tests/world."""

import re

from local.paths import REPOSITORY
from soperator.crdgen.conditions import CONDITIONS


def test_every_condition_and_reason_of_the_page_is_one_of_the_code() -> None:
    """A word that nothing writes any more is told."""
    files = [path for path in REPOSITORY.glob("src/soperator/**/*.py") if "crdgen" not in path.parts]
    words = {word for path in files for word in re.findall(r'"([A-Za-z]+)"', path.read_text())}
    named = {each.type for each in CONDITIONS} | {reason for each in CONDITIONS for reason in each.reasons}
    assert named <= words


def test_every_reason_says_what_it_means_and_what_to_do() -> None:
    """No cell of the page is empty, and none would break its table."""
    cells = [cell for each in CONDITIONS for both in each.reasons.values() for cell in both]
    assert all(cell and "|" not in cell and "\n" not in cell for cell in cells)
