"""The pipe by which slurmstepd and scripts reach the worker's log, with a shell in slurmd's place."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from soperator.agents.checks import log

SCRIPT = Path(__file__).parents[3] / "images" / "slurm" / "logs"
T = TypeVar("T")
TIME = "[2026-11-22T09:31:57.123]"


class Pod:
    """A shell that relays, and what came out of it."""

    def __init__(self, root: Path) -> None:
        self.pipe, self.out = root / "log" / "slurm", root / "out"
        command = ["bash", "-euo", "pipefail", "-c", f". {SCRIPT}; relay_logs {self.pipe}; echo up; read -r"]
        with self.out.open("wb") as out:
            self.shell = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, start_new_session=True
            )
        assert self.shell.stdout
        assert self.shell.stdout.readline() == b"up\n"

    def write(self, *lines: str) -> None:
        """As a daemon does: in one write for each line."""
        with self.pipe.open("wb", buffering=0) as pipe:
            for line in lines:
                pipe.write(f"{line}\n".encode())

    def said(self, last: str) -> list[str]:
        """What came out, up to a line that has to come."""
        assert until(lambda: lines if (lines := self.out.read_text().splitlines())[-1:] == [last] else []), (
            self.out.read_text()
        )
        return self.out.read_text().splitlines()

    def readers(self) -> list[int]:
        """The processes that read the pipe."""
        found = subprocess.run(["pgrep", "-g", str(self.shell.pid), "-x", "mawk"], capture_output=True, check=False)
        return [int(each) for each in found.stdout.split()]


def until(ask: Callable[[], T]) -> T:
    end = time.monotonic() + 20
    while not (answer := ask()) and time.monotonic() < end:
        time.sleep(0.01)
    return answer


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    made = Pod(tmp_path)
    try:
        yield made
    finally:
        os.killpg(made.shell.pid, signal.SIGKILL)
        made.shell.communicate()


def test_what_slurmstepd_says_comes_out_with_its_step_and_what_slurmd_says_does_not(pod: Pod) -> None:
    """slurmd's lines are on its own standard error already; a line that goes on with another follows it."""
    pod.write(
        f"{TIME} launch task StepId=42.0 request from UID 1000",
        f"{TIME} error: prolog failed: rc:1 output:one",
        "two",
        f"{TIME} [42.batch] error: it failed",
        "for a reason",
        f"{TIME} [42.0+1] done with step",
        "prolog: [43] cleared /scratch",
    )
    assert pod.said("prolog: [43] cleared /scratch") == [
        "slurmstepd: [42.batch] error: it failed",
        "for a reason",
        "slurmstepd: [42.0+1] done with step",
        "prolog: [43] cleared /scratch",
    ]


def test_a_reader_that_is_killed_is_back_and_no_line_waits_for_it_in_vain(pod: Pod) -> None:
    """Nobody who writes meanwhile waits or gets a signal: the shell holds the pipe open."""
    pod.write("prolog: first")
    pod.said("prolog: first")
    (killed,) = pod.readers()
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in pod.readers())  # what it takes with it, it had taken out of the pipe
    pod.write(*[f"prolog: {number}" for number in range(100)])
    said = [line for line in pod.said("prolog: 99") if line.startswith("prolog")]  # the shell tells of the reader's end
    assert said == ["prolog: first", *[f"prolog: {number}" for number in range(100)]]


def test_a_check_says_who_it_is_and_which_job_it_was_for(pod: Pod, capsys: pytest.CaptureFixture[str]) -> None:
    """By what slurmd calls the script; a line is a line whatever is in it."""
    log.write("gpu-xid is failing: Xid 79\n\nand more\n", {}, pod.pipe)
    log.write("job 7 was put back", {"SLURM_SCRIPT_CONTEXT": "prolog_slurmd", "SLURM_JOB_ID": "7"}, pod.pipe)
    said = ["checks: gpu-xid is failing: Xid 79", "checks: and more", "prolog: [7] job 7 was put back"]
    assert pod.said(said[-1]) == said
    assert capsys.readouterr().err == ""


def test_without_a_pipe_a_check_says_it_where_slurmd_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That is so outside of a worker, where nobody reads the pipe, and where it is full: it never waits."""
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "unread")
    for name in ("missing", "file", "unread"):
        log.write("all pass", {}, tmp_path / name)
    full = os.open(tmp_path / "unread", os.O_RDWR | os.O_NONBLOCK)
    try:
        while True:
            os.write(full, b"x" * 4096)
    except BlockingIOError:
        log.write("all pass", {}, tmp_path / "unread")
    os.close(full)
    assert capsys.readouterr().err.splitlines() == ["checks: all pass"] * 4
    assert (tmp_path / "file").read_text() == ""
