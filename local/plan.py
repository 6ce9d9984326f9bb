"""Every address and name of the cluster, computed once from the number of a Node.

The control plane runs in the machine's own network namespace and advertises the bridge's address, not that of the machine's network card.
So no port is open to other machines, the certificates stay valid when the machine moves to another network, and no packet of the cluster
leaves the machine.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

BRIDGE = "soperator0"
NODE_NETWORK = IPv4Network("10.10.0.0/24")
POD_NETWORK = IPv4Network("10.244.0.0/16")
SERVICE_NETWORK = IPv4Network("10.96.0.0/16")
HOST = NODE_NETWORK[1]
DNS_SERVICE = SERVICE_NETWORK[10]
API_PORT = 6443
DOMAIN = "cluster.local"
MAX_NODES = 64


@dataclass(frozen=True)
class NodePlan:
    """The addresses and names of one Node; ``number`` counts from 1."""

    number: int

    def __post_init__(self) -> None:
        """Raise ValueError for a number that has no address in the plan."""
        if not 1 <= self.number <= MAX_NODES:
            raise ValueError(f"Node number {self.number} is outside 1 to {MAX_NODES}")

    @property
    def name(self) -> str:
        """The Node's name in Kubernetes and its host name."""
        return f"node-{self.number}"

    @property
    def address(self) -> IPv4Address:
        """The Node's InternalIP, the address of the kubelet and of NodePorts."""
        return NODE_NETWORK[10 + self.number]

    @property
    def pods(self) -> IPv4Network:
        """The /24 from which this Node's pods get their addresses."""
        return list(POD_NETWORK.subnets(new_prefix=24))[self.number]

    @property
    def cable(self) -> str:
        """The bridge's end of the Node's network cable (a veth pair); inside, it is eth0."""
        return f"soperator-n{self.number}"

    @property
    def cgroup(self) -> str:
        """The cgroup under which this Node's pods run, in every hierarchy."""
        return f"/soperator/{self.name}"


def node_plan(name: str) -> NodePlan:
    """Return the plan of the Node called ``name`` (``node-3``)."""
    prefix, _, number = name.partition("-")
    if prefix != "node" or not number.isdigit():
        raise ValueError(f"{name!r} is not a Node's name: they are node-1, node-2, …")
    return NodePlan(int(number))


def node_plans(count: int) -> tuple[NodePlan, ...]:
    """Return the plans of the first ``count`` Nodes."""
    return tuple(NodePlan(number) for number in range(1, count + 1))
