"""The invariants of every step of the configuration transaction.

The operator asserts them before it carries a step out. A step that violates one is a defect of the rules. The operator then fails closed:
it writes no file and queries no daemon, all daemons keep their configuration, and the condition ConfigApplied has the message.
"""

from soperator.policy.cluster.slurm_config import ConfigSnapshot, ConfigStep


def violation(seen: ConfigSnapshot, step: ConfigStep) -> str:
    """Return the invariant that the step would break; empty if all of them hold.

    - A generation that replaces a good one, or an unknown one under a slurmctld that runs, has passed its trial.
    - A generation that was rolled back is not written again.
    - The last good generation is kept until slurmctld has reported that it runs with another.
    - Only the last good generation is restored.
    """
    before, after = seen.state, step.state
    runs = bool(seen.heard and seen.heard.running) or (not before.generation and seen.has_run)
    match step.act:
        case "write" if (before.good or runs) and not (seen.trial and seen.trial.end == "passed"):
            return f"generation {after.generation} would replace another without a trial"
        case "write" if after.generation in ("", before.refused):
            return (
                f"generation {after.generation or 'without a name'} would be written, although slurmctld exited with it"
            )
        case "restore" if not before.good or after.generation != before.good:
            return (
                f"generation {after.generation} would be restored, and the last good one is {before.good or 'unknown'}"
            )
        case "note" if not (seen.heard and seen.heard.running == after.good):
            return f"generation {after.good} would count as good, and slurmctld does not report it"
        case "write" | "restore" if before.good and after.good != before.good:
            return f"the last good generation {before.good} would be forgotten"
    return ""
