"""Slurm's host lists: `worker-[0-2,5],login-0`.

Source: scontrol(1), `show hostnames`; ranges may be padded with zeros, and a name may hold several brackets.
"""

import re
from collections.abc import Iterable, Iterator

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


def compress(names: Iterable[str]) -> str:
    """The shortest host list of names that end in a number, in one order whatever theirs was: `a-[0-2,5],b-0`."""
    numbers: dict[str, list[int]] = {}
    plain: list[str] = []
    for name in set(names):
        head = name.rstrip("0123456789")
        tail = name[len(head) :]
        if tail and str(int(tail)) == tail:
            numbers.setdefault(head, []).append(int(tail))
        else:
            plain.append(name)
    ranges = {head: _ranges(sorted(found)) for head, found in numbers.items()}
    pieces = [f"{head}{each}" if each.isdecimal() else f"{head}[{each}]" for head, each in sorted(ranges.items())]
    return ",".join([*sorted(plain), *pieces])


def _ranges(numbers: list[int]) -> str:
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
