"""Slurm's host lists, such as `worker-[0-2,5],login-0`, parsed and written here, because the pure packages cannot call scontrol.

Source: scontrol(1), `show hostnames`; ranges may be padded with zeros, and a name may hold several brackets.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

#: The most names in a host list; slurmctld itself knows at most 65,533 nodes.
MOST = 1 << 16

#: The longest part of a name, and the most brackets in one.
_LONGEST, _BRACKETS = 255, 8
_RANGE = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?")
_MARKS = re.compile(r"[\[\],]")


def number(text: str) -> int | None:
    """Return the number that a text of ASCII digits without leading zeros represents; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and str(int(text)) == text else None


def expand(text: str, most: int = MOST) -> list[str]:
    """Return the names of a host list, in its order; an empty one has none.

    Raises ValueError for more than `most` names, and for a text that is not a host list.
    """
    found = list(islice((name for piece in _pieces(text) for name in _names(piece)), most + 1))
    if len(found) > most:
        raise ValueError(f"a host list of more than {most} names: {text[:80]}")
    return found


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts between commas outside of brackets, without empty ones."""
    begin, inside = 0, False
    for mark in _MARKS.finditer(text):
        match mark[0]:
            case "," if not inside:
                yield from filter(None, [text[begin : mark.start()]])
                begin = mark.end()
            case "[" | "]":
                if inside != (mark[0] == "]"):
                    raise ValueError(f"not a host list, because its brackets do not match: {text[:80]}")
                inside = not inside
    if inside:
        raise ValueError(f"not a host list, because its brackets do not match: {text[:80]}")
    yield from filter(None, [text[begin:]])


def _names(piece: str, brackets: int = 0) -> Iterator[str]:
    before, bracket, rest = piece.partition("[")
    if len(before) > _LONGEST or brackets > _BRACKETS:
        raise ValueError(f"not the name of a host: {piece[:80]}")
    if not bracket:
        yield piece
        return
    ranges, _, after = rest.partition("]")
    for each in ranges.split(","):
        low, _, high = each.partition("-")
        if not _RANGE.fullmatch(each):
            raise ValueError(f"not the number of a host: {each[:80]}")
        for number in range(int(low), int(high or low) + 1):
            for tail in _names(after, brackets + 1) if after else ("",):
                yield f"{before}{number:0{len(low)}d}{tail}"


def compress(names: Iterable[str]) -> str:
    """Return the shortest host list of names that end in a number, such as `a-[0-2,5],b-0`; it does not depend on their order."""
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
