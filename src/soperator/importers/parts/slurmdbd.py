"""The settings of slurmdbd.conf that may be extra lines, and the ages of records. Source: slurmdbd.conf(5)."""

import re

from soperator.api.fields.accounting import AGE
from soperator.importers.parts.free_settings import without_remedy
from soperator.importers.parts.report import ImportReport
from soperator.slurm import conf
from soperator.slurm.settings.managed import SLURMDBD, SLURMDBD_KNOWN

#: The settings of slurmdbd.conf for the ages of records, and the field of spec.accounting.purge.
PURGES = {
    "purgeeventafter": "events",
    "purgejobafter": "jobs",
    "purgeresvafter": "reservations",
    "purgestepafter": "steps",
    "purgesuspendafter": "suspensions",
    "purgetxnafter": "transactions",
    "purgeusageafter": "usage",
}
_OWNED = {key.lower(): remedy for key, remedy in SLURMDBD.items()}
_KNOWN = {key.lower() for key in SLURMDBD_KNOWN}


def slurmdbd_line(key: str, value: str, source: tuple[str, str], report: ImportReport) -> list[conf.Line]:
    """Return the line of a setting, none if it cannot be one, and report it; `source` is its place and its text."""
    name = key.lower()
    if name.startswith("archive"):
        report.left(
            *source, "set spec.accounting.archive.claimName to a claim, to which slurmdbd then archives what it purges"
        )
    elif name in _OWNED:
        report.ours(*source, without_remedy(_OWNED[name]))
    elif name not in _KNOWN:
        report.left(*source, "slurmdbd.conf has no such setting")
    elif '"' in value or "\n" in value:
        report.left(*source, "its value contains a quotation mark or a line break, which a line cannot have")
    else:
        report.carried(*source, "spec.config.extraLines.slurmdbd")
        return [conf.Line(((key, value),))]
    return []


def purge_age(text: str) -> str:
    """Return an age such as 12months for `12month`, `12months` or `12`; empty if it has no such form."""
    match = re.fullmatch(r"([0-9]+)(hour|day|month)?s?", text.lower())
    age = f"{int(match[1])}{match[2] or 'month'}s" if match else ""
    return age if re.fullmatch(AGE, age) else ""
