"""The cluster's cgroups: one per Node for its pods, and one for all of the cluster's own programs.

Otherwise the programs would stay in the cgroup of the shell or the test that started them, count against its memory limit, and end with it.
Both versions of cgroups are supported: version 1 has a hierarchy per controller.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from local.progress import Failure

ROOT = Path("/sys/fs/cgroup")
TOP = "soperator"
PROGRAMS = f"{TOP}/programs"


def hierarchies(root: Path = ROOT) -> list[Path]:
    """Return the mounted hierarchies: several with version 1, the root itself with version 2."""
    if (root / "cgroup.controllers").exists():
        return [root]
    return sorted(folder for folder in root.iterdir() if (folder / "cgroup.procs").exists())


def entering(argv: Sequence[str], root: Path = ROOT) -> list[str]:
    """Return the command that joins the cgroup of the cluster's programs and then executes ``argv``."""
    files = " ".join(f"{hierarchy}/{PROGRAMS}/cgroup.procs" for hierarchy in hierarchies(root))
    return ["sh", "-c", f'for file in {files}; do echo $$ >"$file" || exit 1; done; exec "$@"', "sh", *argv]


def make(path: str, root: Path = ROOT) -> None:
    """Create one cgroup (``soperator/node-1``) in every hierarchy, with the settings that processes and child cgroups need."""
    for hierarchy in hierarchies(root):
        above = hierarchy
        for part in Path(path.strip("/")).parts:
            _hand_down(above)
            folder = above / part
            folder.mkdir(exist_ok=True)
            _copy_cpuset(above, folder)
            above = folder


def _hand_down(above: Path) -> None:
    """Enable every controller of this cgroup for its children (version 2)."""
    control = above / "cgroup.subtree_control"
    if control.exists():
        for controller in (above / "cgroup.controllers").read_text().split():
            control.write_text(f"+{controller}")


def _copy_cpuset(above: Path, folder: Path) -> None:
    """Copy CPUs and memory nodes from the parent (version 1): a new cpuset has none, and takes no process without them."""
    for setting in ("cpuset.cpus", "cpuset.mems"):
        target = folder / setting
        if not (folder / "cgroup.controllers").exists() and target.exists() and not target.read_text().strip():
            target.write_text((above / setting).read_text())


def remove(path: str = TOP, root: Path = ROOT, patience: float = 5.0) -> None:
    """Remove the cluster's cgroups, or those of one Node, deepest first; a process that was just killed may delay the removal for a moment."""
    deadline = time.monotonic() + patience
    for hierarchy in hierarchies(root):
        top = hierarchy / path.strip("/")
        if top.exists():
            below = sorted((entry for entry in top.rglob("*") if entry.is_dir()), reverse=True)
            for folder in (*below, top):
                _remove_one(folder, deadline)


def _remove_one(folder: Path, deadline: float) -> None:
    while folder.exists():
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise Failure(f"cgroup {folder} does not go: {error.strerror}") from error
            time.sleep(0.02)
