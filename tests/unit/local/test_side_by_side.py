"""Commands that run at the same time: what they print stays apart, and one that fails is not lost."""

import subprocess
import sys
import time

from local.paths import REPOSITORY
from local.side_by_side import split

COMMAND = [sys.executable, "-m", "local.side_by_side"]


def played(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*COMMAND, *words], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60)


def test_commands_stand_between_double_dashes() -> None:
    """None is empty."""
    assert split(["a", "b", "--", "c"]) == [["a", "b"], ["c"]]
    assert split(["--", "a"]) == [["a"]]


def test_they_run_at_the_same_time_and_each_prints_whole() -> None:
    """Two that sleep a second end within less than two."""
    script = "for i in 1 2 3 4; do echo {0}; sleep 0.25; done"
    began = time.monotonic()
    done = played("sh", "-c", script.format("a"), "--", "sh", "-c", script.format("b"))
    assert time.monotonic() - began < 1.9
    assert (done.returncode, done.stdout.split()) == (0, ["a"] * 4 + ["b"] * 4)


def test_one_that_fails_makes_all_fail_and_the_other_runs_to_its_end() -> None:
    """Whichever it is."""
    for words in (
        ("false", "--", "sh", "-c", "sleep 0.3; echo done"),
        ("sh", "-c", "sleep 0.3; echo done", "--", "false"),
    ):
        done = played(*words)
        assert (done.returncode, done.stdout) == (1, "done\n")
        assert "false: ended with 1" in done.stderr
