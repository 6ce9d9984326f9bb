"""Topology: which nodes are close to each other, from a SlurmCluster's levels and its NodeSets' declarations.

The levels are labels of Kubernetes' Nodes, from the farthest to the closest; a NodeSet may declare the labels of its nodes beforehand.
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
    """Which nodes are close to each other, so that Slurm places a job on such nodes."""

    type: Literal["None", "Tree", "Block"] = Field(
        default="None",
        description=(
            "Tree: levels of switches, of which a job crosses as few as it can. Block: blocks of nodes, of which a job fills as few as it can; "
            "the last level is the block. None: Slurm knows nothing of it, unless config.topology says it."
        ),
    )
    levels: list[Key] = Field(
        default_factory=lambda: list(LEVELS),
        min_length=1,
        max_length=8,
        description=(
            "Labels of Kubernetes' Nodes, from the farthest level to the closest, for example a zone's, a spine's and a rack's. A "
            "Node without a label has its own location at that level."
        ),
    )
    block_sizes: list[Annotated[int, Field(ge=1, le=65536)]] = Field(
        default_factory=list,
        max_length=16,
        description="Sizes for which block plans: nodes of a block, and then that times 2, 4, 8 and so on where blocks lie together.",
    )

    @property
    def is_on(self) -> bool:
        """Whether there is any."""
        return self.type != "None"


TOPOLOGY = (
    Rule(
        cel="(self.type == 'Block') == (size(self.?blockSizes.orValue([])) > 0)",
        message="blockSizes belongs to type Block: give the number of nodes of a block there, and with another type remove it",
        holds=lambda topology: (topology.type == "Block") == bool(topology.block_sizes),
        field="block_sizes",
    ),
)


def topology_problems(topology: Topology, text: str) -> Iterator[Problem]:
    """Yield the problems of a cluster's topology; `text` is its config.topology."""
    if topology.is_on and text.strip():
        remedy = "spec.topology says it all: remove config.topology, or set type to None"
        yield Problem("spec.topology.type", topology.type, remedy)
    for number, key in enumerate(topology.levels):
        if key in topology.levels[:number]:
            yield Problem(f"spec.topology.levels[{number}]", key, "this label is a level already: remove it")
        if key.startswith(UNREAD):
            remedy = "it says what a Node is and not where: name a label that several Nodes close to each other share"
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
            remedy = f"write the first size ({first}) times 2, 4, 8 and so on, each larger than the one before"
            yield Problem(f"spec.topology.blockSizes[{number}]", str(size), remedy)


def place_problems(place: Mapping[str, str], topology: Topology) -> Iterator[Problem]:
    """Yield the problems of a NodeSet's topology labels, compared with its cluster's topology."""
    for key, value in place.items():
        if not topology.is_on:
            yield Problem(
                f"spec.topologyLabels.{key}",
                value,
                "its cluster has no topology: say one in spec.topology there, or remove it",
            )
        elif key not in topology.levels:
            known = ", ".join(topology.levels)
            yield Problem(
                f"spec.topologyLabels.{key}", value, f"it is no level of the cluster's topology: name one of {known}"
            )
