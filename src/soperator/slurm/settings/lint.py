"""Checks whether a person's additions to Slurm's files are compatible with the operator's lines.

Slurm itself reports a contradiction late or never. Each problem names the line by its number.
"""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping

from soperator.api.base import Problem
from soperator.api.fields.config import ConfigEntry, content_problems, entries
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.slurm.conf import settings
from soperator.slurm.settings import keywords
from soperator.slurm.settings.managed import (
    ACCOUNTING,
    OWNED,
    OWNED_NODE,
    OWNED_PARTITION,
    SHARED,
    SLURMDBD,
    SLURMDBD_KNOWN,
    TOPOLOGY,
)
from soperator.slurm.settings.node_keywords import NODE
from soperator.slurm.settings.partition_keywords import PARTITION
from soperator.slurm.settings.topology_lint import switch_problems

#: The most problems reported of one text: the search for a similar word takes time, and a text has room for thousands of unknown ones.
MOST = 100


def lint_text(
    field: str, text: str, owned: Mapping[str, str], known: Collection[str] = (), what: str = "slurm.conf"
) -> list[Problem]:
    """Return the faults in extra lines of a file: owned settings, includes, lines that Slurm cannot read, and with `known` also unknown settings."""
    remedies = {key.lower(): remedy for key, remedy in owned.items()}
    names = {key.lower(): key for key in known}
    found: list[Problem] = []
    for setting in settings(text):
        if len(found) >= MOST:
            break
        where = f"{field}, line {setting.line}"
        if setting.rest:
            remedy = "Slurm reads Key=Value only: correct the line or remove it"
            found.append(Problem(where, setting.rest[:80], remedy))
        elif setting.key == "Include":
            remedy = "the pods do not have the included file: write its lines here"
            found.append(Problem(where, f"Include {setting.value}"[:80], remedy))
        elif remedy := remedies.get(setting.key.lower(), ""):
            found.append(Problem(where, f"{setting.key}={setting.value}"[:80], remedy))
        elif names and setting.key.lower() not in names:
            found.append(Problem(where, f"{setting.key}={setting.value}"[:80], _unknown(setting.key, names, what)))
    return found


def _unknown(key: str, names: Mapping[str, str], what: str) -> str:
    """Return the remedy for a key that Slurm does not know, with similar keys."""
    near = difflib.get_close_matches(key.lower(), names, 1, 0.8)
    meant = f": write {names[near[0]]}" if near else ": correct it or remove the line"
    return f"{what} of Slurm {keywords.VERSION} has no such setting{meant}"


def lint_plugins(field: str, text: str) -> list[Problem]:
    """Return the faults in extra lines of plugstack.conf; Slurm skips a line that it cannot read, or every srun fails."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        where, remedy = f"{field}, line {number}", ""
        if words[0] not in ("required", "optional") or len(words) < 2 or not words[1].startswith("/"):
            remedy = "write required or optional, the absolute path of the plugin, and its arguments"
        elif words[1].endswith(("/spank_jail.so", "/spank_container.so")):
            remedy = (
                "the operator loads this plugin itself: remove the line, and set its arguments in spec.jobContainers"
            )
        if remedy:
            found.append(Problem(where, line.strip()[:80], remedy))
    return found


def lint_entry(entry: ConfigEntry, text: str) -> Iterator[Problem]:
    """Yield what is wrong with the content of a file or script, whether it is in the spec or was read from elsewhere."""
    yield from content_problems(entry, text)
    if entry.file == "topology.conf":
        yield from lint_text(entry.field, text, {})
        yield from switch_problems(text, entry.field)


def lint_slurmdbd(field: str, text: str) -> list[Problem]:
    """Return what is wrong with extra lines of slurmdbd.conf: slurmdbd ends where it does not know a setting, and has no trial."""
    found = lint_text(field, text, SLURMDBD)
    known = {each.lower(): each for each in SLURMDBD_KNOWN}
    for setting in settings(text):
        near = difflib.get_close_matches(setting.key.lower(), known, 1, 0.8)
        if near and setting.key.lower() not in known and len(found) < MOST:
            remedy = f"slurmdbd.conf has no such setting: write {known[near[0]]}"
            found.append(Problem(f"{field}, line {setting.line}", f"{setting.key}={setting.value}"[:80], remedy))
    return found


def lint_cluster(spec: SlurmClusterSpec) -> list[Problem]:
    """Return the problems of a SlurmCluster's extra lines and partition options."""
    # Which settings another image's Slurm knows, only its own slurmctld can say, on which every change is tried.
    known = () if spec.images.slurm else keywords.SLURM_CONF
    owned = {**OWNED, **(ACCOUNTING if spec.accounting else {}), **(TOPOLOGY if spec.topology.is_on else {})}
    found = [
        *lint_text("spec.config.extraLines.slurm", spec.config.extra_lines.slurm, owned, known),
        *lint_text("spec.config.extraLines.cgroup", spec.config.extra_lines.cgroup, {}),
        *lint_text("spec.config.extraLines.gres", spec.config.extra_lines.gres, {}),
        *lint_slurmdbd("spec.config.extraLines.slurmdbd", spec.config.extra_lines.slurmdbd),
        *lint_plugins("spec.config.extraLines.plugstack", spec.config.extra_lines.plugstack),
        *(problem for each in entries(spec.config) if not each.ref for problem in lint_entry(each, each.source.text)),
    ]
    options = {} if spec.images.slurm else {each.lower(): each for each in PARTITION}
    for number, partition in enumerate(spec.partitions):
        for key, value in partition.options.items() if len(found) < MOST else ():
            found += _option(f"spec.partitions[{number}].options.{key}", key, value, options)
    return found


def lint_nodeset(spec: NodeSetSpec, has_own_slurm: bool = False) -> list[Problem]:
    """Return the problems of a NodeSet's extraConf.

    With a custom image (`has_own_slurm`) unknown keywords are not reported, because only its slurmd knows its keywords.
    """
    known = () if has_own_slurm or spec.image else NODE
    return [
        Problem("spec.extraConf", problem.value, problem.remedy)
        for problem in lint_text("spec.extraConf", spec.extra_conf, OWNED_NODE, known, "a node")
    ]


def shared_lines(extra: str, shared: Mapping[str, str] = SHARED) -> str:
    """Return the lines to append to the extra lines of slurm.conf, for lists (`shared`) with values of the operator and of a person.

    Slurm uses the last of two settings of one key. Without an extra setting of such a key there are no lines. An empty line comes first, because the
    extra lines may end in a backslash.
    """
    lines = []
    for key, ours in shared.items():
        theirs = [setting.value for setting in settings(extra) if setting.key.lower() == key.lower()]
        if theirs:
            values = dict.fromkeys([*ours.split(","), *(value for value in theirs[-1].split(",") if value)])
            lines.append(f"{key}={','.join(values)}\n")
    return "\n" + "".join(lines) if lines else ""


def _option(field: str, key: str, value: str, known: Mapping[str, str]) -> list[Problem]:
    owner = next((remedy for owned, remedy in OWNED_PARTITION.items() if owned.lower() == key.lower()), "")
    if owner:
        return [Problem(field, value, f"{owner}, and remove it from options")]
    if not re.fullmatch(r"[A-Za-z0-9_]+", key):
        return [Problem(field, value, "write the option's name as in slurm.conf, for example MaxTime")]
    if known and key.lower() not in known:
        near = difflib.get_close_matches(key.lower(), known, 1, 0.8)
        meant = f": write {known[near[0]]}" if near else ": correct it or remove it"
        return [Problem(field, value, f"a partition of Slurm {keywords.VERSION} has no such option{meant}")]
    if not value or re.search(r'[\s"#\\]', value):
        return [
            Problem(field, value, "the value is empty, or has spaces, quotation marks, # or backslashes: remove them")
        ]
    return []
