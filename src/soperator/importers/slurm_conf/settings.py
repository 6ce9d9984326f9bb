"""The settings of slurm.conf that describe no node and no partition, and cgroup.conf."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from soperator.importers.parts.enforce import enforced
from soperator.importers.parts.free_settings import add_free, classify
from soperator.importers.parts.names import cluster_label
from soperator.importers.parts.report import ImportReport, Outcome
from soperator.importers.slurm_conf import scripts
from soperator.importers.slurm_conf.files import SCRIPTS, SlurmFiles, SourceLine
from soperator.slurm import conf
from soperator.slurm.settings.managed import SHARED

#: Settings by which power saving is tuned, and the field of spec.powerSaving.
POWER = {"suspendtime": "suspendTime", "resumetimeout": "resumeTimeout", "suspendtimeout": "suspendTimeout"}
_LUA = {"jobsubmitplugins": "job_submit.lua", "clifilterplugins": "cli_filter.lua"}
_LONGEST_TIME = 65000


@dataclass
class ClusterSettings:
    """What the settings say about the cluster as a whole."""

    said_name: str = ""
    munge: bool = False
    controllers: int = 0
    accounted: bool = False
    enforce: list[str] = field(default_factory=list)
    hooks: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    lua: list[str] = field(default_factory=list)
    power: dict[str, str] = field(default_factory=dict)
    extra: list[conf.Line] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the SlurmCluster."""
        return cluster_label(self.said_name)


def read_settings(
    files: SlurmFiles, lines: Iterable[SourceLine], has_cloud: bool, report: ImportReport
) -> ClusterSettings:
    """Return what the lines say about the cluster, and report each setting; `has_cloud`: some nodes sleep until a job needs them."""
    found = ClusterSettings()
    for each in lines:
        if each.line.is_object and each.line.pairs[0][0].lower() in ("nodename", "nodeset", "partitionname"):
            continue
        if each.line.is_object:
            _report_object(each, report)
            continue
        for key, value, text in each.settings():
            if not _is_special(found, (each.place, key, value, text), files, has_cloud, report):
                add_free(found.extra, (each.place, key, value, text), report)
        if each.line.rest:
            report.left(each.place, each.line.rest[:120], "Slurm reads Key=Value only")
    return found


def _report_object(each: SourceLine, report: ImportReport) -> None:
    """ImportReport a line that describes another object, such as DownNodes: its first setting decides about all of them."""
    outcome, reason = classify(*each.line.pairs[0])
    for _, _, text in each.settings():
        report.left(each.place, text, reason if outcome is Outcome.LEFT else "slurm.conf has no such line")


def _is_special(
    found: ClusterSettings, setting: tuple[str, str, str, str], files: SlurmFiles, has_cloud: bool, report: ImportReport
) -> bool:
    """Record a setting that is a field of the cluster, and report it; False for any other."""
    place, key, value, text = setting
    match key.lower():
        case "clustername":
            found.said_name = value
            _report_name(found, place, text, report)
        case "authtype":
            found.munge = value.lower() == "auth/munge"
            report.carried(place, text, "spec.auth.type")
        case "slurmctldhost" | "controlmachine" | "backupcontroller":
            found.controllers += 1
            _report_controller(found, place, text, report)
        case "selecttype" if value.lower() == "select/linear":
            report.left(
                place,
                text,
                "jobs get CPUs and memory here: set OverSubscribe=EXCLUSIVE in options of a partition that gives whole nodes",
            )
        case "accountingstoragetype":
            _read_accounting(found, place, text, value, report)
        case "accountingstorageenforce":
            found.enforce = enforced(value, place, text, report)
        case "grestypes" | "slurmctldparameters":
            _read_shared(found, setting, report)
        case name if name in SCRIPTS:
            scripts.add_scripts(found.hooks, setting, files.matching(value, found.said_name), files, report)
        case name if name in _LUA:
            _read_lua(found, setting, files, report)
        case name if has_cloud and name in POWER:
            _read_power(found, setting, report)
        case _:
            return False
    return True


def _report_name(found: ClusterSettings, place: str, text: str, report: ImportReport) -> None:
    if found.name == found.said_name:
        report.carried(place, text, "metadata.name of the SlurmCluster")
    else:
        report.check(
            place,
            text,
            f"now {found.name}, because names in Kubernetes have other letters: records in the database have the former name",
        )


def _report_controller(found: ClusterSettings, place: str, text: str, report: ImportReport) -> None:
    if found.controllers == 1:
        report.ours(place, text, "slurmctld is a pod with an address of its own")
    elif found.controllers <= 4:
        report.check(place, text, "now spec.controller.replicas: the claim of controller.state must be ReadWriteMany")
    else:
        report.left(place, text, "a cluster has at most four slurmctlds")


def _read_accounting(found: ClusterSettings, place: str, text: str, value: str, report: ImportReport) -> None:
    found.accounted = value.lower() == "accounting_storage/slurmdbd"
    if found.accounted:
        report.carried(place, text, "spec.accounting")
    elif value.lower() in ("accounting_storage/none", "none", ""):
        report.ours(place, text, "without spec.accounting there is no accounting")
    else:
        report.left(place, text, "accounting needs slurmdbd: set spec.accounting")


def _read_shared(found: ClusterSettings, setting: tuple[str, str, str, str], report: ImportReport) -> None:
    place, key, value, text = setting
    ours = [*next(values for name, values in SHARED.items() if name.lower() == key.lower()).split(","), "shard"]
    rest = [each for each in value.split(",") if each and each not in ours]
    if rest:
        add_free(found.extra, (place, key, ",".join(rest), text), report)
    else:
        report.ours(place, text, "the operator sets these values")


def _read_lua(
    found: ClusterSettings, setting: tuple[str, str, str, str], files: SlurmFiles, report: ImportReport
) -> None:
    place, key, value, text = setting
    script = _LUA[key.lower()]
    names = [each for each in value.split(",") if each]
    if "lua" in names and not files.companion(script):
        report.left(place, f"{text} (lua)", f"{script} is not among the given files: add it to spec.config.files")
        names.remove("lua")
    elif "lua" in names:
        found.lua.append(script)
    if names:
        add_free(found.extra, (place, key, ",".join(names), text), report)


def _read_power(found: ClusterSettings, setting: tuple[str, str, str, str], report: ImportReport) -> None:
    place, key, value, text = setting
    least = {"suspendtime": 1, "resumetimeout": 30, "suspendtimeout": 1}[key.lower()]
    if value.isdecimal() and int(value) <= _LONGEST_TIME:
        found.power[POWER[key.lower()]] = f"{max(least, int(value))}s"
        report.carried(place, text, f"spec.powerSaving.{POWER[key.lower()]} of NodeSets with CLOUD nodes")
    else:
        report.left(place, text, f"powerSaving.{POWER[key.lower()]} is a number of seconds up to {_LONGEST_TIME}")
