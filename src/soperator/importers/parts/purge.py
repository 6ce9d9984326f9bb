"""How long slurmdbd keeps records, as slurmdbd.conf(5) writes it and as `spec.accounting.purge` does."""

import re

from soperator.api.fields.accounting import AGE


def purge_age(text: str) -> str:
    """Return an age such as 12months for `12month`, `12months` or `12`; empty if it has no such form."""
    match = re.fullmatch(r"([0-9]+)(hour|day|month)?s?", text.lower())
    age = f"{int(match[1])}{match[2] or 'month'}s" if match else ""
    return age if re.fullmatch(AGE, age) else ""
