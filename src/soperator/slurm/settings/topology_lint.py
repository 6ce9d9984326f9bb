"""Checks whether slurmctld can read a person's topology.conf, because slurmctld exits on a faulty file and reports little about the cause.

Source: topology/tree/switch_record.c of 24.11.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from soperator.api.base import Problem
from soperator.slurm import conf, hostlist

_LONGEST = 64
#: The most switches that all lines together may name as children: a file has room for about two thousand lines, and each switch has one parent.
MOST = 8192
#: The most problems reported.
_TOLD = 100


def switch_problems(text: str, field: str) -> list[Problem]:
    """Return the faults in the switches of a topology.conf, which stands at this field; `lint_text` reports lines that Slurm cannot read."""
    try:
        lines = [each for each in conf.parse(text) if each.get("SwitchName")]
    except conf.ConfError:
        return []
    counts = Counter(each.get("SwitchName") for each in lines)
    below: dict[str, Sequence[str]] = {}
    room = MOST
    for each in lines:
        name, said = each.get("SwitchName") or "", each.get("Switches") or ""
        try:
            below[name] = hostlist.expand(said, room)
        except ValueError as error:
            remedy = f"it is not a host list, or all lines together name more than {MOST} switches ({error}): correct Switches"
            return [Problem(f"{field}, line {each.number}", said[:80], remedy)]
        room -= len(below[name])
    found = (problem for each in lines for problem in _line(each, counts, below, field))
    return list(islice(found, _TOLD)) or list(_cycles(lines, below, field))


def _line(
    line: conf.Line, counts: Mapping[str | None, int], below: Mapping[str, Sequence[str]], field: str
) -> Iterator[Problem]:
    name, where = line.get("SwitchName") or "", f"{field}, line {line.number}"
    if len(name) > _LONGEST:
        yield Problem(
            where, name[:80], f"a switch's name may have at most {_LONGEST} characters: choose a shorter name"
        )
    if len(name) - len(name.rstrip("0123456789")) > 19:
        yield Problem(
            where, name[:80], "Slurm reads the digits at the end of the name as a number: use at most 19 digits"
        )
    if counts[name] > 1:
        yield Problem(where, name, "another switch has this name: choose another name")
    if bool(line.get("Nodes")) == bool(line.get("Switches")):
        yield Problem(
            where, name, "a switch has either nodes or switches below it: set exactly one of Nodes and Switches"
        )
    for child in below.get(name, ()):
        if child not in below:
            yield Problem(
                where, child, f"no line has this SwitchName: add it, or remove it from the switches of {name}"
            )


def _cycles(lines: Sequence[conf.Line], below: Mapping[str, Sequence[str]], field: str) -> Iterator[Problem]:
    """Yield a problem for each switch that is below itself; visits each switch once."""
    numbers = {line.get("SwitchName") or "": line.number for line in lines}
    done: set[str] = set()
    for first in numbers:
        path: dict[str, Iterator[str]] = {} if first in done else {first: iter(below[first])}
        while path:
            each = next(reversed(path))
            child = next((child for child in path[each] if child not in done), None)
            if child is None:
                done.add(each)
                del path[each]
            elif child in path:
                names = list(path)
                name = min(names[names.index(child) :], key=numbers.__getitem__)
                remedy = (
                    "this switch is below itself: name in its Switches only switches that are farther from the root"
                )
                yield Problem(f"{field}, line {numbers[name]}", name, remedy)
                return
            else:
                path[child] = iter(below[child])
