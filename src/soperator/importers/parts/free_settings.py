"""The class of each setting of slurm.conf: carried over as a line of `spec.config.extraLines.slurm`, set by the operator, or left out.

The settings that the operator owns are those of `slurm.settings.managed`. Others are allowed as lines and still wrong there, because their meaning
depends on the machine that they come from: paths of logs and programs, limits of jobs, power saving.
"""

import difflib
import re
from collections.abc import Mapping
from types import MappingProxyType

from soperator.importers.parts.report import ImportReport, Outcome, ReportEntry
from soperator.slurm import conf
from soperator.slurm.settings import keywords
from soperator.slurm.settings.managed import ACCOUNTING, OWNED

_LIMITS = (
    "it follows from spec.jobs: see limits, which may be Cgroup if Nodes give pods a writable cgroup v2, and bindCpus"
)
_LOGS = "the daemons write their logs to the output of their pods"
_POWER = "power saving is spec.powerSaving of a NodeSet"
_CHECKS = "health checks are spec.health: write the program as one of its customChecks"
_SCRIPT = "it names a program of the former machine: put the program into the image of slurmctld, and add the line"
_KEYS = "the operator creates the keys"

_SUSPENSION = (
    *("SuspendProgram", "ResumeProgram", "ResumeFailProgram", "SuspendTime", "SuspendTimeout"),
    *("ResumeTimeout", "SuspendRate", "ResumeRate"),
)
#: Settings that the operator does not own, with what to report instead of a line.
SPECIAL: Mapping[str, tuple[Outcome, str]] = MappingProxyType(
    {
        "DownNodes": (Outcome.LEFT, "the state of a node is not configuration: set it with scontrol"),
        "SlurmdParameters": (
            Outcome.LEFT,
            "slurmd runs in a pod that the operator writes: see extraConf of the NodeSet",
        ),
        "SlurmctldLogFile": (Outcome.OURS, _LOGS),
        "SlurmdLogFile": (Outcome.OURS, _LOGS),
        "SlurmSchedLogFile": (Outcome.OURS, _LOGS),
        "SlurmctldSyslogDebug": (Outcome.OURS, _LOGS),
        "SlurmdSyslogDebug": (Outcome.OURS, _LOGS),
        "LogTimeFormat": (Outcome.OURS, _LOGS),
        "ProctrackType": (Outcome.OURS, _LIMITS),
        "TaskPlugin": (Outcome.OURS, _LIMITS),
        "JobAcctGatherType": (Outcome.OURS, _LIMITS),
        "JobAcctGatherParams": (Outcome.OURS, _LIMITS),
        "JobAcctGatherFrequency": (Outcome.OURS, _LIMITS),
        "HealthCheckProgram": (Outcome.LEFT, _CHECKS),
        "HealthCheckInterval": (Outcome.LEFT, _CHECKS),
        "HealthCheckNodeState": (Outcome.LEFT, _CHECKS),
        **dict.fromkeys(_SUSPENSION, (Outcome.LEFT, _POWER)),
        **{
            key: (Outcome.LEFT, f"add the script itself to spec.config.{key[0].lower()}{key[1:]}")
            for key in ("Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld", "TaskProlog", "TaskEpilog")
        },
        "JobCompPass": (Outcome.LEFT, "a ConfigMap is no place for a password: write records by accounting"),
        "RebootProgram": (Outcome.LEFT, "a pod does not reboot its machine: drain and reboot the Kubernetes Node"),
        "MailProg": (Outcome.LEFT, _SCRIPT),
        "UnkillableStepProgram": (Outcome.LEFT, _SCRIPT),
        "SlurmctldPrimaryOnProg": (Outcome.LEFT, _SCRIPT),
        "SlurmctldPrimaryOffProg": (Outcome.LEFT, _SCRIPT),
        "ResvProlog": (Outcome.LEFT, _SCRIPT),
        "ResvEpilog": (Outcome.LEFT, _SCRIPT),
        "JobCredentialPrivateKey": (Outcome.OURS, _KEYS),
        "JobCredentialPublicCertificate": (Outcome.OURS, _KEYS),
        "TmpFS": (Outcome.LEFT, "the operator mounts /tmp for each job: see tmpSize and submounts of the NodeSet"),
        "UsePAM": (
            Outcome.LEFT,
            "slurmd's container has no PAM configuration of the former machine: see spec.jobs and podTemplate",
        ),
        "TopologyPlugin": (
            Outcome.LEFT,
            "node names change: set spec.topology.type, with labels of Kubernetes Nodes as its levels",
        ),
        "FastSchedule": (Outcome.LEFT, "Slurm has removed it"),
        "SlurmctldPlugstack": (Outcome.LEFT, "Slurm has removed it"),
        "CryptoType": (Outcome.OURS, "it follows from auth.type"),
        "AccountingStorageLoc": (Outcome.LEFT, "Slurm has removed it: the database is in slurmdbd.conf"),
    }
)
_LOWER = {key.lower(): value for key, value in SPECIAL.items()}
_OWNED = {key.lower(): remedy for key, remedy in {**OWNED, **ACCOUNTING}.items()}
_KNOWN = {key.lower(): key for key in keywords.SLURM_CONF}
#: Values of these settings are not written into a report.
_SECRET = re.compile("pass(word|script)?$", re.IGNORECASE)


def shown(key: str, value: str) -> str:
    """Return a setting for the report, without the value of a password and without the end of a long value."""
    return f"{key}=(hidden)" if _SECRET.search(key) else f"{key}={value}"[:120]


def without_remedy(text: str) -> str:
    """Return why the operator owns a setting, without what to do with a line that sets it."""
    return re.sub(r"(: set that field)?[:,]( and)? remove the line$", "", text)


def classify(key: str, value: str) -> tuple[Outcome, str]:
    """Return the class of one setting of slurm.conf, and the reason. CARRIED and CHECK mean that it may be an extra line."""
    name = key.lower()
    if name in _LOWER:
        return _LOWER[name]
    if name in _OWNED:
        return Outcome.OURS, without_remedy(_OWNED[name])
    if name not in _KNOWN:
        near = difflib.get_close_matches(name, _KNOWN, 1, 0.8)
        meant = f": perhaps {_KNOWN[near[0]]} was meant" if near else ""
        return Outcome.LEFT, f"slurm.conf of Slurm {keywords.VERSION} has no such setting{meant}"
    if '"' in value or "\n" in value:
        return Outcome.LEFT, "its value contains a quotation mark or a line break, which a line cannot have"
    if re.search(r"(^|[\s=,:])/", value):
        return (
            Outcome.CHECK,
            "now a line of spec.config.extraLines.slurm: it names a path, which must be in the image or in the jail",
        )
    return Outcome.CARRIED, "spec.config.extraLines.slurm"


def add_free(extra: list[conf.Line], setting: tuple[str, str, str, str], report: ImportReport) -> None:
    """Add a setting (place, key, value, text) to the extra lines if it may be one, and report it."""
    place, key, value, text = setting
    outcome, reason = classify(key, value)
    reason = f"now {reason}" if outcome is Outcome.CARRIED else reason
    report.entries.append(ReportEntry(outcome, place, text, reason))
    if outcome in (Outcome.CARRIED, Outcome.CHECK):
        extra.append(conf.Line(((_KNOWN[key.lower()], value),)))


def free_lines(text: str, place: str, report: ImportReport) -> list[conf.Line]:
    """Return those lines of a text for slurm.conf that may be extra lines, and report every setting in it."""
    extra: list[conf.Line] = []
    for each in conf.logical_lines(text):
        here = f"{place}, line {each.number}"
        if each.include:
            report.left(here, f"Include {each.include}"[:120], "the pods do not have the included file: add its lines")
        for number, (key, value) in enumerate(each.pairs):
            if each.is_object and number:
                report.left(here, shown(key, value), "it belongs to the object of its line")
            else:
                add_free(extra, (here, key, value, shown(key, value)), report)
        if each.rest:
            report.left(here, each.rest[:120], "Slurm reads Key=Value only")
    return extra
