"""What all tests share: the log looks as in the operator, and a property is tried on the same examples each time.

What passed once then fails only for a change. `SOPERATOR_SEARCH=yes pytest tests/unit` looks for examples that nobody has tried yet.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

from soperator.runtime import log

log.configure()
settings.register_profile(
    "steady",
    deadline=None,
    derandomize="SOPERATOR_SEARCH" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what was seen where a test was played once more (docs/decisions/0083)."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"played once more: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
