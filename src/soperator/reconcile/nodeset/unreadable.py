"""Protects NodeSets that this operator cannot read, as after a rollback: their workers and their lines of Slurm's configuration stay unchanged."""

from dataclasses import replace

from soperator.policy.cluster.slurm_config import ConfigStep
from soperator.reconcile import inputs, membership
from soperator.reconcile.cluster.slurm_config import ConfigStatus
from soperator.reconcile.context import Operator
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import slurm_conf


def holds_configuration(operator: Operator, cluster: Cluster) -> str:
    """Return why no new configuration is written; empty if nothing prevents it. The content for unreadable NodeSets is unknown."""
    found, state = membership.unreadable(operator, cluster), inputs.transaction(operator, cluster)
    if not found or not state.good or inputs.running_config(operator, cluster):
        return ""
    return (
        f"configuration {slurm_conf.generation(cluster)[:8]} waits: this operator cannot read NodeSet {found[0].name}, whose nodes are in it: "
        "correct the field that its status names, or upgrade the operator"
    )


def with_hold(look: ConfigStatus, held: str, reason: str = "NodeSetUnreadable") -> ConfigStatus:
    """Return the state of the configuration, with the reason why it must not change."""
    is_first = held and not look.step.why
    return replace(look, step=ConfigStep(reason=reason, why=held)) if is_first else look
