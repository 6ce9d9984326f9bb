"""The report of `make test-backup` has what pytest printed."""

from tests.backup.report import page

LOG = """\
tests/backup/test_store.py::test_a_wrong_password_is_named PASSED        [ 25%]
tests/backup/test_store.py::test_a_killed_backup_leaves_a_repository_that_works[data] FAILED [ 30%]
----- seconds -----
   12.3 s  backup of a small cluster into a store, the first one
"""


def test_each_test_is_a_row_with_its_sentence():
    """And its parameter, its result, and the seconds of the cluster."""
    text = page(LOG)
    assert "| a wrong password is named | At once, and nothing is written. | passed |" in text
    assert "| a killed backup leaves a repository that works [data] | Wherever it was killed" in text
    assert text.count("| failed |") == 1
    assert "| backup of a small cluster into a store, the first one | 12.3 s |" in text
