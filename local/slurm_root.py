"""`python3 -m local.slurm_root [records|rest]`: Debian roots with Slurm for tests that need no Kubernetes.

The first has sshd, a compiler and headers too, the one for records slurmdbd and MariaDB, the one for REST slurmrestd and nginx.
spank/tests, tests/slurm and `local/keywords.py` run a real Slurm in the first; SPANK_TRIXIE names another place for it. Needs to be root. What
has every package is left as it is.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from local.images import SUITE, archive
from local.paths import cache, locked
from local.progress import Failure, say

ROOT = Path(os.environ.get("SPANK_TRIXIE") or cache() / "trixie-slurm")
RECORDS = cache() / "trixie-records"
REST = cache() / "trixie-rest"
PACKAGES = (
    "ca-certificates",
    "gcc",
    "iproute2",
    "libc6-dev",
    "libpam0g-dev",
    "libslurm-dev",
    "make",
    "openssh-client",
    "openssh-server",
    "procps",
    "python3",
    "skopeo",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "slurm-wlm-jwt-plugin",
    "slurmctld",
    "slurmd",
    "slurmrestd",
    "squashfs-tools",
    "umoci",
    "util-linux",
)
RECORDS_PACKAGES = (
    "ca-certificates",
    "iproute2",
    "mariadb-client",
    "mariadb-server",
    "procps",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "slurm-wlm-mysql-plugin",
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "util-linux",
)
REST_PACKAGES = (
    "ca-certificates",
    "iproute2",
    "libnginx-mod-stream",
    "nginx",
    "procps",
    "python3",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "slurm-wlm-jwt-plugin",
    "slurmctld",
    "slurmd",
    "slurmrestd",
    "util-linux",
)
#: What each word makes.
ROOTS = {"": (ROOT, PACKAGES), "records": (RECORDS, RECORDS_PACKAGES), "rest": (REST, REST_PACKAGES)}


def missing(root: Path, packages: Sequence[str] = PACKAGES) -> list[str]:
    """The packages that a root lacks, by what its dpkg says; all of them where there is none."""
    status = root / "var/lib/dpkg/status"
    if not status.exists():
        return list(packages)
    blocks = [block.splitlines() for block in status.read_text().split("\n\n") if block]
    there = {block[0].removeprefix("Package: ") for block in blocks if "Status: install ok installed" in block}
    return [each for each in packages if each not in there]


def make(root: Path, packages: Sequence[str] = PACKAGES) -> None:
    """Make the root where it lacks anything; what was there before goes only when the new one is whole."""
    root.parent.mkdir(parents=True, exist_ok=True)
    with locked(root.with_name(f"{root.name}.lock")):
        if not missing(root, packages):
            return
        say(f"making a Debian root with Slurm for tests, {root}; this takes about a minute")
        partial = root.with_name(f"{root.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        argv = [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            f"--include={','.join(packages)}",
            SUITE,
            str(partial),
            *archive(),
        ]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"mmdebstrap failed:\n{done.stderr[-2000:]}")
        shutil.rmtree(root, ignore_errors=True)
        partial.rename(root)


def main() -> int:
    """Make one of the roots; a failure is said without a traceback."""
    try:
        make(*ROOTS["".join(sys.argv[1:])])
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
