"""A NodeSet's wishes about change, from the words of its spec to the numbers that the policy reckons with."""

from soperator.api.fields.change import seconds, share
from soperator.api.nodeset import NodeSetSpec
from soperator.policy.maintenance_window import Hours
from soperator.policy.workers.types import ChangePolicy


def policy_of(spec: NodeSetSpec) -> ChangePolicy:
    """The policy of a NodeSet; percentages are of its size."""
    rollout, drain, loss = spec.rollout, spec.drain, spec.node_loss
    window = rollout.window
    return ChangePolicy(
        on_delete=rollout.strategy == "OnDelete",
        max_unavailable=share(spec.size, rollout.max_unavailable),
        wait_for_idle=rollout.busy == "Wait",
        window=Hours(window.schedule, seconds(window.duration)) if window else None,
        progress_deadline=seconds(rollout.progress_deadline),
        max_wait=seconds(drain.max_wait) if drain.max_wait else None,
        then=drain.then,
        signal=drain.signal,
        warn_before=seconds(drain.warn_before),
        replace_after=seconds(loss.replace_after) if loss.replace_after else None,
        max_replaced=share(spec.size, loss.max_replaced),
    )
