"""Partitions of Slinky: those of NodeSets, and lines of a Controller's extraConf."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from soperator.api.base import SLURM_NAME
from soperator.importers.parts.fields import ForeignFields
from soperator.importers.parts.free_settings import shown
from soperator.importers.parts.partition_settings import is_yes, options_of, report_options
from soperator.importers.parts.report import ImportReport
from soperator.slurm.conf import LogicalLine, logical_lines

#: The names of NodeSets in Slurm there, and their names here.
Names = Mapping[str, str]
_LONGEST = 64


def own_partition(fields: ForeignFields, slurm_name: str, name: str) -> dict[str, Any] | None:
    """Return the partition of a NodeSet, which has its name in Slurm, and report it; None if it has none of its own."""
    if not fields.peek("partition.enabled", bool):
        fields.ours("partition.config", "partition.enabled is false, so it is not in use")
        return None
    fields.carried("partition.enabled", bool, "an entry of spec.partitions over this NodeSet")
    made: dict[str, Any] = {"name": slurm_name, "nodeSets": [name]}
    place = fields.where("partition.config")
    for line in logical_lines(fields.read("partition.config")):
        pairs = [pair for pair in line.pairs if pair[0].lower() not in ("nodes", "partitionname")]
        for key, value in line.pairs:
            if (key, value) not in pairs:
                fields.report.left(place, shown(key, value), "the partition of a NodeSet has its name and its nodes")
        made |= _settings({key.lower(): (key, value) for key, value in pairs}, made.get("options", {}))
        report_options(pairs, place, fields.report)
        if line.rest or line.include:
            fields.report.left(place, (line.rest or f"Include {line.include}")[:120], "Slurm reads Key=Value only")
    return made


def feature_sets(lines: Sequence[LogicalLine]) -> dict[str, str]:
    """Return the features by the names of the NodeSet lines that stand for them."""
    heads = (each.pairs for each in lines if len(each.pairs) == 2 and each.pairs[0][0].lower() == "nodeset")
    return {name: feature for (_, name), (key, feature) in heads if key.lower() == "feature"}


def partition_of_line(
    line: LogicalLine,
    place: str,
    known: tuple[Names, Mapping[str, str], dict[str, tuple[str, str]]],
    report: ImportReport,
) -> dict[str, Any] | None:
    """Return the partition of a line, and report its settings; None for one whose nodes are not known, because empty nodes would mean all.

    `known` are the names of NodeSets, the features of NodeSet lines, and the settings of PartitionName=DEFAULT so far, to which such a line adds.
    """
    names, features, defaults = known
    name, said = line.pairs[0][1], {key.lower(): (key, value) for key, value in line.pairs[1:]}
    if name.upper() == "DEFAULT":
        defaults |= said
        report.ours(place, f"PartitionName={name}", "its settings are those of the partitions that follow")
        report_options(line.pairs[1:], place, report)
        return None
    said = {**defaults, **said}
    nodes = [each for each in said.get("nodes", ("", ""))[1].split(",") if each]
    made: dict[str, Any] = {"name": name}
    unknown = [] if nodes else ["none"]
    for each in nodes if [word.upper() for word in nodes] != ["ALL"] else ():
        feature = features.get(each, each)
        if feature in names:
            made.setdefault("nodeSets", []).append(names[feature])
        elif each in features and re.fullmatch(SLURM_NAME, feature) and len(feature) <= _LONGEST:
            made.setdefault("features", []).append(feature)
        else:
            unknown.append(each)
    reason = "its nodes are not those of NodeSets or of features: add a partition over those" if unknown else ""
    if not re.fullmatch(SLURM_NAME, name) or len(name) > _LONGEST:
        reason = "a name has at most 64 letters, digits, '_', '.' and '-': add it to spec.partitions with another name"
    if reason:
        for key, value in line.pairs:
            report.left(place, shown(key, value), reason)
        return None
    report_options(line.pairs, place, report)
    return {**made, **_settings(said, {})}


def _settings(said: Mapping[str, tuple[str, str]], options: Mapping[str, str]) -> dict[str, Any]:
    values = {key: value for key, (_, value) in said.items()}
    flags = {key: True for key in ("default", "hidden") if is_yes(values, key)}
    return {**flags, "options": {**options, **options_of(said.values())}}
