"""`python -m local.side_by_side COMMAND… -- COMMAND…`: runs commands at the same time, for tests that mostly wait.

The output of the first command is printed at once; the output of each other command is printed when it has ended. Each command runs to its
end even if another one fails, and the exit status is 1 if one of them failed. A signal that ends this program ends the commands too.
"""

import itertools
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import FrameType
from typing import IO

from local.progress import say


def split(words: Sequence[str]) -> list[list[str]]:
    """Return the commands between the `--`."""
    groups = itertools.groupby(words, lambda word: word == "--")
    return [list(group) for is_mark, group in groups if not is_mark]


@dataclass(frozen=True)
class Child:
    """A running command; `output` is None for the command whose output is printed at once."""

    command: Sequence[str]
    process: "subprocess.Popen[bytes]"
    output: IO[bytes] | None
    began: float

    def follow(self, lock: threading.Lock) -> None:
        """Wait for the end of the command, and print its output."""
        status = self.process.wait()
        with lock:
            if self.output is not None:
                self.output.seek(0)
                sys.stdout.write(self.output.read().decode(errors="replace"))
                sys.stdout.flush()
            ended = f"ended with {status}" if status else "passed"
            say(f"{shlex.join(self.command)[:100]}: {ended} after {time.monotonic() - self.began:.0f} s")


def run(commands: Sequence[Sequence[str]]) -> int:
    """Run the commands; return 1 if one of them failed."""
    children: list[Child] = []

    def end(number: int, _: FrameType | None) -> None:
        for each in children:
            if each.process.poll() is None:
                os.killpg(each.process.pid, number)

    with ExitStack() as files:
        for command in commands:
            output = files.enter_context(tempfile.TemporaryFile()) if children else None
            process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
            children.append(Child(command, process, output, time.monotonic()))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, end)
        lock = threading.Lock()
        followers = [threading.Thread(target=each.follow, args=(lock,)) for each in children]
        for each in followers:
            each.start()
        for each in followers:
            each.join()
    return 1 if any(each.process.returncode for each in children) else 0


if __name__ == "__main__":
    sys.exit(run(split(sys.argv[1:])))
