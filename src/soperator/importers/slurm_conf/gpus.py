"""The GPUs of NodeSets, from Gres of the nodes' lines and from gres.conf. Source: gres.conf(5)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from soperator.importers.parts.gres import gres_items
from soperator.importers.parts.report import ImportReport
from soperator.importers.slurm_conf.files import SourceLine
from soperator.importers.slurm_conf.nodes import NodeGroup, expanded

_AMD = re.compile(r"rsmi|/dev/dri|amd", re.IGNORECASE)
_NVIDIA = re.compile(r"nvml|nvidia", re.IGNORECASE)
_OPERATOR = "the operator writes gres.conf from spec.gpu of the NodeSets"
_MACHINE = "a pod has the GPUs that the device plugin gives it, with numbers of its own"
_OTHER = (
    "the operator counts GPUs and shards only: add lines to spec.config.extraLines.gres, which then replace its own"
)


@dataclass(frozen=True)
class VendorHint:
    """The vendor that a line of gres.conf shows, for some nodes or, without names, for all."""

    vendor: str
    nodes: frozenset[str] = frozenset()


def read_gres_conf(lines: Iterable[SourceLine], report: ImportReport) -> list[VendorHint]:
    """Return what gres.conf says about vendors, and report each of its settings; raises UnreadableInputError for an invalid host list."""
    hints: list[VendorHint] = []
    for each in lines:
        said = {key.lower(): value for key, value in each.line.pairs}
        names = frozenset(expanded(said["nodename"], f"{each.place}: NodeName")) if "nodename" in said else frozenset()
        text = " ".join(
            (said.get("autodetect", ""), said.get("file", "") + said.get("multiplefiles", ""), said.get("flags", ""))
        )
        if vendor := "amd" if _AMD.search(text) else "nvidia" if _NVIDIA.search(text) else "":
            hints.append(VendorHint(vendor, names))
        _report_line(each, said.get("name", "gpu").lower(), report)
    return hints


def _report_line(each: SourceLine, name: str, report: ImportReport) -> None:
    for key, _, text in each.settings():
        if name not in ("gpu", "shard"):
            report.left(each.place, text, _OTHER)
        elif key.lower() in ("autodetect", "name", "nodename", "type", "count"):
            report.ours(each.place, text, _OPERATOR)
        elif key.lower() in ("file", "multiplefiles", "cores", "links", "flags"):
            report.ours(each.place, text, _MACHINE)
        else:
            report.left(each.place, text, "the operator has no such setting of GPUs")
    if each.line.rest or each.line.include:
        report.left(
            each.place,
            (each.line.rest or f"Include {each.line.include}")[:120],
            "it is not read here: write its lines into gres.conf",
        )


def gpu_of(group: NodeGroup, hints: Sequence[VendorHint], report: ImportReport) -> dict[str, Any]:
    """Return spec.gpu of a NodeSet, empty without GPUs, and report each part of its Gres."""
    gpu: dict[str, Any] = {}
    for item, name, kind, count in gres_items(group.shape.gres):
        setting, place = f"Gres={item}", f"NodeSet {group.name}"
        if name == "gpu" and count and not gpu:
            vendor, is_known = _vendor(group, hints)
            gpu = {"vendor": vendor, "count": count, "type": kind}
            report.carried(place, setting, "spec.gpu")
            if not is_known:
                report.check(
                    place,
                    f"spec.gpu.vendor={vendor}",
                    "no line of gres.conf names the vendor: correct it if they are amd",
                )
        elif name == "shard" and gpu and count % gpu["count"] == 0:
            gpu["shards"] = count
            report.carried(place, setting, "spec.gpu.shards")
        elif name == "gpu":
            report.left(place, setting, "the nodes of a NodeSet have one type of GPUs: this one is not counted")
        elif name == "shard":
            report.left(place, setting, "spec.gpu.shards is a multiple of the number of GPUs, and needs them before it")
        else:
            report.left(place, setting, _OTHER)
    return gpu


def _vendor(group: NodeGroup, hints: Sequence[VendorHint]) -> tuple[str, bool]:
    mine = [each for each in hints if each.nodes & set(group.nodes)] or [each for each in hints if not each.nodes]
    return (mine[0].vendor, True) if mine else ("nvidia", False)
