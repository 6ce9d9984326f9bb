"""Compares the machine's clock with slurmctld's, because every node can query that clock without another daemon."""

import re
import subprocess
import time

from soperator.agents.checks.probes.place import Given, ProbeError, ProbePaths
from soperator.checks.check import Reading

#: `sdiag output at Sun Nov 22 03:00:00 2026 (1795316400)`: slurmctld's time as it answers, in whole seconds (sdiag(1)).
_ANSWER = re.compile(r"sdiag output at .*\((\d+)\)")


def clock(_: Given, place: ProbePaths) -> list[Reading]:
    """`offset`: the smallest possible difference between this clock and slurmctld's in seconds, and its `side`."""
    began = time.time()
    done = subprocess.run([place.sdiag], capture_output=True, text=True, check=False)
    ended = time.time()
    answer = _ANSWER.search(done.stdout)
    if not answer:
        raise ProbeError(f"sdiag printed no time of slurmctld: {(done.stderr or done.stdout).strip()[:200]}")
    offset = compare(began, ended, int(answer[1]))
    return [{"of": "the clock", "offset": abs(offset), "side": "ahead of" if offset > 0 else "behind"}]


def compare(began: float, ended: float, theirs: int) -> float:
    """Return the smallest number of seconds by which our clock is ahead.

    It read `began` before, and `ended` after, the other clock returned the second `theirs`.
    """
    return round(began - (theirs + 1) if began > theirs + 1 else min(0.0, ended - theirs), 1)
