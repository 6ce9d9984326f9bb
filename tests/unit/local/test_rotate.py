"""Every part of what is too long for each run has its turn, and one that cannot run says so."""

import re
import sys
from pathlib import Path

import pytest

from local import rotate
from local.rotate import PARTS, Part, chosen, run, slices

REPOSITORY = Path(__file__).parents[3]


def test_within_as_many_commits_as_there_are_parts_each_has_its_turn() -> None:
    """And the next round takes the next slice."""
    turns = [chosen(number) for number in range(1000, 1000 + len(PARTS))]
    assert {part.name for part, _ in turns} == {each.name for each in PARTS}
    assert chosen(1000 + len(PARTS)) == (turns[0][0], turns[0][1] + 1)


def test_slices_come_to_every_item() -> None:
    """Also where they do not divide them evenly."""
    items = [str(number) for number in range(26)]
    assert {each for turn in range(7) for each in slices(items, 4, turn)} == set(items)
    assert slices(items, 4, 6) == ["24", "25", "0", "1"]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_each_part_names_what_is_there(part: Part) -> None:
    """Targets of the Makefile, modules and files of tests, in each of its turns."""
    makefile = (REPOSITORY / "Makefile").read_text()
    for turn in range(12):
        for command in part.commands(turn):
            for word in command:
                if word.startswith("tests/"):
                    assert (REPOSITORY / word).exists(), command
            if command[0] == "make":
                assert re.search(rf"^{command[1]}:", makefile, re.MULTILINE), command


def test_a_part_that_cannot_run_is_left_out_with_a_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is red for want of a cluster."""
    monkeypatch.setattr(rotate, "STATE", tmp_path)
    assert run(Part("it", lambda _: [["false"]]), 0) == 0
    said = capsys.readouterr()
    assert "the rotating part it is skipped: no local cluster runs" in said.out + said.err


@pytest.mark.parametrize(
    ("command", "code"), [(["true"], 0), (["false"], 1), ([sys.executable, "-c", "import time; time.sleep(60)"], 1)]
)
def test_a_part_is_red_when_a_command_fails_or_does_not_end(command: list[str], code: int) -> None:
    """What it has to say is above."""
    assert run(Part("it", lambda _: [command], needs_cluster=False, needs_root=False), 0, bound=1.5) == code
