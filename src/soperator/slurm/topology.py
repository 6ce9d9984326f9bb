"""topology.conf: it tells Slurm which nodes are close to each other, and is computed from each node's location.

A location is a path of names from the outermost level to the innermost, empty if it is not known. slurmctld looks the nodes up only when it reads the
file, and logs an error for each node that it does not know (tried with 24.11.5, docs/decisions/0076). So the file names only nodes that Slurm knows.
slurmctld exits if a block has fewer known nodes than the smallest block size, and a node can be deleted at any time. So each block also has spare
nodes, which are FUTURE in slurm.conf and never register. Source: topology.conf(5), topology/tree/switch_record.c and topology/block/block_record.c of
24.11.
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
    """Return the name of a switch or block: its path with dots, or a short hash of it if Slurm could not parse that name or would confuse it with
    another.
    """
    plain = ".".join(each or UNKNOWN for each in place)
    is_own = all(_PLAIN.fullmatch(each) and each != UNKNOWN for each in place if each) and plain != ROOT
    if is_own and len(plain) <= _LONGEST and not _DIGITS.search(plain):
        return plain
    return "t-" + hashlib.sha256("\0".join(place).encode()).hexdigest()[:12].translate(_LETTERS)


def tree(places: Mapping[str, Place]) -> str:
    """Return topology.conf for topology/tree: one switch for each location and each level above it, and one root."""
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
    """Return topology.conf for topology/block: one block for each location, ordered so that close locations follow each other."""
    leaves = _by_place(places)
    lines = [
        conf.line(BlockName=name(place), Nodes=f"{hostlist.compress(nodes)},{_spares(number, sizes[0])}")
        for number, (place, nodes) in enumerate(leaves.items())
    ]
    return conf.render([*lines, conf.line(BlockSizes=",".join(map(str, sizes)))])


def spares(places: Mapping[str, Place], sizes: Sequence[int]) -> conf.Line:
    """Return the line of slurm.conf that defines the spare nodes of all blocks."""
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
    """Return the locations as one message: a host list and the path of each."""
    return [[hostlist.compress(nodes), *place] for place, nodes in _by_place(places).items()]


def read_note(text: str) -> dict[str, Place]:
    """Return the locations that an annotation holds as JSON; none if it is invalid, for example because a person edited it."""
    try:
        found = json.loads(text or "[]")
        return {node: tuple(map(str, place)) for nodes, *place in found for node in hostlist.expand(nodes)}
    except (AttributeError, TypeError, ValueError):
        return {}


def found(shown: str) -> list[str] | None:
    """Return the nodes that slurmctld knew when it read the file, from its answer to `scontrol show topology`; None for any other answer.

    A leaf switch lists the names in the file, but a higher switch lists the nodes that slurmctld found (topology/tree/switch_record.c,
    _log_switches).
    """
    said = re.search(rf"^SwitchName={ROOT} .*?\bNodes=(\S+)", shown, re.MULTILINE)
    return hostlist.expand(said[1]) if said else None
