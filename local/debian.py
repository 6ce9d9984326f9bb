"""The Debian packages that the cluster, its images and its tests need."""

import os
import subprocess

from local.progress import Failure, say

PACKAGES = (
    "buildah",  # builds images without a daemon
    "mmdebstrap",  # makes the Debian root that images start from
    "debian-archive-keyring",  # its keys
    "runc",  # what buildah runs
    "catatonit",  # the init process of Nodes, and the pause container
    "containernetworking-plugins",  # a pod's network: bridge, host-local, portmap
    "iproute2",
    "iptables",  # portmap's
    "nftables",  # kube-proxy's
    "conntrack",
    "socat",
    "ethtool",
    "kmod",
    "util-linux",  # nsenter and unshare
    "procps",
    "gcc",  # runc and the SPANK plugin are C
    "libc6-dev",
    "make",
    "pkg-config",
    "libseccomp-dev",
    "libseccomp2",
    "git",
    "openssh-client",
    "libfaketime",  # a slurmd whose clock is wrong, for a test
    "python3-venv",
    "shellcheck",
)


def missing() -> list[str]:
    """Return the packages that are not installed."""
    asked = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n", *PACKAGES]
    shown = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    installed = {line.split()[0] for line in shown.splitlines() if line.endswith(" installed")}
    return [package for package in PACKAGES if package not in installed]


def apt(*arguments: str) -> None:
    """Run apt-get without questions; print its output only if it fails."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    argv = ["apt-get", "-q", "-y", *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise Failure(f"apt-get {arguments[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def install() -> None:
    """Install the missing packages; does nothing if all are installed."""
    wanted = missing()
    if not wanted:
        say("Debian packages: all present")
        return
    if os.geteuid():
        raise Failure(f"install these packages, or run this as root: {' '.join(wanted)}")
    say(f"installing {len(wanted)} Debian packages: {' '.join(wanted)}")
    apt("update")
    apt("install", "--no-install-recommends", *wanted)
    say("Debian packages: installed")
