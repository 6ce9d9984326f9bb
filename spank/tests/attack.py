#!/usr/bin/env python3
"""Runs an attacker's commands: a JSON list of `[name, script]` on stdin, JSON `{name: output}` on stdout; standard library only.

Each script runs in sh with its own working folder below the home, and its own number as `$N`. Some scripts run in parallel. A script that
exceeds its time limit is killed, and its output until then is kept.
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
    """Return the name, and what the script printed on both outputs."""
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
