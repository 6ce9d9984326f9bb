"""When a change of the nodes' places becomes a new topology.conf.

Each new file is a trial and a reconfigure, so changes are gathered: until every node that is on its way has come, or for so long at most. Until the
file names it, a new node takes no job that it would have to share with others, and a job that needs it is turned away as before the node was
there. A node that Slurm has forgotten is taken out sooner: when it registers again slurmctld has it under another number, of which the
file that it has read knows nothing, and the file is then to change once more.

So is a node that went and came back unseen: while slurmctld was away with a record that it had not saved, or between two looks. slurmctld says which
nodes it found when it read the file; a node that it did not find leaves the file once, and is not tried again before it was found.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from soperator.slurm.topology import Place

#: Seconds between two files while nodes come, after a node has gone, and when all have come.
COMING, GONE, QUIET = 60.0, 15.0, 5.0


@dataclass(frozen=True)
class TopologyPlan:
    """The places that the file is to say, since when, and in how many seconds to look again, where more has changed than it says.

    `gone` are nodes of the file that Slurm has forgotten since, whether or not they are back. `asked` is the last reading of the file about which
    slurmctld was asked, `missed` are the nodes that it did not find, in the last one or in one before and in none since.
    """

    places: Mapping[str, Place]
    at: float = 0.0
    again: float | None = None
    gone: frozenset[str] = frozenset()
    asked: str = ""
    missed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TopologySnapshot:
    """What is known: `nodes` says where each node that Slurm knows lies, None where that is not known now.

    `is_settled` is whether no node is on its way, `depth` the number of levels.
    """

    former: TopologyPlan
    nodes: Mapping[str, Place | None]
    is_settled: bool
    now: float
    depth: int


def choose(seen: TopologySnapshot) -> TopologyPlan:
    """The places for the file. A node whose pod is nowhere just now stays where it was, one that had gone first leaves the file."""
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
    """What is known once slurmctld has said which nodes it found of those that the file named when it was read."""
    lost = frozenset(wanted) - frozenset(found)
    again = lost - former.missed
    return replace(former, asked=reading, gone=former.gone | again, missed=(former.missed - frozenset(found)) | lost)
