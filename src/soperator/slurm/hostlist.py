"""Slurm's host lists: `worker-[0-2,5],login-0`.

Source: scontrol(1), `show hostnames`; ranges may be padded with zeros, and a name may hold several brackets.
"""

import re
from collections.abc import Iterator

_PIECE = re.compile(r"((?:[^,\[]|\[[^\]]*\])+)(?:,|$)")


def expand(text: str) -> list[str]:
    """The names of a host list, in its order; an empty one has none."""
    return [name for piece in _PIECE.findall(text) for name in _names(piece)]


def _names(piece: str) -> Iterator[str]:
    before, bracket, rest = piece.partition("[")
    if not bracket:
        yield piece
        return
    ranges, _, after = rest.partition("]")
    for each in ranges.split(","):
        low, _, high = each.partition("-")
        for number in range(int(low), int(high or low) + 1):
            for tail in _names(after) if after else ("",):
                yield f"{before}{number:0{len(low)}d}{tail}"
