"""Waits of tests on real clusters: what comes late passes and is reported, and what does not come at all is red (docs/decisions/0096).

A test states the deadline that it expects. On a loaded machine an answer may come after it, which says nothing of the product's truth; a stranded job
or a lost wake-up never comes. So a wait goes on for `FACTOR` times its deadline, and only the second is a failure. Nothing is played twice.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from local.paths import REPOSITORY

T = TypeVar("T")

FACTOR = 4.0
#: Who is stuck is stuck for every test: after so many waits that ended with nothing the others end at their deadline.
STUCK_MOST = 3
#: One line for each answer that came late, of the last run.
REPORT = Path(os.environ.get("SOPERATOR_LATE") or REPOSITORY / "build/late.txt")


@dataclass
class Patience:
    """How long waits go on in this run, and what came late."""

    report: Path = REPORT
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    stuck: int = field(default=0)

    def until(
        self, what: str, ask: Callable[[], T], seconds: float, seen: Callable[[], str] = str, tick: float = 0.2
    ) -> T:
        """Ask until the answer is true, and return it; raise AssertionError with what was seen where it never is."""
        began = self.clock()
        while not (answer := ask()):
            longest = seconds if self.stuck >= STUCK_MOST else seconds * FACTOR
            if (took := self.clock() - began) > longest:
                self.stuck += 1
                said = f"not within {seconds:.0f} s, nor within {took:.0f} s: {what}"
                raise AssertionError(f"{said}; the last answer was {answer!r}\n{seen()}")
            self.sleep(tick)
        if (took := self.clock() - began) > seconds + 2 * tick:
            self.tell(f"{took:.1f} s instead of {seconds:.0f} s: {what}")
        return answer

    def tell(self, line: str) -> None:
        """Write down what came late, with the test that waited for it."""
        test = os.environ.get("PYTEST_CURRENT_TEST", "no test").partition(" (")[0]
        self.report.parent.mkdir(parents=True, exist_ok=True)
        with self.report.open("a") as file:
            file.write(f"{test}: {line}\n")


PATIENCE = Patience()
until = PATIENCE.until
