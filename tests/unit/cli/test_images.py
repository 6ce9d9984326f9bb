"""`soperator images`: what a cluster's images hold, by the source packages that advisories name."""

import json
import subprocess

import msgspec
import pytest

from soperator.cli.images import by_image
from soperator.cli.support.packages import LIST, chosen, read
from soperator.kube.exec import Target
from soperator.kube.views import Custom, ObjectMeta
from soperator.render.parts import labels

DATABASE = """Package: libssl3t64
Status: install ok installed
Source: openssl
Version: 3.5.9-1
Description: libraries
 Version: 9
 .
 more

Package: openssl
Status: install ok installed
Version: 3.5.9-1

Package: libgone
Status: deinstall ok config-files
Version: 1

Package: slurmd
Source: slurm-wlm
Version: 26.05.5-1

Package: libc6
Source: glibc (2.41-12)
Version: 2.41-12+b1

Package: gcc-14-base
Status: install ok installed
Source: gcc-14
Version: 14.2.0-19

Python: typing_extensions-4.15.0.dist-info
"""


def test_packages_are_told_by_their_source() -> None:
    """Once for each, with the version of the source; what was removed is not there, and Python's are."""
    assert read(DATABASE) == {
        "gcc-14": "14.2.0-19",
        "glibc": "2.41-12",
        "openssl": "3.5.9-1",
        "python:typing_extensions": "4.15.0",
        "slurm-wlm": "26.05.5-1",
    }


def test_what_nobody_attacks_is_told_when_it_is_asked_for() -> None:
    """A compiler's folder is in the list of all alone."""
    found = read(DATABASE)
    assert set(chosen(found, everything=True)) - set(chosen(found, everything=False)) == {"gcc-14 14.2.0-19"}
    assert "slurm-wlm 26.05.5-1" in chosen(found, everything=False)


def test_two_versions_of_a_source_stand_side_by_side() -> None:
    """As where a bundle was built on another day than the system under it."""
    two = "Package: a\nVersion: 1\n\nPackage: b\nSource: a\nVersion: 2\n"
    assert read(two) == {"a": "1, 2"}


def test_the_command_reads_a_debian() -> None:
    """Run on this machine, it finds libc with the version that dpkg names."""
    done = subprocess.run(LIST, capture_output=True, text=True, check=True)
    asked = ["dpkg-query", "--show", "--showformat", "${source:Version}", "libc6"]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert read(done.stdout)["glibc"] == version


@pytest.fixture
def pods() -> list[Custom]:
    """A worker whose sidecar has ended, and a pod of login that is not there yet."""
    worker = {"containers": [{"name": "slurmd", "image": "slurm:1"}, {"name": "checks", "image": "agents:1"}]}
    login = {
        "containers": [{"name": "sshd", "image": "slurm:1"}],
        "initContainers": [{"name": "munge", "image": "own"}],
    }
    states = [{"name": "slurmd", "state": {"running": {}}}, {"name": "checks", "state": {"terminated": {}}}]
    return [
        pod("demo-worker-0", "worker", worker, {"containerStatuses": states}),
        pod("demo-login-0", "login", login, {"containerStatuses": None}),
    ]


def pod(name: str, role: str, spec: dict[str, object], status: dict[str, object]) -> Custom:
    """A pod of a cluster."""
    meta = ObjectMeta(name=name, namespace="slurm", labels={labels.ROLE: role})
    return Custom(metadata=meta, spec=msgspec.Raw(json.dumps(spec).encode()), status=status)


def test_an_image_is_looked_into_where_it_runs(pods: list[Custom]) -> None:
    """By role; a container that has ended or has not begun is no place to look."""
    assert by_image(pods) == {
        "slurm:1": [("worker", Target("slurm", "demo-worker-0", "slurmd")), ("login", None)],
        "agents:1": [("worker", None)],
        "own": [("login", None)],
    }
