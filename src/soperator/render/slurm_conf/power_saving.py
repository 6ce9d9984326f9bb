"""The settings of slurm.conf for power saving.

Slurm decides which nodes wake for its jobs. The programs to resume and suspend do nothing, because the operator observes the states of the nodes and
creates the pods (docs/decisions/0073). The program that runs before each job waits for the job's nodes (docs/decisions/0081). The operator decides
when a node sleeps, so SuspendTime never elapses. Source: slurm.conf(5) of 24.11.
"""

from collections.abc import Mapping

from soperator.api.fields.change import seconds
from soperator.api.nodeset import NodeSetSpec
from soperator.render.parts.paths import BUNDLE

#: In the image of slurmctld (images/slurm/wake). A person's own PrologSlurmctld stands beside it: Slurm takes several.
AWAIT = f"{BUNDLE}/libexec/await-nodes"
#: Ten years. Without a number the module is off.
_NEVER = 315360000
#: Seconds added to a NodeSet's own timeout; after them Slurm itself sets a node DOWN if the operator has not.
_SPARE = 60


def timeouts(nodesets: Mapping[str, NodeSetSpec]) -> tuple[int, int] | None:
    """Return the longest times, in seconds, in which a node of these NodeSets wakes and powers down; None without power saving."""
    found = [spec.power_saving for spec in nodesets.values() if spec.power_saving]
    if not found:
        return None
    resume = max(seconds(each.resume_timeout) for each in found)
    return int(resume) + _SPARE, int(max(seconds(each.suspend_timeout) for each in found))


def settings(limits: tuple[int, int] | None) -> dict[str, str | int]:
    """Return the lines of slurm.conf for power saving; none if no node sleeps. The operator's queue limits the rates."""
    if limits is None:
        return {}
    resume, suspend = limits
    return {
        "SuspendProgram": "/usr/bin/true",
        "ResumeProgram": "/usr/bin/true",
        "PrologSlurmctld": AWAIT,
        "SuspendTime": _NEVER,
        "SuspendRate": 0,
        "ResumeRate": 0,
        "SuspendTimeout": suspend,
        "ResumeTimeout": resume,
    }
