"""NodeSets that this operator cannot read, as after a rollback: their workers and their lines of Slurm's configuration stay as they are."""

from dataclasses import replace

from soperator.control import gather, membership
from soperator.control.configuration import Look
from soperator.control.operator import Operator
from soperator.decide.configuration import Step
from soperator.render import config
from soperator.render.model import Cluster


def holds_configuration(operator: Operator, cluster: Cluster) -> str:
    """Why another configuration than the present one is not written: nobody knows what it says of these nodes. Empty where nothing is held."""
    found, state = membership.unreadable(operator, cluster), gather.transaction(operator, cluster)
    if not found or not state.good or gather.running_config(operator, cluster):
        return ""
    return (
        f"configuration {config.generation(cluster)[:8]} waits, for this operator cannot read NodeSet {found[0].name}, and its nodes are in it: "
        "correct the field that its status names, or upgrade the operator"
    )


def told(look: Look, held: str) -> Look:
    """The look at the configuration with what holds it."""
    is_first = held and not look.step.why
    return replace(look, step=Step(reason="NodeSetUnreadable", why=held)) if is_first else look
