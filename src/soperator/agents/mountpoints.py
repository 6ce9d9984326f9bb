"""Creates missing folders of the jail on which submounts are mounted.

A node never writes to the shared root, so a Job creates them: once, when a spec names a path that the jail lacks. The jail belongs to its users, who
may have put links anywhere. So each part of a path is opened from its parent, and no link is followed, neither here nor by the nodes that mount
later.

python3 -m soperator.agents.mountpoints '[{"base": "/mnt/jail/root", "path": "data", "target": "/data"}]'
"""

import json
import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from soperator.agents.errors import Refusal, exit_with_error

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@dataclass(frozen=True)
class PodMountPoint:
    """A mount point: `path` below the folder `base` of this pod, which is `target` in the jail."""

    base: str
    path: str
    target: str


def make(point: PodMountPoint) -> bool:
    """Create a mount point with its parents; return whether anything was missing. Existing folders stay unchanged."""
    try:
        here = os.open(point.base, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise Refusal(
            f"{point.base}, which contains {point.target} of the jail, cannot be opened: {error.strerror}"
        ) from error
    made = False
    *above, last = point.path.split("/")
    try:
        for number, name in enumerate(above):
            made |= _make_folder(here, name, point)
            here = _enter(here, name, point, number)
        made |= _make_folder(here, last, point)
        _check(here, last, point)
    finally:
        os.close(here)
    return made


def make_all(points: Sequence[PodMountPoint]) -> str:
    """Create all mount points, and return a message about those that were missing; a Refusal names every obstacle."""
    made, faults = [], []
    for point in points:
        try:
            if make(point):
                made.append(point.target)
        except Refusal as refusal:
            faults.append(str(refusal))
    if faults:
        raise Refusal("; ".join(faults))
    return f"Created {', '.join(made)} in the jail." if made else "The jail has all mount points."


def _make_folder(parent: int, name: str, point: PodMountPoint) -> bool:
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        return False
    except OSError as error:
        raise Refusal(f"{point.target} cannot be created in the jail: {error.strerror}") from error
    try:
        open_to_all(parent, name)
    except OSError as error:
        raise Refusal(_fault(parent, name, point.target)) from error
    return True


def open_to_all(parent: int, name: str) -> None:
    """Set the mode of a new folder, independent of the umask.

    A user may have replaced the folder: a link is not followed, and a user's own folder stays unchanged.
    """
    made = os.open(name, _FOLDER, dir_fd=parent)
    try:
        if os.fstat(made).st_uid == os.geteuid():
            os.fchmod(made, 0o755)
    finally:
        os.close(made)


def _enter(parent: int, name: str, point: PodMountPoint, number: int) -> int:
    """Open a folder of the path and close its parent."""
    try:
        inner = os.open(name, _FOLDER, dir_fd=parent)
    except OSError as error:
        path = "/".join(point.path.split("/")[: number + 1])
        raise Refusal(_fault(parent, name, f"{path}, on the way to {point.target},")) from error
    os.close(parent)
    return inner


def _check(parent: int, name: str, point: PodMountPoint) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        raise Refusal(_fault(parent, name, point.target))


def _fault(parent: int, name: str, place: str) -> str:
    with suppress(OSError):
        to = os.readlink(name, dir_fd=parent)
        return f"{place} is a symbolic link to {to} in the jail: name the path that it leads to, or remove the link"
    return f"{place} is not a folder in the jail: choose another path, or move the file"


def main() -> None:
    """Run the command line; an error is one message on standard error and in the termination message."""
    if len(sys.argv) != 2:
        sys.exit('usage: python3 -m soperator.agents.mountpoints \'[{"base": …, "path": …, "target": …}, …]\'')
    try:
        print(make_all([PodMountPoint(**each) for each in json.loads(sys.argv[1])]))
    except (Refusal, OSError) as error:
        exit_with_error(error)


if __name__ == "__main__":
    main()
