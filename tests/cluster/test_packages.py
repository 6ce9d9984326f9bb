"""`apt-get install` as root in the jail, on login, is there for everybody on every node.

Pods of the local cluster do not reach Debian's archive; the packages come from a folder in the jail that is an archive of its own.
"""

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from local import images
from local.paths import cache
from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster

PACKAGES = ("jq", "libjq1", "libonig5")
ARCHIVE = "/srv/archive"


@pytest.fixture
def archive(lab: Lab) -> str:
    """A Debian archive in the jail, the only one that apt knows there for this test."""
    debs = images.fetch_packages(PACKAGES, cache() / "apt" / "packages")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for deb in debs:
            tar.add(deb, deb.name)
        index = "\n".join(map(_entry, debs)).encode()
        header = tarfile.TarInfo("Packages")
        header.size = len(index)
        tar.addfile(header, io.BytesIO(index))
    lab.ssh("root", f"mkdir -p {ARCHIVE} && tar -x -C {ARCHIVE}", stdin=packed.getvalue())
    lab.ssh("root", f"echo 'deb [trusted=yes] file:{ARCHIVE} ./' > {ARCHIVE}/sources.list")
    only = f"-o Dir::Etc::sourcelist={ARCHIVE}/sources.list -o Dir::Etc::sourceparts=/nowhere"
    lab.ssh("root", f"apt-get update -q {only}")
    return only


def _entry(deb: Path) -> str:
    """The paragraph of a package in the archive's index."""
    control = subprocess.run(["dpkg-deb", "--field", deb], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256(deb.read_bytes()).hexdigest()
    return f"{control.rstrip()}\nFilename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"


def test_a_package_installed_on_login_is_on_every_node_at_once(lab: Lab, alice: str, archive: str) -> None:
    """No jq anywhere; apt-get install on login; jq in a job on all workers; removed on a worker, and gone everywhere."""
    assert lab.ssh(alice, "command -v jq || echo none") == "none\n"
    lab.ssh("root", f"DEBIAN_FRONTEND=noninteractive apt-get install -q -y {archive} jq")
    said = lab.ssh(alice, "srun -N2 sh -c 'hostname | jq -R .'")
    assert sorted(said.split()) == ['"worker-0"', '"worker-1"']
    lab.ssh("root", f"srun -w worker-1 apt-get remove -q -y {' '.join(PACKAGES)}")
    assert lab.ssh(alice, "srun -w worker-0 sh -c 'command -v jq || echo none'") == "none\n"
    lab.ssh("root", f"rm -r {ARCHIVE}; apt-get clean")
