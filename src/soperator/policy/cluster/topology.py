"""Decides when a change of the nodes' locations becomes a new topology.conf.

Each new file costs a trial and a reconfigure, so changes are collected until every starting node has registered, or until a timeout. Until the file
names a new node, it gets no job over several nodes, and Slurm refuses a job that needs it as if the node did not exist. A node that Slurm has
forgotten leaves the file sooner: when it registers again, slurmctld gives it another index, which is not in the file that it has read, so the file
must change again.

The same holds for a node that was deleted and registered again unobserved: while slurmctld was down with an unsaved record, or between two passes.
slurmctld reports the nodes that it found when it read the file. A node that it did not find leaves the file once, and is added again only after
slurmctld has found it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from soperator.slurm.topology import Place

#: Seconds between two files: while nodes start, after a node was deleted, and when all have registered.
COMING, GONE, QUIET = 60.0, 15.0, 5.0


@dataclass(frozen=True)
class TopologyPlan:
    """The locations for the file, their time, and the seconds until the next pass if more has changed.

    `gone` are nodes of the file that Slurm has forgotten since, registered again or not. `asked` is the last reading of the file that slurmctld was
    queried about; `missed` are the nodes that it did not find in the last reading, or in an earlier one and none since.
    """

    places: Mapping[str, Place]
    at: float = 0.0
    again: float | None = None
    gone: frozenset[str] = frozenset()
    asked: str = ""
    missed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TopologySnapshot:
    """The observed state: `nodes` has the location of each node that Slurm knows, None if the location is not known now.

    `is_settled` says whether no node is starting; `depth` is the number of levels.
    """

    former: TopologyPlan
    nodes: Mapping[str, Place | None]
    is_settled: bool
    now: float
    depth: int


def choose(seen: TopologySnapshot) -> TopologyPlan:
    """Return the locations for the file. A node whose pod is unscheduled keeps its location; a deleted node leaves the file first."""
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
    """Return the state after slurmctld has reported the nodes that it found when it read the file."""
    lost = frozenset(wanted) - frozenset(found)
    again = lost - former.missed
    return replace(former, asked=reading, gone=former.gone | again, missed=(former.missed - frozenset(found)) | lost)
