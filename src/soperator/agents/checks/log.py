"""Writes the runner's log to the log of the worker's pod.

slurmd discards the output of a check, a prolog or an epilog unless it fails, so a pipe bypasses slurmd (images/slurm/logs). A line has Slurm's own
format: the program, and the job if the line is about one.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

PIPE = Path("/run/log/slurm")
#: A write up to this many bytes is never mixed with another's: pipe(7), PIPE_BUF.
_MOST = 4096
#: The program's name in the log, by slurmd's name for the script: slurm.conf(5), prolog and epilog scripts.
_CONTEXTS = {"prolog_slurmd": "prolog", "epilog_slurmd": "epilog"}


def write(text: str, environment: Mapping[str, str] = os.environ, pipe: Path = PIPE) -> None:
    """Write each line of `text` to the log, or to standard error if the pipe is missing or has no reader. Never blocks."""
    who = _CONTEXTS.get(environment.get("SLURM_SCRIPT_CONTEXT", ""), "checks")
    job = environment.get("SLURM_JOB_ID", "")
    for line in filter(None, map(str.strip, text.splitlines())):
        said = f"{who}: [{job}] {line}" if job else f"{who}: {line}"
        if not _is_written(said.encode()[: _MOST - 1] + b"\n", pipe):
            print(said, file=sys.stderr)


def _is_written(line: bytes, pipe: Path) -> bool:
    with suppress(OSError):
        if pipe.is_fifo():
            opened = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                return os.write(opened, line) == len(line)
            finally:
                os.close(opened)
    return False
