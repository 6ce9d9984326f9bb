"""What all tests share: the log looks as in the operator, and a property is tried on the same examples each time.

What passed once then fails only for a change. `SOPERATOR_SEARCH=yes pytest tests/unit` looks for examples that nobody has tried yet.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

from soperator.runtime import log
from tests.examples import examples
from tests.late import REPORT

log.configure()
settings.register_profile(
    "steady",
    deadline=None,
    max_examples=examples(100),
    derandomize="SOPERATOR_SEARCH" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin with nothing that came late; a process of xdist's adds to what the first one began."""
    if not hasattr(session.config, "workerinput"):
        REPORT.unlink(missing_ok=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what came later than its test expected (docs/decisions/0096)."""
    if REPORT.exists():
        terminalreporter.section(f"later than expected: {REPORT}")
        terminalreporter.write_line(REPORT.read_text())
