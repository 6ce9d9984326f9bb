"""AccountingStorageEnforce as `spec.accounting.enforce`. Source: slurm.conf(5)."""

from typing import get_args

from soperator.api.fields.accounting import Enforced
from soperator.importers.parts.report import ImportReport

_ALL = ("associations", "limits", "qos", "safe", "wckeys")


def enforced(value: str, place: str, text: str, report: ImportReport) -> list[str]:
    """Return spec.accounting.enforce from AccountingStorageEnforce, and report what it cannot hold."""
    known, found = get_args(Enforced), list[str]()
    for each in filter(None, value.lower().split(",")):
        if each == "all":
            found += _ALL
        elif each in known:
            found.append(each)
        else:
            report.left(place, f"{text} ({each})", f"spec.accounting.enforce has only {', '.join(known)}")
    if found:
        report.carried(place, text, "spec.accounting.enforce")
    return list(dict.fromkeys(found))
