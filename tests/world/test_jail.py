"""The jail as the operator looks after it, on a fake API server."""

import pytest

from soperator.kube import kinds
from tests.world.harness import NS, Town, operating

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
RAM = {"cluster": "demo", "replicas": 1, "submounts": [{"path": "/ram", "tmpfs": {"size": "1Gi"}}]}


@pytest.fixture
async def town():
    """A town with an operator."""
    async with operating(Town()) as town:
        yield town


def plans(town):
    """The mount plans of NodeSet worker, by the names of their ConfigMaps."""
    found = [name for name in town.names(kinds.CONFIGMAP) if name.startswith("demo-worker-jail-")]
    return {name: town.find(kinds.CONFIGMAP, name)["data"]["plan"] for name in found}


async def test_a_node_keeps_the_plan_that_its_pod_was_made_for(town):
    """While a busy node waits for its turn its plan stays beside the new one, and goes with the last pod that has it."""
    await town.up(CLUSTER, {"worker": {"cluster": "demo", "replicas": 1}})
    (before,) = plans(town)
    town.slurm.set("worker-0", "ALLOCATED")
    town.apply(kinds.NODESET, "worker", RAM)
    await town.settle(quiet=0.3)
    assert set(plans(town)) > {before}
    assert "\t/ram\t" not in plans(town)[before]
    town.slurm.set("worker-0", "IDLE", "DRAIN", reason="soperator: new pod template")
    await town.settle(quiet=0.3)
    town.pods_run()
    await town.settle(quiet=0.3)
    ((after, text),) = plans(town).items()
    assert after != before
    assert "\t/ram\t" in text
    volumes = town.find(kinds.POD, "demo-worker-0")["spec"]["volumes"]
    assert {"name": "plan", "configMap": {"name": after}} in volumes
    assert town.find(kinds.CONFIGMAP, after)["metadata"]["namespace"] == NS
