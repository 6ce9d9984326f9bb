"""Converts the settings of a NodeSet's spec to numbers, so that the policy parses no text."""

from soperator.api.fields.change import seconds, share
from soperator.api.nodeset import NodeSetSpec
from soperator.policy.maintenance_window import WindowSchedule
from soperator.policy.workers.types import ChangePolicy


def policy_of(spec: NodeSetSpec) -> ChangePolicy:
    """Return the policy's settings for a NodeSet; percentages are of its size."""
    strategy, drain, failure = spec.update_strategy, spec.drain, spec.node_failure
    window = strategy.window
    return ChangePolicy(
        on_delete=strategy.type == "OnDelete",
        max_unavailable=share(spec.size, strategy.max_unavailable),
        wait_for_idle=strategy.busy == "Wait",
        window=WindowSchedule(window.schedule, seconds(window.duration)) if window else None,
        progress_deadline=float(strategy.progress_deadline_seconds),
        drain_timeout=seconds(drain.timeout) if drain.timeout else None,
        on_timeout=drain.on_timeout,
        warning_signal=drain.warning_signal,
        warning_period=seconds(drain.warning_period),
        replace_after=seconds(failure.replace_after) if failure.replace_after else None,
        max_replaced=share(spec.size, failure.max_replaced),
    )
