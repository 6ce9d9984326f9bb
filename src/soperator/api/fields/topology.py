"""The fields for topology: the nodes that are close to each other, from a SlurmCluster's levels and its NodeSets' declarations.

The levels are labels of Kubernetes Nodes, from the outermost to the innermost. A NodeSet may declare the labels of its nodes, so that Slurm knows the
location of a node before it runs.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import Model, Problem
from soperator.api.validation.cel import Rule

LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_VALUE = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LEVELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
#: Prefixes of labels that describe a machine and not where it is: the operator does not keep them in memory.
UNREAD = ("feature.node.kubernetes.io/", "nvidia.com/", "kubernetes.io/", "beta.kubernetes.io/", "node.kubernetes.io/")

Key = Annotated[str, Field(pattern=LABEL_KEY, max_length=316)]
Value = Annotated[str, Field(pattern=LABEL_VALUE, max_length=63)]
TopologyLabels = Annotated[dict[Key, Value], Field(max_length=8)]


class Topology(Model):
    """The locations of nodes, so that Slurm places a job on nodes that are close to each other."""

    type: Literal["None", "Tree", "Block"] = Field(
        default="None",
        description=(
            "Tree: levels of switches; Slurm places a job across as few as possible. Block: blocks of nodes; Slurm "
            "places a job in as few as possible, and the last level is the block. None: no topology, unless "
            "a topology.conf in config.files defines one."
        ),
    )
    levels: list[Key] = Field(
        default_factory=lambda: list(LEVELS),
        min_length=1,
        max_length=8,
        description=(
            "Labels of Kubernetes Nodes, from the outermost level to the innermost, for example zone, spine and rack. A "
            "Node without a label has its own location at that level."
        ),
    )
    block_sizes: list[Annotated[int, Field(ge=1, le=65536)]] = Field(
        default_factory=list,
        max_length=16,
        description=(
            "Block sizes for type Block: the nodes of a block, and then that number times 2, 4, 8 and so on, for blocks "
            "that are close to each other."
        ),
    )

    @property
    def is_on(self) -> bool:
        """Whether the spec defines a topology."""
        return self.type != "None"


TOPOLOGY = (
    Rule(
        cel="(self.type == 'Block') == (size(self.?blockSizes.orValue([])) > 0)",
        message="blockSizes and type Block need each other: set the number of nodes of a block, or remove blockSizes with another type",
        holds=lambda topology: (topology.type == "Block") == bool(topology.block_sizes),
        field="block_sizes",
    ),
)


def topology_problems(topology: Topology) -> Iterator[Problem]:
    """Yield the problems of a cluster's topology."""
    for number, key in enumerate(topology.levels):
        if key in topology.levels[:number]:
            yield Problem(f"spec.topology.levels[{number}]", key, "this label is already a level: remove it")
        if key.startswith(UNREAD):
            remedy = "the label identifies a Node, not its location: name a label that several Nodes close to each other share"
            yield Problem(f"spec.topology.levels[{number}]", key, remedy)
    first = topology.block_sizes[0] if topology.block_sizes else 1
    for number, size in enumerate(topology.block_sizes):
        times = size // first
        if (
            size % first
            or times & (times - 1)
            or times > 1 << 15
            or (number and size <= topology.block_sizes[number - 1])
        ):
            remedy = f"write the first size ({first}) times 2, 4, 8 and so on, in ascending order"
            yield Problem(f"spec.topology.blockSizes[{number}]", str(size), remedy)


def place_problems(place: Mapping[str, str], topology: Topology) -> Iterator[Problem]:
    """Yield the problems of a NodeSet's topology labels, compared with its cluster's topology."""
    for key, value in place.items():
        if not topology.is_on:
            yield Problem(
                f"spec.topologyLabels.{key}",
                value,
                "its cluster has no topology: set spec.topology there, or remove the label",
            )
        elif key not in topology.levels:
            known = ", ".join(topology.levels)
            yield Problem(
                f"spec.topologyLabels.{key}", value, f"it is not a level of the cluster's topology: use one of {known}"
            )
