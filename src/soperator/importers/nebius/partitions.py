"""Partitions and features of the original, which name nodes, NodeSets or both."""

from collections.abc import Mapping, Sequence
from typing import Any

from soperator.importers.parts.fields import ForeignFields
from soperator.importers.parts.free_settings import shown
from soperator.importers.parts.partition_settings import is_yes, options_of, report_options
from soperator.importers.parts.report import UnreadableInputError
from soperator.slurm import hostlist
from soperator.slurm.conf import LogicalLine, logical_lines

_HERE = "partitionConfiguration"
_PART = "it names a part of the nodes of a NodeSet: make a NodeSet of them, and a partition over it"
Nodes = Mapping[str, frozenset[str]]


def nodes_of(node_sets: Mapping[str, int]) -> Nodes:
    """Return the names of the nodes of each NodeSet, by the number of its replicas; they are the same here."""
    return {name: frozenset(f"{name}-{number}" for number in range(count)) for name, count in node_sets.items()}


def covered(said: str, nodes: Nodes, place: str) -> list[str] | None:
    """Return the NodeSets of a host list; None if it has only a part of one, or others. Raises UnreadableInputError for an invalid list."""
    try:
        names = set(hostlist.expand(said))
    except ValueError as error:
        raise UnreadableInputError(f"{place}: {error}: correct it") from None
    whole = [name for name, members in nodes.items() if members and members <= names]
    return whole if names and names == set().union(*(nodes[name] for name in whole)) else None


def features(fields: ForeignFields, nodes: Nodes) -> dict[str, list[str]]:
    """Return the features of each NodeSet from workerFeatures, and report them; those over a part of a NodeSet are left out."""
    found: dict[str, list[str]] = {}
    for number in fields.indexes("workerFeatures"):
        here = f"workerFeatures[{number}]"
        name = fields.peek(f"{here}.name", str) or ""
        sets = covered(fields.peek(f"{here}.hostlistExpr", str) or "", nodes, fields.where(f"{here}.hostlistExpr"))
        if sets is None:
            fields.left(here, _PART.replace("a partition over it", "give it the feature"))
            continue
        for each in sets:
            found.setdefault(each, []).append(name)
        for key in ("name", "hostlistExpr", "nodesetName"):
            fields.carried(f"{here}.{key}", str, f"the feature {name} of NodeSets {', '.join(sets)}")
    return found


def partitions(fields: ForeignFields, nodes: Nodes, feature_sets: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return spec.partitions; empty for the default, which is one partition over all nodes. `feature_sets`: features by the name of their nodeset."""
    kind = fields.peek(f"{_HERE}.configType", str) or "default"
    fields.ours(f"{_HERE}.configType", "spec.partitions are data, and not lines")
    if kind == "custom":
        fields.left(f"{_HERE}.partitions", "configType is custom, so they are not in use")
        return _from_lines(fields, nodes, feature_sets)
    if kind == "structured":
        fields.left(f"{_HERE}.rawConfig", "configType is structured, so they are not in use")
        return _structured(fields, nodes)
    fields.left(
        _HERE, f"configType is {kind}, so it is not in use: here the default is one partition main over all nodes"
    )
    return []


def _from_lines(fields: ForeignFields, nodes: Nodes, feature_sets: Mapping[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number in fields.indexes(f"{_HERE}.rawConfig"):
        path = f"{_HERE}.rawConfig[{number}]"
        place = fields.where(path)
        text = fields.read(path)
        for line in logical_lines(text):
            if line.rest or line.include or not line.pairs or line.pairs[0][0].lower() != "partitionname":
                fields.report.left(place, text[:120], "it is not a line that begins with PartitionName=")
            elif partition := _from_line(line, place, nodes, feature_sets, fields):
                found.append(partition)
    return found


def _from_line(
    line: LogicalLine, place: str, nodes: Nodes, feature_sets: Mapping[str, str], fields: ForeignFields
) -> dict[str, Any] | None:
    values = {key.lower(): value for key, value in line.pairs}
    said, made = values.get("nodes", ""), dict[str, Any]()
    if said.upper() != "ALL":
        parts = [each for each in said.split(",") if each]
        if parts and all(each in feature_sets for each in parts):
            made["features"] = [feature_sets[each] for each in parts]
        else:
            made["nodeSets"] = parts if parts and all(each in nodes for each in parts) else covered(said, nodes, place)
        if not made.get("features") and not made.get("nodeSets"):
            for key, value in line.pairs:
                fields.report.left(place, shown(key, value), _PART)
            return None
    report_options(line.pairs, place, fields.report)
    return {"name": values["partitionname"], **made, **_options(line.pairs)}


def _structured(fields: ForeignFields, nodes: Nodes) -> list[dict[str, Any]]:
    found = []
    for number in fields.indexes(f"{_HERE}.partitions"):
        here = f"{_HERE}.partitions[{number}]"
        refs = [str(each) for each in fields.peek(f"{here}.nodeSetRefs", list) or []]
        if not fields.peek(f"{here}.isAll", bool) and not set(refs) & nodes.keys():
            fields.left(here, "no NodeSet of the objects belongs to it, and spec.partitions would give it all of them")
            continue
        made: dict[str, Any] = {"name": fields.carried(f"{here}.name", str, "spec.partitions[].name")}
        if not fields.carried(f"{here}.isAll", bool, "a partition without nodeSets, which has all of them"):
            made["nodeSets"] = [each for each in refs if each in nodes]
        fields.carried(f"{here}.nodeSetRefs", list, "spec.partitions[].nodeSets")
        for each in refs:
            if each not in nodes:
                fields.report.left(
                    fields.place, f"spec.{here}.nodeSetRefs: {each}", "no NodeSet of the objects has this name"
                )
        fields.left(f"{here}.topologyRef", "a cluster has one topology: see spec.topology")
        text = fields.read(f"{here}.config")
        for line in logical_lines(text):
            report_options(line.pairs, fields.where(f"{here}.config"), fields.report)
            if line.rest:
                fields.report.left(fields.where(f"{here}.config"), line.rest[:120], "Slurm reads Key=Value only")
            made |= _options(line.pairs)
        found.append(made)
    return found


def _options(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    values = {key.lower(): value for key, value in pairs}
    flags = {key: True for key in ("default", "hidden") if is_yes(values, key)}
    return {**flags, "options": options_of(pairs)}
