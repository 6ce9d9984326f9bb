"""What the log says of a crash, and what it doesn't."""

import pytest
import structlog


def test_a_crash_is_told_without_the_values_that_it_held(capsys: pytest.CaptureFixture[str]) -> None:
    """The traceback names the line; a key that a variable held is not in the log, and no colour where no terminal is."""

    def crash(key: str) -> None:
        raise ValueError(f"a key of {len(key)} characters")

    try:
        crash("never-in-a-log")
    except ValueError as error:
        structlog.get_logger().error("the pass crashed", exc_info=error, key="slurm/demo")
    said = capsys.readouterr().out
    assert "the pass crashed" in said
    assert "key=slurm/demo" in said
    assert "ValueError: a key of 14 characters" in said
    assert "in crash" in said
    assert "never-in-a-log" not in said.replace('crash("never-in-a-log")', "")
    assert "\x1b" not in said
