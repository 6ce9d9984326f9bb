"""Requeues a batch job that is about to start on a node on which a check has just failed.

The job must not have run yet, because a requeue loses its work: its script starts on this node. The job is requeued only once, and only for a new
failure: about an older failure the operator has already decided, and it may have left the node in service on purpose. Source of the fields:
scontrol(1), `show job`.
"""

import os
from collections.abc import Iterable, Mapping

from soperator.agents.checks import supervise
from soperator.checks.check_state import CheckState

#: For each question to slurmctld, in seconds.
_PATIENCE = 2.5


def new_failures(before: Mapping[str, CheckState], after: Mapping[str, CheckState]) -> list[CheckState]:
    """Return the failures that take the node out of service and that started between two rounds."""
    known = {name for name, each in before.items() if each.is_bad}
    return [each for name, each in after.items() if each.state == "failing" and each.takes_out and name not in known]


def requeue_job(scontrol: str, found: Iterable[CheckState], environment: Mapping[str, str] = os.environ) -> str:
    """Requeue the job of this prolog, with the reason in its AdminComment; return a line about the action."""
    job, node = environment.get("SLURM_JOB_ID", ""), environment.get("SLURMD_NODENAME", "")
    why = "; ".join(f"{node} failed check {each.check} before the job started there: {each.message}" for each in found)
    if not job or not why:
        return ""
    shown = _scontrol(scontrol, "--oneliner", "show", "job", job)
    fields = dict(word.split("=", 1) for word in shown.split() if "=" in word)
    wanted = {"JobId": job, "BatchFlag": "1", "Requeue": "1", "Restarts": "0", "BatchHost": node}
    if any(fields.get(key) != value for key, value in wanted.items()):
        return f"job {job} starts in spite of this, because it cannot be requeued, or already was: {why}\n"
    _scontrol(scontrol, "update", f"jobid={job}", f"admincomment=soperator: {why}")
    if refused := _scontrol(scontrol, "requeue", job):
        return f"job {job} starts in spite of this, because Slurm refuses to requeue it ({refused}): {why}\n"
    return f"job {job} was requeued: {why}\n"


def _scontrol(scontrol: str, *words: str) -> str:
    done = supervise.run_one((scontrol, *words), _PATIENCE)
    return done.trouble or (done.out or done.err).strip()
