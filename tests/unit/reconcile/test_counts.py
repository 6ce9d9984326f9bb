"""The counts of a NodeSet while Slurm does not say how its nodes are."""

from typing import Any, cast

from soperator.api.nodeset import NodeSetSpec
from soperator.reconcile import inputs
from soperator.render.parts.model import NodeSet

FORMER = {
    "updatedReplicas": 3,
    "idle": 1,
    "allocated": 2,
    "draining": 0,
    "down": 0,
    "readyReplicas": 3,
    "desiredReplicas": 3,
    "why": "",
}
KEPT = {"updatedReplicas": 3, "idle": 1, "allocated": 2, "draining": 0, "down": 0}


def counts(former: dict[str, Any], **spec: object) -> Any:
    """What is told of a NodeSet with this spec."""
    nodeset = NodeSet("slurm", "w", "uid", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}, **spec}))
    return inputs.counts(cast("Any", None), nodeset, None, former)


def test_while_slurm_does_not_answer_the_counts_are_what_was_known_last() -> None:
    """A new operator has heard nothing yet; that is not the same as none. How many are wanted, the spec says."""
    assert counts(FORMER, replicas=4) == KEPT | {"desiredReplicas": 4}
    assert counts({}, replicas=4) == {"desiredReplicas": 4}


def test_of_nodes_that_sleep_slurm_says_how_many_are_wanted() -> None:
    """Until it does, those that were, or as many as are kept awake."""
    assert counts(FORMER, powerSaving={"maxNodes": 8, "minNodes": 2}) == KEPT | {"desiredReplicas": 3}
    assert counts({}, powerSaving={"maxNodes": 8, "minNodes": 2}) == {"desiredReplicas": 2}
