"""The parts of a node's Gres, such as gpu:h100:8. Source: gres.conf(5)."""

import re
from collections.abc import Iterator

_GRES = re.compile(r"([A-Za-z_]\w*)(?::([A-Za-z_][\w.-]*))?(?::([0-9]+)([KMGTP]?))?(?:\(.*\))?", re.IGNORECASE)


def gres_items(gres: str) -> Iterator[tuple[str, str, str, int]]:
    """Yield text, name, type and count of each part; a part that Slurm would not read has no name."""
    for item in filter(None, re.split(r",(?![^(]*\))", gres)):
        if match := _GRES.fullmatch(item):
            factor = 1024 ** (" KMGTP".index(match[4].upper()) if match[4] else 0)
            yield item[:80], match[1].lower(), match[2] or "", int(match[3] or 1) * factor
        else:
            yield item[:80], "", "", 0
