"""What `make mutants` takes out is still in its file: else the next run is red for a reason that nobody can see in the change that made it so."""

import pytest

from local.paths import REPOSITORY
from tests.mutants.__main__ import MUTANTS
from tests.mutants.mutant import Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=[f"{each.path}-{number}" for number, each in enumerate(MUTANTS)])
def test_each_condition_stands_once_in_its_file(mutant: Mutant) -> None:
    """And the files of its tests are there."""
    assert (REPOSITORY / mutant.path).read_text().count(mutant.text) == 1, mutant.text
    for test in mutant.tests:
        assert (REPOSITORY / test.partition("::")[0]).exists(), test
