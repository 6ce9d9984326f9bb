"""The invariants of every decision of a deep check.

The operator asserts them at run time before the first action of a pass. A decision that violates one is a defect of the rules. The pass
then fails closed: it does nothing in Slurm, and a condition has the message. Jobs of users continue, drained nodes stay drained, and the
next pass decides from a new observation. Source of the idea: Patroni's `quorum.py`.
"""

from collections.abc import Iterable, Mapping

from soperator.policy import drain_reasons
from soperator.policy.healthcheck.types import (
    Action,
    Cancel,
    CheckHistory,
    CheckPolicy,
    CheckTarget,
    RedrainNode,
    ResumeNode,
    Submit,
)


def violation(
    history: CheckHistory, settings: CheckPolicy, targets: Iterable[CheckTarget], actions: Iterable[Action]
) -> str:
    """Return the first invariant that these actions would break, with the node; empty if all of them hold.

    - A node runs at most one job of the check.
    - New runs do not raise the number of nodes that run the check above `CheckPolicy.most`.
    - A run starts on idle nodes only; a retest also on its one node that a check has drained.
    - Only a node with a pending retest, drained by a check and without jobs, is resumed.
    - A node is drained again only with a reason of this check, and only a run of this check is cancelled.
    """
    known = {each.name: each for each in targets}
    running = [name for run in history.runs for name in run.nodes]
    submitted: list[str] = []
    for action in actions:
        match action:
            case Submit():
                if message := _of_submission(action, known, {*running, *submitted}):
                    return message
                submitted += action.nodes
            case ResumeNode(name):
                if not any(run.retest and name in run.nodes for run in history.runs) or not _is_held_by_check(
                    known, name
                ):
                    return f"node {name} would be resumed, and no retest waits for it or no check drained it"
            case RedrainNode(name, why):
                if not why.startswith(drain_reasons.for_check(settings.name, "")):
                    return f"node {name} would be drained with the reason of another cause: {why}"
            case Cancel(run):
                if run not in history.runs:
                    return f"job {run.job} would be cancelled, and it is not a run of the check"
    if submitted and len(running) + len(submitted) > settings.most:
        return f"{len(running) + len(submitted)} nodes would run the check, and at most {settings.most} may"
    return ""


def _of_submission(action: Submit, known: Mapping[str, CheckTarget], taken: set[str]) -> str:
    for name in action.nodes:
        if name in taken:
            return f"node {name} would run two jobs of the check"
        may_start = name in known and known[name].is_free
        if not may_start and not (action.retest and _is_held_by_check(known, name)):
            return f"node {name} would run the check, and it is not idle"
    return ""


def _is_held_by_check(known: Mapping[str, CheckTarget], name: str) -> bool:
    node = known[name].node if name in known else None
    return bool(node and node.is_drained and drain_reasons.is_of_check(node))
