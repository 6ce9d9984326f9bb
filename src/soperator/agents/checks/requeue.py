"""Requeues a batch job that is about to start on a node that a check has just found bad.

Only a job of which nothing has run yet, because a requeue loses what ran: its script starts on this node. Only once, and only for a new failure:
about an older one the operator has already decided, and may have left the node in service for good reasons. Source of the fields: scontrol(1), `show
job`.
"""

import os
from collections.abc import Iterable, Mapping

from soperator.agents.checks import supervise
from soperator.checks.check_state import CheckState

#: For each question to slurmctld, in seconds.
_PATIENCE = 2.5


def new_failures(before: Mapping[str, CheckState], after: Mapping[str, CheckState]) -> list[CheckState]:
    """The failures that take a node out and that began between two rounds."""
    known = {name for name, each in before.items() if each.is_bad}
    return [each for name, each in after.items() if each.state == "failing" and each.takes_out and name not in known]


def turn_away(scontrol: str, found: Iterable[CheckState], environment: Mapping[str, str] = os.environ) -> str:
    """Requeue the job of this prolog, with the reason in its AdminComment; return a line about the action."""
    job, node = environment.get("SLURM_JOB_ID", ""), environment.get("SLURMD_NODENAME", "")
    why = "; ".join(f"{node} failed check {each.check} before the job began there: {each.says}" for each in found)
    if not job or not why:
        return ""
    shown = _scontrol(scontrol, "--oneliner", "show", "job", job)
    fields = dict(word.split("=", 1) for word in shown.split() if "=" in word)
    wanted = {"JobId": job, "BatchFlag": "1", "Requeue": "1", "Restarts": "0", "BatchHost": node}
    if any(fields.get(key) != value for key, value in wanted.items()):
        return f"job {job} begins in spite of it, for it cannot be requeued, or was before: {why}\n"
    _scontrol(scontrol, "update", f"jobid={job}", f"admincomment=soperator: {why}")
    if refused := _scontrol(scontrol, "requeue", job):
        return f"job {job} begins in spite of it, for Slurm does not requeue it ({refused}): {why}\n"
    return f"job {job} was put back into the queue: {why}\n"


def _scontrol(scontrol: str, *words: str) -> str:
    done = supervise.run_one((scontrol, *words), _PATIENCE)
    return done.trouble or (done.out or done.err).strip()
