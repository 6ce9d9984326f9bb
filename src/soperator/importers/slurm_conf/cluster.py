"""A whole Slurm on machines as a SlurmCluster and NodeSets."""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from soperator.api.base import SLURM_NAME
from soperator.importers.parts.cgroup import cgroup_lines
from soperator.importers.parts.plugstack import plugin_lines
from soperator.importers.parts.report import Imported, ImportReport, ReportEntry, our_object
from soperator.importers.slurm_conf import accounting, gpus, nodes, partitions, scripts
from soperator.importers.slurm_conf.files import (
    COMPANIONS,
    SlurmFiles,
    SourceLine,
    lines_of_companion,
    lines_with_includes,
)
from soperator.importers.slurm_conf.nodes import NodeGroup
from soperator.importers.slurm_conf.settings import ClusterSettings, read_settings
from soperator.slurm import conf

_LONGEST_FEATURE = 64
_TOPOLOGY = (
    "node names change here: give the Kubernetes Nodes labels of their switches or blocks, and name these labels in spec.topology.levels, "
    "with topology.type Tree or Block"
)


def import_slurm(files: SlurmFiles) -> Imported:
    """Return the objects and a report with each setting of the given files; raises UnreadableInputError for files that Slurm could not read."""
    report = ImportReport()
    lines = lines_with_includes(files)
    table = nodes.read_nodes(lines, report)
    named = partitions.read_partitions(lines, table, report)
    groups = nodes.grouped(table, partitions.membership(named))
    has_cloud = any(each.shape.on_demand for each in groups)
    found = read_settings(files, lines, has_cloud, report)
    hints = gpus.read_gres_conf(lines_of_companion(files, "gres.conf"), report)
    members = [_node_set(found, each, gpus.gpu_of(each, hints, report), report) for each in groups]
    spec = _cluster_spec(found, files, report)
    spec["partitions"] = [partitions.partition_spec(each, groups) for each in named]
    _report_rest(files, lines, report)
    _report_next_steps(found.name, report)
    order = list(
        dict.fromkeys([files.place(files.main), *(each.file for each in lines), *map(files.place, files.texts)])
    )
    entries = sorted(report.entries, key=lambda each: _position(each, order))
    return Imported((our_object("SlurmCluster", found.name, spec), *members), tuple(entries))


def _position(entry: ReportEntry, order: Sequence[str]) -> tuple[int, int]:
    """Return where an entry belongs: settings in the order of the files, and then what concerns an object."""
    file, _, number = entry.place.partition(", line ")
    return (order.index(file), int(number or 0)) if file in order else (len(order), 0)


def _cluster_spec(found: ClusterSettings, files: SlurmFiles, report: ImportReport) -> dict[str, Any]:
    database: dict[str, Any] = {}
    slurmdbd = ""
    dbd_lines = lines_of_companion(files, "slurmdbd.conf")
    if found.accounted:
        database, slurmdbd = accounting.accounting_spec(found.name, dbd_lines, report)
        database["enforce"] = found.enforce
    else:
        reason = "slurm.conf has no AccountingStorageType=accounting_storage/slurmdbd, so accounting is off"
        for each in dbd_lines:
            for text in each.texts():
                report.left(each.place, text, reason)
    extra = {
        "slurm": conf.render(found.extra),
        "cgroup": _of_companion(files, "cgroup.conf", cgroup_lines, report),
        "slurmdbd": slurmdbd,
        "plugstack": _of_companion(files, "plugstack.conf", plugin_lines, report),
    }
    return {
        "auth": {"type": "munge" if found.munge else ""},
        "controller": {"replicas": min(found.controllers, 4) if found.controllers > 1 else None},
        "config": {"extraLines": extra, "files": scripts.site_files(files, found.lua, report), **found.hooks},
        "accounting": database,
    }


def _of_companion(
    files: SlurmFiles, name: str, read: Callable[[str, str, ImportReport], str], report: ImportReport
) -> str:
    path = files.companion(name)
    return read(files.texts[path], files.place(path), report) if path else ""


def _node_set(found: ClusterSettings, group: NodeGroup, gpu: dict[str, Any], report: ImportReport) -> dict[str, Any]:
    shape, place = group.shape, f"NodeSet {group.name}"
    _report_names(group, place, report)
    limits = {"cpu": str(shape.cpus) if shape.cpus else "", "memory": f"{shape.memory}Mi" if shape.memory else ""}
    if all(limits.values()):
        reason = (
            "this is the whole machine: lower it to what the Kubernetes Node can allocate, or the pods stay Pending"
        )
        report.check(place, f"spec.resources: cpu {shape.cpus}, memory {shape.memory}Mi", reason)
    else:
        reason = "the files do not say both CPUs and memory: set them, so that Slurm allocates what a pod has"
        report.check(place, "spec.resources", reason)
    size: dict[str, Any] = {"replicas": len(group.nodes)}
    if shape.on_demand and all(limits.values()):
        size = {"powerSaving": {"maxNodes": len(group.nodes), **found.power}}
    elif shape.on_demand:
        reason = "powerSaving needs CPUs and memory in spec.resources, which the files do not say"
        report.left(place, "State=CLOUD", reason)
    spec = {
        **size,
        "resources": {"limits": limits},
        "gpu": gpu,
        "features": _features(shape.features, place, report),
        "weight": shape.weight if shape.weight > 1 else None,
        "extraConf": shape.extra,
    }
    return our_object("NodeSet", group.name, {"clusterRef": {"name": found.name}, **spec})


def _report_names(group: NodeGroup, place: str, report: ImportReport) -> None:
    first, last = group.nodes[0], group.nodes[-1]
    former = f"{first} to {last}" if len(group.nodes) > 1 else first
    if group.nodes == tuple(f"{group.name}-{number}" for number in range(len(group.nodes))):
        report.carried(place, former, "nodes of the same names")
    else:
        new = f"{group.name}-0 to {group.name}-{len(group.nodes) - 1}" if len(group.nodes) > 1 else f"{group.name}-0"
        report.check(place, former, f"now {new}: scripts that name nodes must name the new ones")


def _features(said: Sequence[str], place: str, report: ImportReport) -> list[str]:
    found = []
    for each in said:
        if re.fullmatch(SLURM_NAME, each) and len(each) <= _LONGEST_FEATURE:
            found.append(each)
        else:
            report.left(place, f"Feature={each}"[:120], "a feature has at most 64 letters, digits, '_', '.' and '-'")
    return found


def _report_rest(files: SlurmFiles, lines: Sequence[SourceLine], report: ImportReport) -> None:
    """ImportReport the topology, and every given file that nothing has read."""
    for name in ("topology.conf", "topology.yaml"):
        path = files.companion(name)
        for number, line in enumerate(files.texts[path].split("\n") if path else (), 1):
            if line.partition("#")[0].strip():
                report.left(f"{files.place(path)}, line {number}", line.strip()[:120], _TOPOLOGY)
    places = {each.place.partition(", line")[0] for each in report.entries} | {each.file for each in lines}
    named = "".join(each.setting for each in report.entries)
    for path, text in files.texts.items():
        is_read = files.place(path) in places or f"({files.place(path)})" in named or not text.strip()
        if not is_read and (path != files.main and PurePosixPath(path).name not in COMPANIONS):
            report.left(files.place(path), "the file", "no setting of slurm.conf names it")
        elif not is_read and PurePosixPath(path).name.endswith(".lua"):
            report.left(files.place(path), "the file", "no setting of slurm.conf enables its plugin")


def _report_next_steps(cluster: str, report: ImportReport) -> None:
    place = f"SlurmCluster {cluster}"
    report.check(
        place,
        "spec.login.rootAuthorizedKeys",
        "nobody can log in yet: add a public key of an administrator, or a directory in spec.sssd",
    )
    report.check(
        place,
        "spec.jail",
        "the jail is new: bring users, homes and software, or mount the former file systems as jail.submounts",
    )
