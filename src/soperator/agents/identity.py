"""Copies the jail's users to the daemons of a pod, without trusting the jail or waiting for it.

slurmctld must resolve users that `useradd` created inside the jail. It must not read the jail itself: root in the jail writes those files, and a
storage failure would hang slurmctld in getpwnam. So this sidecar copies `passwd` and `group` to the folder of libnss-extrausers
(`/var/lib/extrausers`). It checks every line, and replaces whole files by a rename. The last good files stay after any failure: a jail that hangs (a
child process with a deadline reads it), an empty or incomplete file, or a file that is not a user database.

python3 -m soperator.agents.identity --jail /mnt/jail/root --to /var/lib/extrausers --interval 0.025
"""

import argparse
import re
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from soperator.agents.passwd_reader import MAX_BYTES, PasswdReader

#: extrausers ignores ids below 500; below 1000 are the system's; 65534 is nobody, and 65535 was no id when ids had 16 bits.
LOWEST, IDS = 1000, 65536
NOBODY = (65534, 65535)
#: Accounts of our own images (docs/explain/pods.md); populate makes some of them in the jail too. Nobody else may have such a name or id.
OWN = {"slurm": 64030, "slurmrest": 64031, "munge": 64032, "sshd": 64033, "soperator": 65532}
RESERVED = frozenset(OWN) | {"root", "nobody", "nogroup", "daemon"}
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,30}\$?")
TEXT = re.compile(r"[^:\x00-\x1f\x7f]*")
CONFIRMATIONS = 5


@dataclass(frozen=True)
class Users:
    """The text of both files, ready to be written, and why some lines of the jail's files are missing from it."""

    passwd: str
    group: str
    problems: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there are no users and no groups."""
        return not self.passwd


def validate(passwd: bytes, group: bytes, ids: int = IDS) -> Users:
    """Return the well-formed users and groups of a jail, and one message for each line that is omitted.

    System accounts (ids below 1000, nobody) are omitted without a message, because the daemons have their own.
    """
    problems: list[str] = []
    users = _accepted(("passwd", 7, ids), passwd, problems)
    groups = _accepted(("group", 4, ids), group, problems)
    return Users(passwd=_text(users), group=_text(groups), problems=tuple(problems))


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _accepted(kind: tuple[str, int, int], content: bytes, problems: list[str]) -> list[str]:
    """Return the good lines of a file.

    `kind` has the file's name, the number of fields of a line, whose third one is an id, and the number of allowed ids.
    """
    file, fields, ids = kind
    if len(content) > MAX_BYTES:
        problems.append(
            f"{file} has {len(content)} bytes, more than {MAX_BYTES}: the whole file is ignored; make it smaller."
        )
        return []
    lines: list[str] = []
    names: set[str] = set()
    for number, line in enumerate(content.decode("utf-8", "replace").split("\n"), 1):
        parts = line.split(":")
        wrong = _problem(parts, fields, ids)
        if wrong is None and parts[0] in names:
            wrong = f"names {parts[0]} again"
        if wrong is None:
            names.add(parts[0])
            lines.append(":".join([parts[0], "x", *parts[2:]]))
        elif wrong:
            problems.append(f"{file} line {number} {wrong}.")
    return lines


def _problem(parts: list[str], fields: int, ids: int) -> str | None:
    """Return the fault of a line: None if it is valid, empty if it is skipped without a message."""
    if parts == [""] or parts[0].startswith(("#", "+", "-")):
        return ""
    if len(parts) != fields:
        return f"has {len(parts)} fields instead of {fields}"
    if not all(TEXT.fullmatch(part) for part in parts) or "�" in "".join(parts):
        return "contains characters that are invalid in a user database"
    said = parts[2:4] if fields == 7 else parts[2:3]
    if not all(re.fullmatch(r"[0-9]{1,10}", each) for each in said):
        return "has an id that is not a number"
    if int(parts[2]) < LOWEST or int(parts[2]) in NOBODY:
        return ""
    if int(parts[2]) >= ids:
        return f"has the id {parts[2]}, but ids in the pods are below {ids}: raise spec.security.idCount"
    if not NAME.fullmatch(parts[0]):
        return "has an invalid user name"
    if OWN.get(parts[0]) == int(parts[2]):
        return ""
    if parts[0] in RESERVED or int(parts[2]) in OWN.values():
        return f"uses the name or the id of a daemon ({parts[0]}, {parts[2]})"
    return None


class Writer:
    """Keeps the last good files in a folder.

    It replaces a file as a whole, only after a change, and never with an empty one because of a temporary failure.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: Users | None = None
        self._empty_reads = 0

    def take(self, users: Users) -> str | None:
        """Write the content, and return a message if that changed anything."""
        if self._written and (users.passwd, users.group) == (self._written.passwd, self._written.group):
            self._empty_reads = 0
            return None
        if users.is_empty and self._has_users():
            self._empty_reads += 1
            if self._empty_reads < CONFIRMATIONS:
                return None
        self._empty_reads = 0
        self._replace("group", users.group)
        self._replace("passwd", users.passwd)
        self._written = users
        count = users.passwd.count("\n")
        return f"{count} user{'' if count == 1 else 's'}, {users.group.count(chr(10))} groups known."

    def _has_users(self) -> bool:
        with suppress(OSError):
            return (self._folder / "passwd").stat().st_size > 0
        return False

    def _replace(self, name: str, text: str) -> None:
        new = self._folder / f".{name}.new"
        new.write_text(text)
        new.chmod(0o644)
        new.rename(self._folder / name)


def watch(reader: PasswdReader, writer: Writer, interval: float, ids: int) -> None:
    """Copy for ever. Log each change and each new fault once, and back off from a jail that hangs.

    A jail without users, because it is being filled, is read again at the normal interval, because slurmctld holds the job of a user whom it does not
    know.
    """
    said: tuple[str, ...] = ()
    pause = interval
    last, users = None, Users("", "")
    while True:
        began = time.monotonic()
        answer = reader.read()
        if answer is None:
            hangs = time.monotonic() - began >= reader.deadline
            how = f"within {reader.deadline} s" if hangs else "yet"
            trouble: tuple[str, ...] = (f"{reader.jail}/etc could not be read {how}; the last known users stay.",)
            pause = min(pause * 2, 60.0) if hangs else interval
        else:
            if answer is not last:
                last, users = answer, validate(*answer, ids)
            if done := writer.take(users):
                print(f"soperator: {done}", flush=True)
            trouble, pause = users.problems, interval
        if trouble and trouble != said:
            print(f"soperator: {' '.join(trouble[:10])}", file=sys.stderr, flush=True)
        said = trouble
        time.sleep(pause)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python3 -m soperator.agents.identity", description=__doc__)
    parser.add_argument("--jail", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--interval", type=float, default=0.025)
    parser.add_argument("--deadline", type=float, default=5.0)
    parser.add_argument("--ids", type=int, default=IDS, help="users and groups have ids below this number")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    watch(PasswdReader(chosen.jail, chosen.deadline), Writer(chosen.to), chosen.interval, chosen.ids)


if __name__ == "__main__":
    main()
