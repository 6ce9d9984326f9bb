"""The number by which slurmctld and its database know the cluster, with a listener in slurmdbd's place."""

import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "images" / "slurm" / "accounted"


@dataclass
class Pod:
    """The folder of slurmctld's state, its slurm.conf, and a port on which slurmdbd may listen."""

    root: Path
    slurmdbd: socket.socket

    def starts(self, accounting: bool = True, host: str = "demo-controller-0") -> str:
        """What slurmctld finds in the file clustername at its start."""
        port = self.slurmdbd.getsockname()[1]
        lines = f"AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\nAccountingStoragePort={port}\n"
        (self.root / "slurm.conf").write_text(f"ClusterName=demo\n{lines if accounting else ''}")
        words = f". {SCRIPT}; HOSTNAME={host}; adopt_number {self.root} {self.root}/slurm.conf {self.root}/mark"
        subprocess.run(["bash", "-euo", "pipefail", "-c", words], check=True, timeout=30)
        return self.file.read_text() if self.file.exists() else ""

    @property
    def file(self) -> Path:
        """The file clustername."""
        return self.root / "clustername"

    def is_another(self) -> None:
        """The pod is replaced: what lasted as long as it did is gone."""
        (self.root / "mark").unlink()


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    """A pod whose slurmdbd is not ready."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()
    with socket.socket() as slurmdbd:
        slurmdbd.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        slurmdbd.bind(port)
        yield Pod(tmp_path, slurmdbd)


def test_a_number_that_was_made_up_is_taken_away_before_the_first_start_with_accounting(pod: Pod) -> None:
    """slurmctld then takes the database's; at later starts that stays."""
    pod.slurmdbd.listen()
    pod.file.write_text("demo|1393")
    assert pod.starts(accounting=False) == "demo|1393"
    pod.is_another()
    assert pod.starts() == "demo"
    pod.file.write_text("demo|3716")  # what slurmctld does
    pod.is_another()
    assert pod.starts() == "demo|3716"


def test_without_slurmdbd_the_number_stays(pod: Pod) -> None:
    """slurmctld would wait for slurmdbd without it, and not answer."""
    pod.file.write_text("demo|1393")
    assert pod.starts() == "demo|1393"


def test_a_number_that_was_lost_half_way_comes_back(pod: Pod) -> None:
    """slurmctld ended before it had the database's, and the database is down by now."""
    pod.file.write_text("demo|1393")
    (pod.root / "clustername.kept").write_text("demo|1393")
    pod.file.write_text("demo")
    assert pod.starts() == "demo|1393"
    assert (pod.root / "clustername.kept").exists()


def test_a_slurmctld_that_ended_in_its_pod_takes_the_number_of_another_database(pod: Pod) -> None:
    """The first start trusts the number, and the one after it does not."""
    pod.slurmdbd.listen()
    pod.file.write_text("demo|3716")
    (pod.root / "clustername.kept").write_text("demo|1393")
    assert pod.starts() == "demo|3716"
    assert pod.starts() == "demo"


def test_switched_on_again_it_is_the_first_start_again(pod: Pod) -> None:
    """The database may be another by now, one that was made anew or moved."""
    pod.slurmdbd.listen()
    pod.file.write_text("demo|1393")
    assert pod.starts() == "demo"
    pod.file.write_text("demo|3716")
    pod.is_another()
    assert pod.starts(accounting=False) == "demo|3716"
    pod.is_another()
    assert pod.starts() == "demo"


def test_a_backup_leaves_the_number_alone(pod: Pod) -> None:
    """It shares the file with who leads."""
    pod.slurmdbd.listen()
    pod.file.write_text("demo|1393")
    assert pod.starts(host="demo-controller-1") == "demo|1393"


def test_a_state_that_is_new_has_no_number(pod: Pod) -> None:
    """slurmctld makes the file itself."""
    pod.slurmdbd.listen()
    assert pod.starts() == ""
