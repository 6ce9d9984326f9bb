"""When a change of the nodes' locations becomes a new topology.conf.

Each new file costs a trial and a reconfigure, so changes are collected until every starting node has registered, or until a timeout. Until the file
names it, a new node gets no job that spans several nodes, and a job that needs it is refused as if the node did not exist. A node that Slurm has
forgotten leaves the file sooner: when it registers again, slurmctld has it under another number, which is not in the file that it has read, so the
file has to change again.

The same holds for a node that was deleted and came back unobserved: while slurmctld was down with an unsaved record, or between two looks. slurmctld
reports which nodes it found when it read the file; a node that it did not find leaves the file once, and is not added again before slurmctld has
found it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from soperator.slurm.topology import Place

#: Seconds between two files: while nodes start, after a node was deleted, and when all have registered.
COMING, GONE, QUIET = 60.0, 15.0, 5.0


@dataclass(frozen=True)
class TopologyPlan:
    """The locations for the file, since when, and in how many seconds to look again where more has changed.

    `gone` are nodes of the file that Slurm has forgotten since, whether or not they are back. `asked` is the last reading of the file about which
    slurmctld was asked; `missed` are the nodes that it did not find in the last reading, or in an earlier one and none since.
    """

    places: Mapping[str, Place]
    at: float = 0.0
    again: float | None = None
    gone: frozenset[str] = frozenset()
    asked: str = ""
    missed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TopologySnapshot:
    """The observed state: `nodes` has the location of each node that Slurm knows, None where it is not known now.

    `is_settled` is whether no node is starting, `depth` the number of levels.
    """

    former: TopologyPlan
    nodes: Mapping[str, Place | None]
    is_settled: bool
    now: float
    depth: int


def choose(seen: TopologySnapshot) -> TopologyPlan:
    """Return the locations for the file. A node whose pod is unscheduled stays where it was; a node that was deleted leaves the file first."""
    unknown, former = ("",) * seen.depth, seen.former
    gone = former.gone | (former.places.keys() - seen.nodes.keys())
    known = {node: place for node, place in former.places.items() if len(place) == seen.depth}
    there = {node: place for node, place in seen.nodes.items() if node not in gone}
    wanted = {node: known.get(node, unknown) if place is None else place for node, place in there.items()}
    if wanted == former.places:
        return replace(former, again=None)
    pause = QUIET if seen.is_settled else GONE if gone else COMING
    left = former.at + pause - seen.now
    if left > 0:
        return replace(former, again=left, gone=gone)
    is_back = any(node in seen.nodes for node in gone)
    return replace(former, places=wanted, at=seen.now, again=QUIET if is_back else None, gone=frozenset())


def with_found_nodes(
    former: TopologyPlan, reading: str, wanted: Collection[str], found: Collection[str]
) -> TopologyPlan:
    """Return the state after slurmctld has reported which nodes of the file it found when it read it."""
    lost = frozenset(wanted) - frozenset(found)
    again = lost - former.missed
    return replace(former, asked=reading, gone=former.gone | again, missed=(former.missed - frozenset(found)) | lost)
