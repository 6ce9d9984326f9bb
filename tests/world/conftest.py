"""Time in these tests is the loop's own, and goes by at once where nothing is left to do."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder runs in such a loop, but for those that are about the time of day, which goes by as it does."""
    for each in items:
        if "tests/world" in str(each.path) and not each.get_closest_marker("time_of_day"):
            each.add_marker(pytest.mark.looptime)
