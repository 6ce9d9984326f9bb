#!/usr/bin/env python3
"""Runs commands of an attacker: a JSON list of `[name, script]` on stdin, JSON `{name: output}` on stdout; standard library only.

Each script is one of sh with a folder of its own below the home as working folder, and `$N` as a number of its own. Some run side by side. One that
takes too long ends, with what it had printed.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SECONDS, LARGEST, BESIDE = 25, 20000, 4


def run(numbered: tuple[int, list[str]]) -> tuple[str, str]:
    """The name, and what the script printed on both outputs."""
    number, (name, script) = numbered
    with tempfile.TemporaryFile() as output:
        folder = Path.home() / f"attack-{number}"
        folder.mkdir(exist_ok=True)
        words = ["sh", "-c", script]
        child = subprocess.Popen(
            words,
            cwd=folder,
            env=os.environ | {"N": str(number)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            child.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        output.seek(0)
        return name, output.read(LARGEST).decode(errors="replace")


def main() -> None:
    with ThreadPoolExecutor(BESIDE) as pool:
        print(json.dumps(dict(pool.map(run, enumerate(json.load(sys.stdin))))))


if __name__ == "__main__":
    main()
