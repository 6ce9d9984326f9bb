"""All objects of one cluster of the original as a SlurmCluster, NodeSets and HealthChecks."""

from collections.abc import Mapping, Sequence
from typing import Any

from soperator.importers.nebius import reasons
from soperator.importers.nebius.checks import health_check
from soperator.importers.nebius.cluster import cluster_spec, login_submounts
from soperator.importers.nebius.nodesets import WORKER, from_cluster, from_nodeset, has_workers
from soperator.importers.nebius.partitions import features, nodes_of
from soperator.importers.parts.fields import ForeignFields, ForeignObject, in_order, objects_of_cluster
from soperator.importers.parts.names import cluster_label, dns_label, nodeset_name
from soperator.importers.parts.report import Imported, ImportReport, our_object

GROUP = "slurm.nebius.ai"
_KINDS = ("SlurmCluster", "NodeSet", "ActiveCheck")


def import_nebius(objects: Sequence[ForeignObject]) -> Imported:
    """Return our objects, and an entry for every field of the given ones; raises UnreadableInputError for objects of another kind or shape."""
    report = ImportReport()
    mine, cluster = objects_of_cluster(objects, GROUP, _KINDS, reasons.OTHER_KINDS)
    made = _converted(cluster, mine, _config_maps(objects), report)
    _report_others(objects, mine, report)
    return Imported(tuple(made), in_order(report.entries, objects))


def _converted(
    cluster: ForeignObject, mine: Sequence[ForeignObject], texts: Mapping[str, Mapping[str, str]], report: ImportReport
) -> list[dict[str, Any]]:
    fields = ForeignFields(cluster.place, cluster.data, report)
    name = cluster_label(cluster.name)
    if name != cluster.name:
        report.check(cluster.place, "metadata.name", f"now {name}: records in the database have the former name")
    sets = {each.name: ForeignFields(each.place, each.data, report) for each in mine if each.kind == "NodeSet"}
    new_names = _new_names(sets, report)
    counts = {new_names[old]: each.peek("replicas", int) or 1 for old, each in sets.items()}
    if has_workers(fields):
        new_names[WORKER], counts[WORKER] = WORKER, fields.peek("slurmNodes.worker.size", int) or 1
    nodes, used = nodes_of(counts), {"filters": set[str](), "sources": set[str]()}
    shared, mine_features = login_submounts(fields, used), features(fields, nodes)
    specs = {
        new_names[old]: from_nodeset(each, mine_features.get(new_names[old], ()), shared) for old, each in sets.items()
    }
    if has_workers(fields):
        specs[WORKER] = from_cluster(fields, mine_features.get(WORKER, ()), shared, used)
    made = [our_object("SlurmCluster", name, cluster_spec(fields, nodes, shared, used))]
    made += [our_object("NodeSet", each, {"clusterRef": {"name": name}, **spec}) for each, spec in specs.items()]
    for each in (each for each in mine if each.kind == "ActiveCheck"):
        spec = health_check(ForeignFields(each.place, each.data, report), name, texts)
        made += [our_object("HealthCheck", dns_label(each.name, 40, "check"), spec)] if spec else []
    report.check(
        f"SlurmCluster {name}", "spec.jail", "the jail is new: copy users, homes and software from the former one"
    )
    return made


def _new_names(sets: Mapping[str, ForeignFields], report: ImportReport) -> dict[str, str]:
    found: dict[str, str] = {}
    for old, fields in sets.items():
        found[old] = nodeset_name(old, set(found.values()))
        if found[old] != old:
            report.check(
                fields.place,
                "metadata.name",
                f"now {found[old]}: its nodes have other names, and so must scripts that name them",
            )
    return found


def _config_maps(objects: Sequence[ForeignObject]) -> dict[str, Mapping[str, str]]:
    maps = (each for each in objects if each.kind == "ConfigMap" and not each.group)
    return {each.name: {key: str(text) for key, text in (each.data.get("data") or {}).items()} for each in maps}


def _report_others(objects: Sequence[ForeignObject], mine: Sequence[ForeignObject], report: ImportReport) -> None:
    for each in mine:
        if each.kind in reasons.OTHER_KINDS:
            report.left(each.place, "the object", reasons.OTHER_KINDS[each.kind])
    text = " ".join(entry.setting for entry in report.entries)
    for each in objects:
        if each.group == GROUP:
            continue
        if each.kind == "ConfigMap" and f"RefName: {each.name}" in text:
            report.ours(each.place, "the object", "its text was read where an object names it")
        else:
            report.left(each.place, "the object", f"the import reads objects of {GROUP}, and ConfigMaps that they name")
