"""All objects of one cluster of Slinky as a SlurmCluster and NodeSets."""

from collections.abc import Mapping, Sequence
from typing import Any

from soperator.importers.parts.fields import ForeignFields, ForeignObject, in_order, objects_of_cluster
from soperator.importers.parts.names import cluster_label, nodeset_name
from soperator.importers.parts.report import KEEP, Imported, ImportReport, UnreadableInputError, our_object
from soperator.importers.slinky import pods, reasons, services
from soperator.importers.slinky.config import config, referenced
from soperator.importers.slinky.nodesets import belongs, node_set, slurm_name
from soperator.importers.slinky.partitions import own_partition

GROUP = "slinky.slurm.net"
_KINDS = ("Controller", "NodeSet", "LoginSet", "RestApi", "Accounting", "Token")
Parts = Mapping[str, list[ForeignFields]]


def import_slinky(objects: Sequence[ForeignObject]) -> Imported:
    """Return our objects, and an entry for every field of the given ones; raises UnreadableInputError for objects of another kind or shape."""
    report = ImportReport()
    mine, controller = objects_of_cluster(objects, GROUP, _KINDS, reasons.OTHER_KINDS)
    fields = ForeignFields(controller.place, controller.data, report)
    made = _converted(fields, controller, mine, _config_maps(objects, controller.namespace))
    _report_others(objects, referenced(fields), report)
    return Imported(tuple(made), in_order(report.entries, objects))


def _converted(
    fields: ForeignFields,
    controller: ForeignObject,
    mine: Sequence[ForeignObject],
    maps: Mapping[str, Mapping[str, str]],
) -> list[dict[str, Any]]:
    report = fields.report
    if fields.peek("external", bool):
        message = f"{fields.where('external')}: true: slurmctld runs elsewhere, and the import would make a second one: NodeSets cannot join it yet"
        raise UnreadableInputError(message)
    name = _name(fields, controller)
    parts = {
        kind: [ForeignFields(each.place, each.data, report) for each in mine if each.kind == kind] for kind in _KINDS
    }
    sets = {
        each.name: at
        for each, at in zip((each for each in mine if each.kind == "NodeSet"), parts["NodeSet"], strict=True)
    }
    sets = {old: each for old, each in sets.items() if belongs(each, controller.name)}
    logins = [each for each in parts["LoginSet"] if belongs(each, controller.name)]
    for each in logins[1:]:
        each.left("", "a cluster has one group of login nodes: raise login.replicas")
        each.rest(reasons.LOGIN)
    shared = pods.mounts(logins[0], "login") if logins else []
    specs, names, own = _node_sets(sets, shared, report)
    made_config, partitions, enforce = config(fields, maps, names)
    spec = {
        **_login(logins[:1]),
        "controller": _controller(fields),
        "jail": {"submounts": shared},
        "partitions": [*own, *partitions],
        "config": made_config,
        **_rest(parts, controller.name),
    }
    spec["accounting"], slurmdbd = _accounting(fields, parts["Accounting"])
    if spec["accounting"]:
        spec["accounting"]["enforce"] = enforce
    elif enforce:
        reason = "without accounting nothing is enforced: set spec.accounting, with enforce"
        report.left(fields.where("extraConf"), f"AccountingStorageEnforce={','.join(enforce)}", reason)
    made_config["extraLines"]["slurmdbd"] = slurmdbd
    fields.rest(reasons.CONTROLLER)
    report.check(
        f"SlurmCluster {name}",
        "spec.jail",
        "login nodes and workers share one root, which is new: bring users and software into it",
    )
    if not spec["partitions"]:
        reason = "no partition is carried over: the operator makes one, main, over all nodes"
        report.check(f"SlurmCluster {name}", "spec.partitions", reason)
    members = [our_object("NodeSet", each, {"clusterRef": {"name": name}, **made}) for each, made in specs.items()]
    return [our_object("SlurmCluster", name, spec), *members]


def _name(fields: ForeignFields, controller: ForeignObject) -> str:
    """Return the name of the SlurmCluster: that of Slurm, which is by default made of namespace and name."""
    said = fields.peek("clusterName", str) or ""
    name = cluster_label(said or controller.name)
    if said == name:
        fields.carried("clusterName", str, "metadata.name of the SlurmCluster")
    elif said:
        fields.check("clusterName", str, f"now {name}: records in the database have the former name")
    else:
        reason = f"now {name}: without clusterName the former name in the database is {controller.namespace or 'NAMESPACE'}_{controller.name}"
        fields.report.check(fields.place, "metadata.name", reason)
    return name


def _node_sets(
    sets: Mapping[str, ForeignFields], shared: list[dict[str, Any]], report: ImportReport
) -> tuple[dict[str, dict[str, Any]], dict[str, str], list[dict[str, Any]]]:
    """Return the specs by their names here, the names here by those in Slurm there, and the NodeSets' own partitions."""
    specs: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    partitions = []
    for name, fields in sets.items():
        old = slurm_name(fields, name)
        new = nodeset_name(old, specs)
        if new != old:
            report.check(
                fields.place,
                "metadata.name",
                f"now {new}: its nodes have other names, and so must scripts that name them",
            )
        if old in names:
            raise UnreadableInputError(
                f"{fields.place}: {old} is the name of another NodeSet in Slurm too: change its hostname"
            )
        names[old] = new
        specs[new] = node_set(fields, shared)
        own = own_partition(fields, old, new)
        partitions += [own] if own else []
        fields.rest(reasons.NODESET)
    return specs, names, partitions


def _controller(fields: ForeignFields) -> dict[str, Any]:
    claim, target = "persistence", "spec.controller.state"
    return {
        "resources": pods.resources(fields, "slurmctld", "spec.controller.resources"),
        "state": {
            "size": fields.carried(f"{claim}.resources.requests.storage", str, f"{target}.size"),
            "storageClassName": fields.carried(f"{claim}.storageClassName", str, f"{target}.storageClassName"),
        },
        "scheduling": pods.scheduling(fields, "spec.controller.scheduling"),
        "podTemplate": pods.pod_template(fields, "spec.controller.podTemplate"),
    }


def _login(logins: Sequence[ForeignFields]) -> dict[str, Any]:
    if not logins:
        return {"login": {"replicas": 0}}
    return {"login": services.login(logins[0]), "sssd": services.directory(logins[0])}


def _rest(parts: Parts, controller: str) -> dict[str, Any]:
    found = [each for each in parts["RestApi"] if belongs(each, controller)]
    tokens = [made for each in parts["Token"] if (made := services.token(each, each.place.partition(" ")[2]))]
    for each in found[1:]:
        each.left("", "a cluster has one REST for users: raise rest.users.replicas")
        each.rest(reasons.REST)
    if not found and not tokens:
        return {}
    users = services.rest_users(found[0]) if found else {KEEP: True}
    return {"rest": {"users": {**users, "tokens": tokens}}}


def _accounting(fields: ForeignFields, found: Sequence[ForeignFields]) -> tuple[dict[str, Any], str]:
    """Return spec.accounting and the lines of slurmdbd.conf of the Accounting that the Controller names."""
    wanted = fields.peek("accountingRef.name", str)
    spec: dict[str, Any] = {}
    lines = ""
    for each in found:
        if each.place == f"Accounting {wanted}":
            fields.carried("accountingRef", dict, "spec.accounting")
            spec, lines = services.accounting(each)
        else:
            each.left("", "the Controller does not name it")
            each.rest(reasons.ACCOUNTING)
    if wanted and not spec:
        fields.left("accountingRef", "no Accounting of the objects has this name: set spec.accounting")
    return spec, lines


def _config_maps(objects: Sequence[ForeignObject], namespace: str) -> dict[str, Mapping[str, str]]:
    maps = (each for each in objects if each.kind == "ConfigMap" and not each.group)
    here = (each for each in maps if not namespace or each.namespace in ("", namespace))
    return {each.name: {key: str(text) for key, text in (each.data.get("data") or {}).items()} for each in here}


def _report_others(objects: Sequence[ForeignObject], read: set[str], report: ImportReport) -> None:
    for each in objects:
        if each.group == GROUP and each.kind in reasons.OTHER_KINDS:
            report.left(each.place, "the object", reasons.OTHER_KINDS[each.kind])
        elif each.group != GROUP and each.kind == "ConfigMap" and each.name in read:
            report.ours(each.place, "the object", "its entries were read where the Controller names it")
            for key in each.data.get("binaryData") or {}:
                report.left(each.place, f"binaryData.{key}", "it is not text: put the file into the image")
        elif each.group != GROUP:
            report.left(each.place, "the object", f"the import reads objects of {GROUP}, and ConfigMaps that they name")
