"""The readiness probe of slurmdbd, with a sacctmgr that keeps its clusters in a file, and a process in slurmdbd's place."""

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "images" / "slurm" / "accounting"
SACCTMGR = """#!/bin/sh
[ ! -e {root}/down ] || exit 1
case "$*" in
*"show cluster"*) cat {root}/clusters ;;
"-i add cluster "*) while [ -e {root}/slow ]; do sleep 0.05; done; echo "$4" >> {root}/clusters; echo added >> {root}/log ;;
esac
"""
UNKNOWN = "the database does not know the cluster demo"


@dataclass
class Pod:
    """The folders of slurmdbd's container under one root."""

    root: Path
    script: Path
    slurmdbd: "subprocess.Popen[bytes]"

    def probe(self, verb: str = "") -> bool:
        """Whether slurmdbd is ready."""
        words = ["bash", str(self.script), *([verb] if verb else [])]
        return subprocess.run(words, check=False, timeout=30).returncode == 0

    def has(self, *clusters: str) -> None:
        """Let the database know these."""
        (self.root / "clusters").write_text("".join(f"{each}\n" for each in clusters))

    def becomes(self, there: bool, name: str) -> None:
        """Make or remove an empty file."""
        (self.root / name).touch() if there else (self.root / name).unlink()

    def added(self) -> list[str]:
        """What the database knows once nothing is being added any more."""
        subprocess.run(["flock", str(self.root / "adding"), "true"], check=True, timeout=30)
        return (self.root / "clusters").read_text().split()

    @property
    def said(self) -> str:
        """What is told of a slurmdbd that is not ready."""
        file = self.root / "said"
        return file.read_text().strip() if file.exists() else ""

    def lives(self) -> bool:
        """Whether slurmdbd has not been ended."""
        try:
            self.slurmdbd.wait(0.3)
        except subprocess.TimeoutExpired:
            return True
        return False


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    """A slurmdbd that has just started, on a database that knows nobody."""
    text = re.sub(
        "(?<=[= ])/(etc/soperator/accounting|tmp|run/soperator|opt/soperator/bin)", str(tmp_path), SCRIPT.read_text()
    )
    script = tmp_path / "probe"
    script.write_text(text)
    (tmp_path / "sacctmgr").write_text(SACCTMGR.format(root=tmp_path))
    (tmp_path / "sacctmgr").chmod(0o755)
    (tmp_path / "slurm.conf").write_text("ClusterName=demo\nSlurmctldHost=demo-controller\n")
    (tmp_path / "clusters").touch()
    with subprocess.Popen(["sleep", "60"]) as slurmdbd:
        (tmp_path / "slurmdbd.pid").write_text(str(slurmdbd.pid))
        yield Pod(tmp_path, script, slurmdbd)
        slurmdbd.kill()


def test_before_slurm_conf_names_slurmdbd_the_cluster_is_added(pod: Pod) -> None:
    """Then slurmdbd is ready; whoever else has the database stays in it."""
    pod.has("demo-2", "other")
    assert not pod.probe()
    assert pod.added() == ["demo-2", "other", "demo"]
    assert pod.probe()
    assert pod.said == ""


def test_a_cluster_whose_tables_take_long_is_added_once(pod: Pod) -> None:
    """The probe does not wait for it, and does not take half of it for all."""
    pod.becomes(True, "slow")
    began = time.monotonic()
    assert not pod.probe()
    assert not pod.probe()
    assert time.monotonic() - began < 4
    pod.becomes(False, "slow")
    assert pod.added() == ["demo"]
    assert pod.probe()
    assert (pod.root / "log").read_text() == "added\n"


def test_from_then_on_another_database_is_told_and_slurmdbd_is_ended(pod: Pod) -> None:
    """Once: it has slurmctld's connection no longer, and nobody is led to it."""
    pod.has("demo")
    pod.becomes(True, "registered")
    assert pod.probe()
    pod.has("other")
    assert not pod.probe()
    assert pod.said.startswith(UNKNOWN)
    assert not pod.lives()
    assert (pod.root / "parted").exists()
    with subprocess.Popen(["sleep", "60"]) as second:
        (pod.root / "slurmdbd.pid").write_text(str(second.pid))
        assert not pod.probe()
        assert second.poll() is None
        second.kill()
    assert pod.added() == ["other"]


def test_the_former_database_makes_all_well(pod: Pod) -> None:
    """What was said of the wrong one is taken back."""
    pod.becomes(True, "registered")
    assert not pod.probe()
    assert pod.said.startswith(UNKNOWN)
    pod.has("demo")
    assert pod.probe()
    assert pod.said == ""
    assert pod.lives()


def test_a_cluster_that_was_on_before_stays_ready(pod: Pod) -> None:
    """Its database knows it, with the key and without."""
    pod.has("demo")
    assert pod.probe()
    pod.becomes(True, "registered")
    assert pod.probe()
    assert pod.lives()


def test_a_database_that_does_not_answer_has_said_nothing_of_the_cluster(pod: Pod) -> None:
    """slurmdbd's own words stay, nothing is added, and a slurmdbd that is busy is not ended."""
    pod.has("demo")
    pod.becomes(True, "registered")
    assert pod.probe()
    (pod.root / "said").write_text("error: mysql_real_connect failed: 2002 Can't connect")
    pod.becomes(True, "down")
    assert not pod.probe()
    assert "2002" in pod.said
    assert pod.lives()
    assert pod.added() == ["demo"]


def test_a_slurmdbd_that_lost_its_database_is_ended_where_it_was_ready(pod: Pod) -> None:
    """One that never was is left alone: it waits for its database as it is."""
    pod.probe("part")
    assert pod.lives()
    pod.has("demo")
    assert pod.probe()
    pod.probe("part")
    assert not pod.lives()
