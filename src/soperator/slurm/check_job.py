"""The Slurm job of a deep check: its partitions in slurm.conf, and the request that submits it.

Deep checks have two partitions, which only root may use and sinfo does not show. Any other job preempts a job of the first. A job of the second
starts before all others, and the operator uses it only for nodes that are drained for the check itself (docs/decisions/0054).

The job runs as root of the jail, because only an administrator may write AdminComment, the only field of a job that holds more than 1,023 characters
(tried with 24.11). So only root can have written the result, and the job needs no credentials.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from soperator.slurm.job import CheckJob

PARTITION, RETEST = "soperator-check", "soperator-retest"
#: How names of jobs begin.
PREFIX = "soperator-check-"
#: How much a script's last words may be, in bytes.
SAID = 8192
_MARK = "soperator exit="
_PATH = "/opt/soperator/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: All programs of the check write into one pipe, whose last part is kept in plain ASCII. `code` is missing where the script was killed with the
#: check.
_WRAPPER = """#!/bin/sh
# HealthCheck {name}: its exit code and the end of what it says go into this job's AdminComment.
work=$(mktemp -d) || exit 70
cat >"$work/check" <<'{end}'
{script}
{end}
chmod 700 "$work/check"
{{ cd / && "$work/check"; echo $? >"$work/code"; }} </dev/null 2>&1 | tail -c {most} | tr -cd '\\11\\12\\40-\\176' >"$work/said"
read -r code <"$work/code" || code=70
scontrol update "jobid=$SLURM_JOB_ID" "admincomment={mark}$code
$(cat "$work/said")" || exit 70
rm -rf "$work"
exit "$code"
"""


def job_name(check: str) -> str:
    """Return the name of a check's jobs."""
    return f"{PREFIX}{check}"


def script(name: str, text: str) -> str:
    """Return the batch script that wraps a check's script; no line of the check can end the here-document."""
    end = "soperator-end"
    while any(line == end for line in text.splitlines()):
        end += "-"
    return _WRAPPER.format(name=name, script=text.rstrip("\n"), end=end, most=SAID, mark=_MARK)


def submission(
    owner: str, check: str, nodes: Sequence[str], text: str, minutes: int, retest: bool, gpus: int = 0
) -> dict[str, Any]:
    """Return the body of slurmrestd's POST job/submit for a job that has these nodes to itself. `owner` is the uid of the HealthCheck."""
    job: dict[str, Any] = {
        "name": job_name(check),
        "partition": RETEST if retest else PARTITION,
        "required_nodes": list(nodes),
        "minimum_nodes": len(nodes),
        "maximum_nodes": len(nodes),
        "tasks": len(nodes),
        "shared": ["none"],
        "requeue": False,
        "time_limit": {"set": True, "number": minutes},
        "current_working_directory": "/",
        "standard_output": "/dev/null",
        "standard_error": "/dev/null",
        "environment": [f"PATH={_PATH}"],
        "comment": owner,
    }
    return {"script": script(check, text), "job": job | ({"tres_per_node": f"gres/gpu:{gpus}"} if gpus else {})}


def is_of(job: CheckJob, owner: str) -> bool:
    """Return whether the operator submitted the job for this HealthCheck.

    Any user may give a job such a name and comment. Only Slurm sets the owner, and only root may use the partitions.
    """
    return job.owner == owner and job.user == 0 and job.partition in (PARTITION, RETEST)


def said_of(comment: str) -> tuple[int, str] | None:
    """Return the exit code and the last output in a job's AdminComment; None if the job did not write them."""
    first, _, rest = comment.partition("\n")
    code = first.removeprefix(_MARK)
    return (int(code), rest) if first.startswith(_MARK) and code.isdecimal() else None


def partitions(preempts: bool) -> list[Mapping[str, str]]:
    """Return the two partitions of deep checks as lines of slurm.conf."""
    first = {"PartitionName": PARTITION, "Nodes": "ALL", "Hidden": "YES", "RootOnly": "YES"}
    first |= {"PriorityTier": "0"} | ({"PreemptMode": "CANCEL"} if preempts else {})
    second = {"PartitionName": RETEST, "Nodes": "ALL", "Hidden": "YES", "RootOnly": "YES"}
    return [first, second | {"PriorityTier": "65533"} | ({"PreemptMode": "OFF"} if preempts else {})]
