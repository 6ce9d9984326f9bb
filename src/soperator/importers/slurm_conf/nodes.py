"""The nodes of slurm.conf, and the NodeSets that they become.

Nodes with the same shape and in the same partitions become one NodeSet, so that each partition is exactly a list of NodeSets. Source: slurm.conf(5),
NODE CONFIGURATION.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from soperator.importers.parts.names import nodeset_name
from soperator.importers.parts.node_settings import EXTRA, report_attribute
from soperator.importers.parts.report import ImportReport, UnreadableInputError
from soperator.importers.slurm_conf.files import SourceLine
from soperator.slurm import hostlist


@dataclass(frozen=True)
class NodeShape:
    """What nodes of one NodeSet have in common. `memory` is in MiB; 0 means that the line does not say it."""

    cpus: int = 0
    memory: int = 0
    features: tuple[str, ...] = ()
    weight: int = 1
    gres: str = ""
    on_demand: bool = False
    extra: str = ""


@dataclass
class NodeTable:
    """The nodes in the order of the files: their shapes, and the lines that define them."""

    shapes: dict[str, NodeShape] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    sets: dict[str, list[str]] = field(default_factory=dict)

    def having(self, feature: str) -> list[str]:
        """Return the nodes with a feature."""
        return [name for name, shape in self.shapes.items() if feature in shape.features]


@dataclass(frozen=True)
class NodeGroup:
    """The nodes of one future NodeSet."""

    name: str
    shape: NodeShape
    nodes: tuple[str, ...]


def read_nodes(lines: Iterable[SourceLine], report: ImportReport) -> NodeTable:
    """Return the nodes of all NodeName and NodeSet lines; raises UnreadableInputError for an invalid host list or a second definition."""
    table, defaults = NodeTable(), dict[str, str]()
    wanted = [each for each in lines if each.line.is_object]
    for each in wanted:
        if each.line.pairs[0][0].lower() != "nodename":
            continue
        said = {key.lower(): value for key, value in each.line.pairs[1:]}
        if each.name.upper() == "DEFAULT":
            defaults |= said
            report.ours(each.place, "NodeName=DEFAULT", "its settings are those of the nodes that follow")
        elif {**defaults, **said}.get("state", "").upper().startswith("FUTURE"):
            for _, _, text in each.settings():
                report.left(
                    each.place, text, "FUTURE nodes are not yet there: raise replicas of a NodeSet when they are"
                )
            continue
        else:
            _add(table, each, {**defaults, **said})
            report.carried(each.place, f"NodeName={each.name}"[:120], "the NodeSets named below")
        _report_attributes(each, report)
    for each in wanted:
        if each.line.pairs[0][0].lower() == "nodeset":
            _add_set(table, each, report)
    return table


def _add(table: NodeTable, each: SourceLine, said: Mapping[str, str]) -> None:
    names = expanded(each.name, f"{each.place}: NodeName")
    shape = _shape(said, each.place, said.get("state", "").upper().startswith("CLOUD"))
    for name in names:
        if name in table.shapes:
            raise UnreadableInputError(
                f"{each.place}: NodeName={name}: {table.places[name]} defines this node too: remove one of the lines"
            )
        table.shapes[name], table.places[name] = shape, each.place


def expanded(text: str, where: str) -> list[str]:
    """Return the names of a host list; raises UnreadableInputError if it is none."""
    try:
        return hostlist.expand(text)
    except ValueError as error:
        raise UnreadableInputError(f"{where}: {error}: correct it") from None


def _add_set(table: NodeTable, each: SourceLine, report: ImportReport) -> None:
    found: list[str] = []
    for key, value in each.line.pairs[1:]:
        if key.lower() == "feature":
            found += table.having(value)
        elif key.lower() == "nodes":
            found += [name for name in expanded(value, f"{each.place}: Nodes") if name in table.shapes]
    table.sets[each.name] = found
    for _, _, text in each.settings():
        report.ours(each.place, text, "partitions over it name the NodeSets of its nodes")


def _shape(said: Mapping[str, str], place: str, on_demand: bool) -> NodeShape:
    features = said.get("feature") or said.get("features") or ""
    return NodeShape(
        cpus=_cpus(said, place),
        memory=_whole(said, "realmemory", place, 0),
        features=tuple(dict.fromkeys(filter(None, features.split(",")))),
        weight=_whole(said, "weight", place, 1),
        gres=said.get("gres", ""),
        on_demand=on_demand,
        extra=" ".join(f"{key}={said[key.lower()]}" for key in EXTRA if key.lower() in said),
    )


def _cpus(said: Mapping[str, str], place: str) -> int:
    """Return CPUs, or the product of the sockets, cores and threads of a node; 0 without any of them."""
    for key in ("cpus", "procs"):
        if key in said:
            return _whole(said, key, place, 0)
    boards = _whole(said, "boards", place, 1)
    sockets = _whole(said, "sockets", place, 0) or boards * _whole(said, "socketsperboard", place, 0)
    cores, threads = _whole(said, "corespersocket", place, 0), _whole(said, "threadspercore", place, 0)
    return max(1, sockets) * max(1, cores) * max(1, threads) if sockets or cores or threads else 0


def _whole(said: Mapping[str, str], key: str, place: str, default: int) -> int:
    text = said.get(key, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 13):
        raise UnreadableInputError(f"{place}: {key}: {text[:80]}: not a whole number: correct it")
    return int(text) if text else default


def _report_attributes(each: SourceLine, report: ImportReport) -> None:
    for key, value, text in [*each.settings()][1:]:
        report_attribute((each.place, key, value, text), "of the NodeSet", report)
    if each.line.rest:
        report.left(each.place, each.line.rest[:120], "Slurm reads Key=Value only")


def grouped(table: NodeTable, membership: Mapping[str, Sequence[str]]) -> list[NodeGroup]:
    """Return the NodeSets: nodes of one shape and in the same partitions, by their first node. `membership` has the partitions of each node."""
    groups: dict[tuple[NodeShape, tuple[str, ...]], list[str]] = {}
    for name, shape in table.shapes.items():
        groups.setdefault((shape, tuple(sorted(membership.get(name, ())))), []).append(name)
    return list(_named(groups))


def _named(groups: Mapping[tuple[NodeShape, tuple[str, ...]], list[str]]) -> Iterator[NodeGroup]:
    """Yield the groups with names. A name is no feature of another group, because a partition over the feature would mean both."""
    taken: set[str] = set()
    features = [shape.features for shape, _ in groups]
    for number, ((shape, _), nodes) in enumerate(groups.items()):
        foreign = {each for other, found in enumerate(features) if other != number for each in found}
        stem = nodes[0].partition(".")[0].rstrip("0123456789-_")
        name = nodeset_name(stem or "node", taken | foreign)
        taken.add(name)
        yield NodeGroup(name, shape, tuple(nodes))
