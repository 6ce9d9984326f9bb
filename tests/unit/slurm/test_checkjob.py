"""The batch script of a deep check: run by a real shell, with an scontrol that keeps what it is told."""

import os
import subprocess
from pathlib import Path

import pytest

from soperator.slurm import check_job


def run(tmp_path: Path, text: str) -> tuple[int, tuple[int, str] | None]:
    """The exit code of the batch script around a check, and what it wrote into its job."""
    kept, scontrol = tmp_path / "comment", tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/sh\nprintf %s "${{3#admincomment=}}" >{kept}\n')
    scontrol.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "TMPDIR": str(tmp_path)}
    batch = tmp_path / "batch"
    batch.write_text(check_job.script("disk", text))
    done = subprocess.run(["sh", str(batch)], env=env, check=False, timeout=60, capture_output=True)
    assert not list(tmp_path.glob("tmp.*"))
    return done.returncode, check_job.said_of(kept.read_text())


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("#!/bin/sh\nexit 0", 0, ""),
        ("#!/bin/sh\necho a; echo 'it is \"slow\", $HOME `x`' >&2; exit 1", 1, 'a\nit is "slow", $HOME `x`'),
        ("#!/bin/sh\nkill -9 $$", 137, None),
        ("#!/no/such/shell\n", 127, None),
        ("#!/bin/sh\nsoperator-end\nprintf 'x\\303\\244\\033y'\nexit 3", 3, None),
    ],
)
def test_the_exit_code_and_the_last_words_reach_the_job(tmp_path: Path, text: str, code: int, said: str | None) -> None:
    """Whatever they are: quotes, signals, an interpreter that is none, bytes that are no text."""
    ended, told = run(tmp_path, text)
    assert told is not None
    assert (ended, told[0]) == (code, code)
    assert said is None or told[1] == said
    assert told[1].isascii()


def test_of_very_much_output_the_end_is_kept(tmp_path: Path) -> None:
    """A check that prints megabytes does not fill slurmctld."""
    code, told = run(tmp_path, "#!/bin/sh\nyes | head -c 3000000\necho the end\nexit 1")
    assert code == 1
    assert told is not None
    assert told[1].endswith("y\nthe end")
    assert len(told[1]) <= check_job.SAID


def test_who_else_writes_a_comment_has_said_nothing() -> None:
    """A comment of an administrator's, or half of ours, is no result."""
    assert [check_job.said_of(each) for each in ("", "by hand", "soperator exit=", "soperator exit=x\n")] == [None] * 4
