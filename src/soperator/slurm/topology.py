"""topology.conf: which nodes are close to each other, from each node's location.

A location is a path of names from the farthest level to the closest, empty where it is not known. What Slurm 24.11 makes of the file was tried on
24.11.5 (docs/decisions/0076): slurmctld looks the nodes up when it reads the file and at no other time, and logs an error for each that it does not
know. So the file names the nodes that Slurm knows, and no others. A block with fewer known nodes than the smallest size ends slurmctld, and a node
can be deleted at any time: so each block holds spares too, which are FUTURE in slurm.conf and never come. Source: topology.conf(5),
topology/tree/switch_record.c and topology/block/block_record.c of 24.11.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

from soperator.slurm import conf, hostlist

Place = tuple[str, ...]

ROOT = "root"
UNKNOWN = "none"
SPARE = "soperator-spare"
#: Slurm refuses longer names of switches (HOST_NAME_MAX), and reads digits at their end as a number.
_LONGEST = 60
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_DIGITS = re.compile(r"\d{10}")
_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def name(place: Place) -> str:
    """Return the name of a switch or block: its path with dots, or a short hash of it where Slurm could not parse that name or could confuse it."""
    plain = ".".join(each or UNKNOWN for each in place)
    is_own = all(_PLAIN.fullmatch(each) and each != UNKNOWN for each in place if each) and plain != ROOT
    if is_own and len(plain) <= _LONGEST and not _DIGITS.search(plain):
        return plain
    return "t-" + hashlib.sha256("\0".join(place).encode()).hexdigest()[:12].translate(_LETTERS)


def tree(places: Mapping[str, Place]) -> str:
    """Return the file for topology/tree: one switch for each location and each level above it, and one root."""
    leaves = _by_place(places)
    inner: dict[Place, set[Place]] = {}
    for leaf in leaves:
        for depth in range(len(leaf)):
            inner.setdefault(leaf[:depth], set()).add(leaf[: depth + 1])
    lines = [conf.line(SwitchName=name(place), Nodes=hostlist.compress(nodes)) for place, nodes in leaves.items()]
    for place in sorted(inner, key=lambda each: (-len(each), each)):
        below = ",".join(name(each) for each in sorted(inner[place]))
        lines.append(conf.line(SwitchName=name(place) if place else ROOT, Switches=below))
    return conf.render(lines)


def blocks(places: Mapping[str, Place], sizes: Sequence[int]) -> str:
    """Return the file for topology/block: one block for each place, in an order in which those that lie close follow each other."""
    leaves = _by_place(places)
    lines = [
        conf.line(BlockName=name(place), Nodes=f"{hostlist.compress(nodes)},{_spares(number, sizes[0])}")
        for number, (place, nodes) in enumerate(leaves.items())
    ]
    return conf.render([*lines, conf.line(BlockSizes=",".join(map(str, sizes)))])


def spares(places: Mapping[str, Place], sizes: Sequence[int]) -> conf.Line:
    """Return the line of slurm.conf with the spares of all blocks."""
    each = (_spares(number, sizes[0]) for number in range(len(_by_place(places))))
    return conf.line(NodeName=",".join(each), State="FUTURE")


def _spares(block: int, size: int) -> str:
    return f"{SPARE}-{block}-[0-{size - 1}]" if size > 1 else f"{SPARE}-{block}-0"


def _by_place(places: Mapping[str, Place]) -> dict[Place, list[str]]:
    found: dict[Place, list[str]] = {}
    for node, place in sorted(places.items(), key=lambda each: (each[1], each[0])):
        found.setdefault(place, []).append(node)
    return found


def note(places: Mapping[str, Place]) -> list[list[str]]:
    """Places in few words: a host list and the path of each."""
    return [[hostlist.compress(nodes), *place] for place, nodes in _by_place(places).items()]


def read_note(text: str) -> dict[str, Place]:
    """Return the locations from an annotation in JSON; none where it cannot be read, for example because somebody edited it."""
    try:
        found = json.loads(text or "[]")
        return {node: tuple(map(str, place)) for nodes, *place in found for node in hostlist.expand(nodes)}
    except (AttributeError, TypeError, ValueError):
        return {}


def found(shown: str) -> list[str] | None:
    """Return the nodes that slurmctld knew when it read the file, from its answer to `scontrol show topology root`; None for any other answer.

    The names of a leaf are those in the file, but those of a higher switch are the nodes that were found (topology/tree/switch_record.c,
    _log_switches).
    """
    said = re.search(rf"^SwitchName={ROOT} .*?\bNodes=(\S+)", shown, re.MULTILINE)
    return hostlist.expand(said[1]) if said else None
