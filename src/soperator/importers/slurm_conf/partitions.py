"""The partitions of slurm.conf. Source: slurm.conf(5), PARTITION CONFIGURATION."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from soperator.api.base import SLURM_NAME
from soperator.importers.parts.partition_settings import is_yes, options_of, report_options
from soperator.importers.parts.report import ImportReport
from soperator.importers.slurm_conf.files import SourceLine
from soperator.importers.slurm_conf.nodes import NodeGroup, NodeTable, expanded
from soperator.slurm import hostlist

_NAME_LENGTH = 64


@dataclass(frozen=True)
class PartitionLine:
    """A partition: its nodes, None for all of them, and its further settings by the names in slurm.conf."""

    name: str
    place: str
    nodes: frozenset[str] | None
    is_default: bool = False
    is_hidden: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


def read_partitions(lines: Iterable[SourceLine], table: NodeTable, report: ImportReport) -> list[PartitionLine]:
    """Return the partitions that can be carried over, and report every setting; raises UnreadableInputError for an invalid host list."""
    defaults: dict[str, tuple[str, str]] = {}
    found: dict[str, PartitionLine] = {}
    for each in lines:
        if not each.line.is_object or each.line.pairs[0][0].lower() != "partitionname":
            continue
        said = {key.lower(): (key, value) for key, value in each.line.pairs[1:]}
        if each.name.upper() == "DEFAULT":
            defaults |= said
            report.ours(each.place, "PartitionName=DEFAULT", "its settings are those of the partitions that follow")
            _report_options(each, report)
        elif partition := _read(each, {**defaults, **said}, table, report):
            found[each.name] = partition
    return list(found.values())


def _read(
    each: SourceLine, said: Mapping[str, tuple[str, str]], table: NodeTable, report: ImportReport
) -> PartitionLine | None:
    """Return a partition; None for one that is left out, because empty nodes would mean all of them here."""
    values = {key: value for key, (_, value) in said.items()}
    name = f"PartitionName={each.name}"[:120]
    reason = ""
    if not re.fullmatch(SLURM_NAME, each.name) or len(each.name) > _NAME_LENGTH:
        reason = "a name has at most 64 letters, digits, '_', '.' and '-': add it to spec.partitions with another name"
    nodes = _members(each, values.get("nodes", ""), table, report)
    if not reason and nodes is not None and not nodes:
        reason = "no node of the files belongs to it, and spec.partitions would give it all of them"
    if reason:
        for _, _, text in each.settings():
            report.left(each.place, text, reason)
        return None
    report.carried(each.place, name, "an entry of spec.partitions")
    _report_options(each, report)
    options = options_of(said.values())
    return PartitionLine(each.name, each.place, nodes, is_yes(values, "default"), is_yes(values, "hidden"), options)


def _members(each: SourceLine, said: str, table: NodeTable, report: ImportReport) -> frozenset[str] | None:
    if said.upper() == "ALL":
        return None
    members: set[str] = set()
    unknown: list[str] = []
    for name in expanded(said, f"{each.place}: Nodes"):
        if name in table.sets:
            members.update(table.sets[name])
        elif name in table.shapes:
            members.add(name)
        else:
            unknown.append(name)
    if unknown:
        reason = "no NodeName or NodeSet line that is carried over defines it"
        report.left(each.place, f"Nodes={hostlist.compress(unknown)}"[:120], reason)
    return frozenset(members)


def _report_options(each: SourceLine, report: ImportReport) -> None:
    report_options(each.line.pairs[1:], each.place, report)
    if each.line.rest:
        report.left(each.place, each.line.rest[:120], "Slurm reads Key=Value only")


def membership(partitions: Sequence[PartitionLine]) -> dict[str, list[str]]:
    """Return the names of the partitions that list each node."""
    found: dict[str, list[str]] = {}
    for each in partitions:
        for node in each.nodes or ():
            found.setdefault(node, []).append(each.name)
    return found


def partition_spec(partition: PartitionLine, groups: Sequence[NodeGroup]) -> dict[str, Any]:
    """Return an entry of spec.partitions."""
    members = [each.name for each in groups if partition.nodes is not None and each.nodes[0] in partition.nodes]
    return {
        "name": partition.name,
        "nodeSets": members,
        "default": partition.is_default or None,
        "hidden": partition.is_hidden or None,
        "options": dict(partition.options),
    }
