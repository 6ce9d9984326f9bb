"""What the tests of this folder share."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.slurm_root import RECORDS
from tests.slurm.machine import NAMESPACES, TRIXIE, Slurm
from tests.slurm.records import Records


@contextmanager
def machine_of(rootfs: Path, work: Path) -> Iterator[Slurm]:
    """A machine of this root, on which nothing runs yet."""
    machine = subprocess.Popen([*NAMESPACES, str(Path(__file__).with_name("up")), str(rootfs), str(work)])
    try:
        end, children = time.monotonic() + 30, Path(f"/proc/{machine.pid}/task/{machine.pid}/children")
        while not (found := children.read_text().split()) or not Path(f"/proc/{found[0]}/root/run/ready").exists():
            assert machine.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        yield Slurm(found[0])
    finally:
        machine.kill()
        machine.wait()


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    """A machine with Slurm, on which nothing runs yet."""
    with machine_of(TRIXIE, tmp_path) as made:
        yield made


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    """A machine with Slurm, whose jobs are accounted."""
    with machine_of(RECORDS, tmp_path) as made:
        found = Records(made)
        found.begins()
        yield found
