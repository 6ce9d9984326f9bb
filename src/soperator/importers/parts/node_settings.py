"""The attributes of a node in slurm.conf and in `slurmd --conf`, and what becomes of each. Source: slurm.conf(5), NODE CONFIGURATION."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from soperator.importers.parts.free_settings import shown
from soperator.importers.parts.report import ImportReport
from soperator.slurm.conf import logical_lines
from soperator.slurm.settings.node_keywords import NODE

#: What becomes of each attribute of a node: the field of the NodeSet, or why there is none.
FIELDS: Mapping[str, str] = {
    "cpus": "resources.limits.cpu",
    "procs": "resources.limits.cpu",
    "realmemory": "resources.limits.memory",
    "feature": "features",
    "features": "features",
    "weight": "weight",
}
_SEEN_BY_SLURMD = "slurmd reports what its pod has"
_PODS = "pods have addresses and names of their own"
OURS: Mapping[str, str] = {
    **dict.fromkeys(("boards", "sockets", "socketsperboard", "corespersocket", "threadspercore"), _SEEN_BY_SLURMD),
    **dict.fromkeys(("nodeaddr", "nodehostname", "port", "bcastaddr"), _PODS),
}
LEFT: Mapping[str, str] = {
    "tmpdisk": "Slurm does not count the disk of a pod: see tmpSize of the NodeSet",
    "reason": "it belongs to a state, and states are set with scontrol",
    "cpuspeclist": "the CPUs of a pod are not those of the machine",
}
#: Attributes for `slurmd --conf`.
EXTRA = ("CoreSpecCount", "CpuBind", "MemSpecLimit", "RestrictedCoresPerGPU", "TRESWeights")


_KNOWN = {key.lower() for key in NODE}
_EXTRA = {key.lower(): key for key in EXTRA}


def report_attribute(setting: tuple[str, str, str, str], whose: str, report: ImportReport) -> None:
    """Report what becomes of an attribute (place, key, value, text)."""
    place, key, value, text = setting
    name = key.lower()
    if name in FIELDS:
        report.carried(place, text, f"spec.{FIELDS[name]} {whose}")
    elif name == "gres":
        report.ours(place, text, "each part of it has an entry under its NodeSet")
    elif name == "state":
        _report_state(place, text, value, report)
    elif name in OURS:
        report.ours(place, text, OURS[name])
    elif name in LEFT:
        report.left(place, text, LEFT[name])
    elif name in _EXTRA:
        report.carried(place, text, f"spec.extraConf {whose}")
    else:
        report.left(place, text, "the operator sets it" if name in _KNOWN else "Slurm has no such attribute of a node")


def _report_state(place: str, text: str, value: str, report: ImportReport) -> None:
    if value.upper().startswith("CLOUD"):
        report.carried(place, text, "spec.powerSaving of the NodeSet")
    elif value.upper() in ("UNKNOWN", "IDLE"):
        report.ours(place, text, "a node has the state that its slurmd reports")
    else:
        report.left(place, text, "the state of a node is not configuration: set it with scontrol")


@dataclass
class NodeText:
    """What a text of attributes says about a NodeSet."""

    features: list[str] = field(default_factory=list)
    weight: int | None = None
    gres: str = ""
    extra: str = ""


def read_node_text(text: str, place: str, report: ImportReport) -> NodeText:
    """Return what attributes in one text say, as in `slurmd --conf`, and report each of them. The size of a node is that of its pod."""
    found = NodeText()
    for line in logical_lines(text):
        for key, value in line.pairs:
            name, said = key.lower(), shown(key, value)
            if name in ("cpus", "procs", "realmemory"):
                report.ours(place, said, "a node is as large as its pod: see spec.resources")
                continue
            if name in ("feature", "features"):
                found.features += [each for each in value.split(",") if each]
            elif name == "weight" and not value.isdecimal():
                report.left(place, said, "a weight is a whole number")
                continue
            elif name == "weight":
                found.weight = int(value)
            elif name == "gres":
                found.gres = value
            elif name in _EXTRA:
                found.extra = f"{found.extra} {_EXTRA[name]}={value}".strip()
            report_attribute((place, key, value, said), "of the NodeSet", report)
        if line.rest or line.include:
            report.left(place, (line.rest or f"Include {line.include}")[:120], "Slurm reads Key=Value only")
    return found
