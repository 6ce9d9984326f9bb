"""Names of our objects from the names of another system, which may have other letters and lengths."""

import re
from collections.abc import Container

from soperator.api.validation.cel_rules import RESERVED_NODESETS

CLUSTER_LENGTH, NODESET_LENGTH = 30, 40


def dns_label(text: str, length: int, default: str) -> str:
    """Return a name of lower-case letters, digits and dashes that is as close as possible to the text; `default` if nothing is left."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return plain[:length].rstrip("-") or default


def cluster_label(text: str) -> str:
    """Return a name for a SlurmCluster, which begins with a letter."""
    name = dns_label(text, CLUSTER_LENGTH, "slurm")
    return name if name[0].isalpha() else dns_label(f"slurm-{name}", CLUSTER_LENGTH, "slurm")


def nodeset_name(text: str, taken: Container[str]) -> str:
    """Return a name for a NodeSet that is neither taken nor reserved, and does not end in a number after a dash, as a node of another one would."""
    stem = re.sub(r"(-[0-9]+)+$", "", dns_label(text, NODESET_LENGTH - 4, "node")) or "node"
    name, number = stem, 0
    while name in taken or name in RESERVED_NODESETS:
        number += 1
        name = f"{stem}-{_letters(number)}"
    return name


def _letters(number: int) -> str:
    """Return b, c, …, z, ba, bb, … for 1, 2, …"""
    digits = ""
    while True:
        number, digit = divmod(number, 26)
        digits = chr(ord("a") + digit) + digits
        if not number:
            return digits
