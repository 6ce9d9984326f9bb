"""Decides which accounts a root file system keeps when it is replaced: those that people created in it.

Users and groups with ids from 1000 move from the old files to the new ones. Smaller ids belong to packages, and come with the new image. If the image
has such a user under a name or number that is taken, the old user stays, because files belong to its number.
"""

from collections.abc import Iterator, Mapping

#: Each file by its name under /etc; all are lines of fields divided by colons, the first of them a name.
FILES = ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")
FIRST, NOBODY = 1000, 65534


def merged(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Return the new files with the people's accounts of the old ones, by name of the file. A file that neither has is omitted."""
    users, groups = set(_people(old.get("passwd", ""))), set(_people(old.get("group", "")))
    foreign = _taken(old, new, "passwd", users), _taken(old, new, "group", groups)
    result = {}
    for name in FILES:
        if name not in old and name not in new:
            continue
        kept, dropped = (groups, foreign[1]) if name in ("group", "gshadow") else (users, foreign[0])
        lines = [line for line in _lines(new.get(name, "")) if _name(line) not in kept | dropped]
        if name == "group":
            members = _members(old.get("group", ""), users)
            lines = [_with_members(line, members.get(_name(line), ())) for line in lines]
        lines += [line for line in _lines(old.get(name, "")) if _name(line) in kept]
        result[name] = "".join(f"{line}\n" for line in lines)
    return result


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def _name(line: str) -> str:
    return line.split(":")[0]


def _ids(text: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the id of each line of passwd or group that has both."""
    for line in _lines(text):
        fields = line.split(":")
        if len(fields) > 2 and fields[2].isdecimal():
            yield fields[0], int(fields[2])


def _people(text: str) -> Iterator[str]:
    return (name for name, number in _ids(text) if number >= FIRST and number != NOBODY)


def _taken(old: Mapping[str, str], new: Mapping[str, str], file: str, kept: set[str]) -> set[str]:
    """Return the names in the new file whose ids belong to an account of the old one."""
    numbers = {number for name, number in _ids(old.get(file, "")) if name in kept}
    return {name for name, number in _ids(new.get(file, "")) if number in numbers and name not in kept}


def _members(text: str, users: set[str]) -> dict[str, list[str]]:
    """Return for each group those of the given users who were members."""
    found = {}
    for line in _lines(text):
        fields = line.split(":")
        if len(fields) == 4:
            found[fields[0]] = [each for each in fields[3].split(",") if each in users]
    return found


def _with_members(line: str, more: list[str] | tuple[str, ...]) -> str:
    head, _, tail = line.rpartition(":")
    present = [each for each in tail.split(",") if each]
    return f"{head}:{','.join([*present, *(each for each in more if each not in present)])}" if head else line
