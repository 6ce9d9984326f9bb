"""The record of what was done and of what was to be read."""

from tests.faults.log import WIDE, Log, printed

TABLE = {
    "columnDefinitions": [{"name": "Name"}, {"name": "Cluster"}, {"name": "Ready"}, {"name": "Age"}, {"name": "Why"}],
    "rows": [{"cells": ["fault", "demo", 3, "5m", "scale-in: fault-2 drains"]}],
}


def test_a_line_has_the_cells_that_change_under_their_header():
    """The cluster's name and the age are left out."""
    assert printed(TABLE) == ("NAME  READY  WHY", "fault  3      scale-in: fault-2 drains")


def test_a_cell_that_is_not_there_yet_stays_empty():
    """As kubectl shows it."""
    row = {"rows": [{"cells": ["fault", "demo", None, "5m", None]}]}
    assert printed(TABLE | row)[1].split() == ["fault"]


def test_a_report_begins_with_its_own_first_line():
    """Whatever was noted before; a long line is cut."""
    log = Log()
    log.note("# an earlier case")
    log.note("# the case")
    log.note("x" * 2 * WIDE)
    first, second = log.text(since=1).splitlines()
    assert first == "    0.0  # the case"
    assert second.endswith("x…")
    assert len(second.split()[1]) == WIDE + 1
