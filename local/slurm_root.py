"""`python3 -m local.slurm_root [records|rest] [--release 26.05]`: creates Debian roots with Slurm for tests that need no Kubernetes.

The first root also has sshd, a compiler and headers, the root for records has slurmdbd and MariaDB, and the root for REST has slurmrestd
and nginx. spank/tests, tests/slurm and `local/keywords.py` run a real Slurm in the first one; SPANK_TRIXIE names another path for it. The
release is that of `local/slurm_release.py` unless an argument names it; tests select it with SLURM_RELEASE. Needs root. A root with all
packages is not changed.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from local import slurm_release
from local.images import SUITE, archive, machines_apt
from local.paths import REPOSITORY, cache, locked
from local.progress import Failure, say


def place(kind: str, release: str = "") -> Path:
    """Return the root of a kind for a release; the first release has the name without the release."""
    release = release or slurm_release.chosen()
    return cache() / (f"trixie-{kind}" if slurm_release.RELEASES[release] == SUITE else f"trixie-{kind}-{release}")


ROOT = Path(os.environ.get("SPANK_TRIXIE") or place("slurm"))
RECORDS = place("records")
REST = place("rest")
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
ROOTS = {"": ("slurm", PACKAGES), "records": ("records", RECORDS_PACKAGES), "rest": ("rest", REST_PACKAGES)}
#: Packages that are of the release; all others are of the images' Debian.
_OF_SLURM = ("libslurm", "sackd", "slurm")


def missing(root: Path, packages: Sequence[str] = PACKAGES) -> list[str]:
    """Return the packages that a root lacks according to its dpkg; all packages if there is no root."""
    status = root / "var/lib/dpkg/status"
    if not status.exists():
        return list(packages)
    blocks = [block.splitlines() for block in status.read_text().split("\n\n") if block]
    there = {block[0].removeprefix("Package: ") for block in blocks if "Status: install ok installed" in block}
    return [each for each in packages if each not in there]


def make(root: Path, packages: Sequence[str] = PACKAGES, release: str = "") -> None:
    """Create the root if it lacks a package; the former root is removed only when the new one is complete."""
    release = release or slurm_release.chosen()
    root.parent.mkdir(parents=True, exist_ok=True)
    with locked(root.with_name(f"{root.name}.lock")):
        if not missing(root, packages):
            return
        say(f"creating a Debian root with Slurm {release} for tests, {root}; this takes one or two minutes")
        partial = root.with_name(f"{root.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        done = subprocess.run(_making(partial, packages, release), capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"mmdebstrap failed:\n{done.stderr[-2000:]}")
        shutil.rmtree(root, ignore_errors=True)
        partial.rename(root)


def _making(partial: Path, packages: Sequence[str], release: str) -> list[str]:
    """Return the command that creates a root; Slurm of another Debian is installed last, when apt has its source."""
    argv = ["mmdebstrap", "--quiet", "--variant=minbase"]
    if slurm_release.RELEASES[release] == SUITE:
        return [*argv, f"--include={','.join(packages)}", SUITE, str(partial), *archive()]
    of_slurm = [each for each in packages if each.startswith(_OF_SLURM)]
    others = [each for each in packages if each not in of_slurm]
    inside = 'chroot "$1" env DEBIAN_FRONTEND=noninteractive'
    hooks = [
        f'install -m 0755 {REPOSITORY}/images/slurm/release "$1/usr/local/sbin/release"',
        f"{inside} release {release} {slurm_release.RELEASES[release]}",
        f"{inside} apt-get install -q -y --no-install-recommends {' '.join(of_slurm)}",
    ]
    options = [*(f"--aptopt={line}" for line in machines_apt("Check")), *(f"--customize-hook={each}" for each in hooks)]
    return [*argv, f"--include={','.join(others)}", *options, SUITE, str(partial), *archive()]


def main() -> int:
    """Create one of the roots; an error is printed without a traceback."""
    parser = argparse.ArgumentParser(prog="python3 -m local.slurm_root", description=__doc__)
    parser.add_argument("kind", nargs="?", default="", choices=tuple(ROOTS))
    parser.add_argument("--release", default="", choices=("", *slurm_release.RELEASES))
    options = parser.parse_args()
    kind, packages = ROOTS[options.kind]
    try:
        given = os.environ.get("SPANK_TRIXIE") if not options.kind and not options.release else None
        make(Path(given) if given else place(kind, options.release), packages, options.release)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
