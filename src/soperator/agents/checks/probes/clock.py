"""The machine's clock, against slurmctld's: the one clock that all nodes of a cluster can ask without another daemon."""

import re
import subprocess
import time

from soperator.agents.checks.probes.place import Given, ProbeError, ProbePaths
from soperator.checks.check import Reading

#: `sdiag output at Sun Nov 22 03:00:00 2026 (1795316400)`: slurmctld's time as it answers, in whole seconds (sdiag(1)).
_ANSWER = re.compile(r"sdiag output at .*\((\d+)\)")


def clock(_: Given, place: ProbePaths) -> list[Reading]:
    """`offset`: the least difference of this clock from slurmctld's in seconds, and its `side`."""
    began = time.time()
    done = subprocess.run([place.sdiag], capture_output=True, text=True, check=False)
    ended = time.time()
    answer = _ANSWER.search(done.stdout)
    if not answer:
        raise ProbeError(f"sdiag does not tell slurmctld's time: {(done.stderr or done.stdout).strip()[:200]}")
    offset = compare(began, ended, int(answer[1]))
    return [{"of": "the clock", "offset": abs(offset), "side": "ahead of" if offset > 0 else "behind"}]


def compare(began: float, ended: float, theirs: int) -> float:
    """The least number of seconds by which our clock is ahead: it read `began` before and `ended` after the other clock gave the second `theirs`."""
    return round(began - (theirs + 1) if began > theirs + 1 else min(0.0, ended - theirs), 1)
