"""Slurm's configuration in a Controller of Slinky: its own lines, and files and scripts in ConfigMaps."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from soperator.api.fields.config import OWNED_FILES
from soperator.importers.parts.cgroup import cgroup_lines
from soperator.importers.parts.enforce import enforced
from soperator.importers.parts.fields import ForeignFields
from soperator.importers.parts.free_settings import add_free, shown
from soperator.importers.parts.plugstack import plugin_lines
from soperator.importers.parts.report import ImportReport
from soperator.importers.slinky.partitions import Names, feature_sets, partition_of_line
from soperator.slurm import conf

Maps = Mapping[str, Mapping[str, str]]
_SCRIPTS = {
    "prologScriptRefs": "prolog",
    "epilogScriptRefs": "epilog",
    "prologSlurmctldScriptRefs": "prologSlurmctld",
    "epilogSlurmctldScriptRefs": "epilogSlurmctld",
}
_LINES: Mapping[str, tuple[str, Callable[[str, str, ImportReport], str]]] = {
    "cgroup.conf": ("cgroup", cgroup_lines),
    "plugstack.conf": ("plugstack", plugin_lines),
}
_LONGEST = 65536


def config(fields: ForeignFields, maps: Maps, names: Names) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """Return spec.config, the partitions of extraConf and spec.accounting.enforce, and report all of their settings.

    `maps` are the ConfigMaps by name, and `names` the names of the NodeSets.
    """
    extra, partitions, enforce = _extra_conf(fields, names)
    lines, files = {"slurm": extra}, list[dict[str, str]]()
    for place, name, text in _entries(fields, "configFileRefs", maps):
        if name in _LINES:
            key, read = _LINES[name]
            lines[key] = lines.get(key, "") + read(text, f"{place}, {name}", fields.report)
        elif name == "gres.conf":
            fields.report.ours(place, name, "the operator writes gres.conf from spec.gpu of the NodeSets")
        elif name in OWNED_FILES:
            fields.report.left(place, name, OWNED_FILES[name])
        elif name.startswith("topology."):
            fields.report.left(place, name, "set spec.topology, with labels of Kubernetes Nodes as its levels")
        elif len(text) > _LONGEST:
            fields.report.left(place, name, "it is longer than 64 KiB: name its ConfigMap in spec.config.files")
        else:
            files.append({"name": name, "text": text})
            fields.report.carried(place, name, "an entry of spec.config.files")
    hooks = {hook: _scripts(fields, refs, hook, maps) for refs, hook in _SCRIPTS.items()}
    return {"extraLines": lines, "files": files, **hooks}, partitions, enforce


def referenced(fields: ForeignFields) -> set[str]:
    """Return the names of the ConfigMaps that are read."""
    lists = ("configFileRefs", *_SCRIPTS)
    return {fields.peek(f"{refs}[{number}].name", str) or "" for refs in lists for number in fields.indexes(refs)}


def _extra_conf(fields: ForeignFields, names: Names) -> tuple[str, list[dict[str, Any]], list[str]]:
    extra: list[conf.Line] = []
    found: list[dict[str, Any]] = []
    enforce: list[str] = []
    lines = list(conf.logical_lines(fields.read("extraConf")))
    known = names, feature_sets(lines), dict[str, tuple[str, str]]()
    for line in lines:
        place, head = f"{fields.where('extraConf')}, line {line.number}", line.pairs[0][0].lower() if line.pairs else ""
        texts = [shown(key, value) for key, value in line.pairs]
        if head == "partitionname":
            partition = partition_of_line(line, place, known, fields.report)
            found += [partition] if partition else []
        elif head == "nodeset" and line.pairs[0][1] in known[1]:
            for text in texts:
                fields.report.ours(place, text, "partitions over it name the NodeSet or the feature")
        elif line.is_object:
            for text in texts:
                fields.report.left(place, text, "nodes and their states are not lines of slurm.conf here: see NodeSets")
        else:
            for (key, value), text in zip(line.pairs, texts, strict=True):
                if key.lower() == "accountingstorageenforce":
                    enforce = enforced(value, place, text, fields.report)
                else:
                    add_free(extra, (place, key, value, text), fields.report)
        if line.rest or line.include:
            reason = "Slurm reads Key=Value only, and the pods do not have included files"
            fields.report.left(place, (line.rest or f"Include {line.include}")[:120], reason)
    return conf.render(extra), found, enforce


def _entries(fields: ForeignFields, refs: str, maps: Maps) -> list[tuple[str, str, str]]:
    """Return the entries of the ConfigMaps that a list names: the place, the name and the text of each."""
    found = []
    for number in fields.indexes(refs):
        path = f"{refs}[{number}].name"
        name = fields.peek(path, str) or ""
        if name not in maps:
            fields.left(
                f"{refs}[{number}]", "no ConfigMap of the objects has this name: add its entries to spec.config"
            )
            continue
        for part in (path, f"{refs}[{number}].namespace"):
            fields.ours(part, "each of its entries has a line of its own")
        found += [(f"{fields.where(refs)}, {name}", key, text) for key, text in sorted(maps[name].items())]
    return found


def _scripts(fields: ForeignFields, refs: str, hook: str, maps: Maps) -> list[dict[str, str]]:
    """Return the scripts of a hook in the order in which Slurm runs them there, which is that of their names."""
    found = []
    for place, name, text in sorted(_entries(fields, refs, maps), key=lambda entry: entry[1]):
        label = re.sub(r"[^-._A-Za-z0-9]", "-", name).lstrip("-.")[:63]
        if not re.match(r"#! */\S", text) or len(text) > _LONGEST or not label:
            fields.report.left(
                place, name, "it does not begin with the line of an interpreter, or is longer than 64 KiB"
            )
        else:
            found.append({"name": label, "text": text})
            where = "slurmctld's container" if hook.endswith("Slurmctld") else "slurmd's container, outside the jail"
            fields.report.check(place, name, f"now spec.config.{hook}: it runs in {where}: what it uses must be there")
    return found
