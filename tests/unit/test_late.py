"""A wait that comes to its end late passes and is reported; one that never does is red, and nothing is played twice."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.late import FACTOR, STUCK_MOST, Patience

REPOSITORY = Path(__file__).parents[2]


@dataclass
class Clock:
    """A time that goes by only while somebody sleeps."""

    now: float = 0.0
    asked: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        """Let it go by."""
        self.now += seconds

    def comes_at(self, moment: float) -> bool:
        """An answer that is true from a moment on."""
        self.asked.append(self.now)
        return self.now >= moment


def waits(tmp_path: Path) -> tuple[Patience, Clock]:
    clock = Clock()
    return Patience(tmp_path / "late.txt", lambda: clock.now, clock.sleep), clock


def test_an_answer_in_time_is_not_reported(tmp_path: Path) -> None:
    """Nothing is written."""
    patience, clock = waits(tmp_path)
    assert patience.until("the pod", lambda: clock.comes_at(9.0), 10.0)
    assert not patience.report.exists()


def test_an_answer_that_comes_late_passes_and_is_reported(tmp_path: Path) -> None:
    """With the test, how long it took and how long it was given."""
    patience, clock = waits(tmp_path)
    assert patience.until("the pod", lambda: clock.comes_at(30.0), 10.0)
    (line,) = patience.report.read_text().splitlines()
    assert line.startswith("tests/unit/test_late.py::test_an_answer_that_comes_late_passes_and_is_reported: 30.")
    assert line.endswith(" s instead of 10 s: the pod")


def test_an_answer_that_never_comes_is_red_with_what_was_seen(tmp_path: Path) -> None:
    """After a multiple of the deadline."""
    patience, clock = waits(tmp_path)
    with pytest.raises(AssertionError, match=r"not within 10 s, nor within 40 s: the pod; .*False\nthe events"):
        patience.until("the pod", lambda: clock.comes_at(1e9), 10.0, lambda: "the events")
    assert clock.now == pytest.approx(10.0 * FACTOR, abs=0.5)


def test_where_much_is_stuck_a_wait_ends_at_its_deadline(tmp_path: Path) -> None:
    """A cluster that hangs does not cost a run four times its time."""
    patience, clock = waits(tmp_path)
    for _ in range(STUCK_MOST):
        with pytest.raises(AssertionError):
            patience.until("the pod", lambda: False, 10.0)
    before = clock.now
    with pytest.raises(AssertionError, match="nor within 10 s"):
        patience.until("the pod", lambda: False, 10.0)
    assert clock.now - before < 11.0


MASKED = """
from tests.late import Patience

def test_a_falsehood_beside_a_wait_that_ran_out(tmp_path):
    try:
        Patience(tmp_path / "late.txt").until("a job", lambda: False, 0.05, tick=0.01)
    finally:
        with open({count!r}, "a") as file:
            file.write("played\\n")
        assert False, "job 12 was lost"
"""


def test_a_falsehood_beside_a_wait_that_ran_out_is_red_and_played_once(tmp_path: Path) -> None:
    """As pytest itself ends, with the options of this repository and those of `make test`."""
    count, test = tmp_path / "count", tmp_path / "test_masked.py"
    test.write_text(MASKED.format(count=str(count)))
    patient = next(each for each in (REPOSITORY / "Makefile").read_text().splitlines() if each.startswith("PATIENT"))
    options = patient.partition(":=")[2].split()
    command = [sys.executable, "-m", "pytest", "-c", str(REPOSITORY / "pyproject.toml"), *options, str(test)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    assert "job 12 was lost" in done.stdout
    assert count.read_text() == "played\n"
