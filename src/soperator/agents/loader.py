"""Makes the jail's dynamic loader find a node's GPU driver, without an environment variable and without a cache for each node.

When a job requests libcuda.so.1, the loader searches ld.so.cache and its default folders. Below each default folder it also searches
glibc-hwcaps/<level of the CPU>, whatever the cache contains; every x86-64 machine with a GPU has level v2. So filling the jail creates one link
there. It leads to the folder in which each node mounts its own driver, and to an empty folder on all other nodes. A private ld.so.cache bound over
the jail's would be lost after the next ldconfig on any node (decision 18). Source: ld.so(8), glibc 2.33.
"""

from contextlib import suppress
from pathlib import Path

LIBRARIES = "/opt/soperator/driver/lib"
#: Default folders of loaders: Debian and Ubuntu, Fedora and SUSE, Arch.
FOLDERS = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib64", "lib64", "usr/lib")
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


def link_driver(root: Path) -> Path | None:
    """Create the link in a root and return it; None if there is no glibc, or if packages occupy all places. Safe to repeat."""
    for name in FOLDERS:
        folder = root / name
        if _is_inside(folder, root) and (folder / "libc.so.6").exists():
            return _link(folder / "glibc-hwcaps")
    return None


def _link(folder: Path) -> Path | None:
    if folder.is_symlink():
        return None
    folder.mkdir(exist_ok=True)
    for level in LEVELS:
        link = folder / level
        with suppress(FileExistsError):
            link.symlink_to(LIBRARIES)
        if link.is_symlink() and str(link.readlink()) == LIBRARIES:
            return link
    return None


def _is_inside(folder: Path, root: Path) -> bool:
    """Return whether no part of the path is a link, because an absolute link would lead out of the jail here."""
    parts = folder.relative_to(root).parts
    return not any(root.joinpath(*parts[: number + 1]).is_symlink() for number in range(len(parts)))
