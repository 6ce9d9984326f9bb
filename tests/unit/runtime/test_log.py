"""What the log says of what happened, and of a crash, and what it doesn't."""

import json

import pytest
import structlog


def test_a_line_is_an_object_that_begins_with_what_a_person_looks_for(capsys: pytest.CaptureFixture[str]) -> None:
    """When, how grave, what; then what it is about."""
    structlog.get_logger().info('what\nwas "done"', key="slurm/demo", again=None)
    (line,) = capsys.readouterr().out.splitlines()
    said = json.loads(line)
    assert list(said) == ["time", "level", "message", "key", "again"]
    assert (said["level"], said["message"], said["key"]) == ("info", 'what\nwas "done"', "slurm/demo")


def test_a_crash_is_told_without_the_values_that_it_held(capsys: pytest.CaptureFixture[str]) -> None:
    """The traceback names the line; a key that a variable held is not in the log, and no colour where no terminal is."""

    def crash(key: str) -> None:
        raise ValueError(f"a key of {len(key)} characters")

    try:
        crash("never-in-a-log")
    except ValueError as error:
        structlog.get_logger().error("the pass crashed", exc_info=error, key="slurm/demo")
    (said,) = capsys.readouterr().out.splitlines()
    assert json.loads(said)["message"] == "the pass crashed"
    assert json.loads(said)["key"] == "slurm/demo"
    assert "ValueError: a key of 14 characters" in said
    assert "in crash" in said
    assert "never-in-a-log" not in said.replace('crash(\\"never-in-a-log\\")', "")
    assert "\\u001b" not in said
