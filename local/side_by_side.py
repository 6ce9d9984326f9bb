"""`python -m local.side_by_side COMMAND… -- COMMAND…`: run commands at the same time, for tests that mostly wait.

What the first prints is shown at once; what another prints is shown whole when it has ended. Each runs to its end, whatever becomes of the others,
and the exit status is 1 when one of them failed. A signal that ends this program ends them too.
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
from types import FrameType

from local.progress import say


def split(words: Sequence[str]) -> list[list[str]]:
    """The commands between the `--`."""
    groups = itertools.groupby(words, lambda word: word == "--")
    return [list(group) for is_mark, group in groups if not is_mark]


def run(commands: Sequence[Sequence[str]]) -> int:
    """Run the commands and return 1 when one of them failed."""
    began, children = time.monotonic(), []
    for number, command in enumerate(commands):
        output = None if number == 0 else tempfile.TemporaryFile()  # noqa: SIM115 (it is closed when its command has ended)
        child = subprocess.Popen(command, stdout=output, stderr=output and subprocess.STDOUT, start_new_session=True)
        children.append((command, child, output))

    def end(number: int, _: FrameType | None) -> None:
        for _, child, _ in children:
            if child.poll() is None:
                os.killpg(child.pid, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    lock = threading.Lock()

    def follow(command: Sequence[str], child: subprocess.Popen[bytes], output: object) -> None:
        child.wait()
        with lock:
            if output is not None:
                output.seek(0)  # type: ignore[attr-defined]
                sys.stdout.write(output.read().decode(errors="replace"))  # type: ignore[attr-defined]
                sys.stdout.flush()
            ended = f"ended with {child.returncode}" if child.returncode else "passed"
            say(f"{shlex.join(command)[:100]}: {ended} after {time.monotonic() - began:.0f} s")

    followers = [threading.Thread(target=follow, args=each) for each in children]
    for each in followers:
        each.start()
    for each in followers:
        each.join()
    return 1 if any(child.returncode for _, child, _ in children) else 0


if __name__ == "__main__":
    sys.exit(run(split(sys.argv[1:])))
