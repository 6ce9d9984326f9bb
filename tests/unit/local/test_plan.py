"""Addresses and names of the local cluster."""

import pytest

from local.plan import (
    DNS_SERVICE,
    HOST,
    MAX_NODES,
    NODE_NETWORK,
    POD_NETWORK,
    SERVICE_NETWORK,
    NodePlan,
    node_plan,
    node_plans,
)


def test_first_node() -> None:
    """The first Node has the addresses that the documentation names."""
    plan = NodePlan(1)
    assert (plan.name, str(plan.address), str(plan.pods)) == ("node-1", "10.10.0.11", "10.244.1.0/24")


def test_no_address_twice() -> None:
    """No two Nodes share an address, a pod network or a cable, and all lie in the cluster's networks."""
    plans = node_plans(MAX_NODES)
    assert len({plan.address for plan in plans}) == len({plan.pods for plan in plans}) == MAX_NODES
    assert all(plan.address in NODE_NETWORK and plan.pods.subnet_of(POD_NETWORK) for plan in plans)
    assert HOST not in {plan.address for plan in plans}
    assert max(len(plan.cable) for plan in plans) <= 15  # IFNAMSIZ, less the final zero


def test_networks_are_apart() -> None:
    """Nodes, pods and Services live in networks that do not overlap."""
    assert not NODE_NETWORK.overlaps(POD_NETWORK)
    assert not SERVICE_NETWORK.overlaps(POD_NETWORK)
    assert DNS_SERVICE in SERVICE_NETWORK


def test_name_leads_back() -> None:
    """A Node's name leads back to its plan."""
    assert all(node_plan(plan.name) == plan for plan in node_plans(12))


@pytest.mark.parametrize("name", ["node-0", "node-65", "node-", "node-x", "worker-1", "", "node-1/kubelet"])
def test_wrong_name(name: str) -> None:
    """A name that no Node has is refused."""
    with pytest.raises(ValueError, match=r"node-|outside"):
        node_plan(name)
