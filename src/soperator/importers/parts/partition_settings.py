"""The settings of a partition, and which of them may be entries of `options`. Source: slurm.conf(5), PARTITION CONFIGURATION."""

import re
from collections.abc import Iterable, Mapping

from soperator.importers.parts.free_settings import shown
from soperator.importers.parts.report import ImportReport
from soperator.slurm.settings import keywords
from soperator.slurm.settings.partition_keywords import PARTITION

_KNOWN = {key.lower(): key for key in PARTITION}
_FIELDS = {"default": "default", "hidden": "hidden", "nodes": "nodeSets", "partitionname": "name"}
_LONGEST = 1024


def options_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return those settings that may be options, by the names in slurm.conf."""
    return {
        _KNOWN[key.lower()]: value
        for key, value in pairs
        if key.lower() not in _FIELDS and not option_fault(key, value)
    }


def is_yes(values: Mapping[str, str], key: str) -> bool:
    """Return whether a setting is on; `values` has lower-case keys."""
    return values.get(key, "").upper() in ("YES", "TRUE", "1")


def option_fault(key: str, value: str) -> str:
    """Return why a setting cannot be carried over; empty if it can."""
    name = key.lower()
    if name in _FIELDS:
        return ""
    if name == "allocnodes":
        return "login nodes have other names here: limit the partition by AllowGroups or AllowAccounts"
    if name not in _KNOWN:
        return f"a partition of Slurm {keywords.VERSION} has no such option"
    if not value or re.search(r'[\s"#\\]', value) or len(value) > _LONGEST:
        return "the value is empty, too long, or has spaces, quotation marks, # or backslashes"
    return ""


def report_options(pairs: Iterable[tuple[str, str]], place: str, report: ImportReport) -> None:
    """Report what becomes of each setting of a partition."""
    for key, value in pairs:
        if fault := option_fault(key, value):
            report.left(place, shown(key, value), fault)
        else:
            report.carried(place, shown(key, value), f"spec.partitions[].{_FIELDS.get(key.lower(), 'options')}")
