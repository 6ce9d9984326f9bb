"""Features and weight of a dynamic node in a real slurmctld: what keeps them, what loses them, and what a partition over features makes of them."""

import pytest

from tests.slurm.machine import NEEDS, Slurm

pytestmark = [*NEEDS, pytest.mark.timeout(300)]
CONF = """\
NodeSet=blue Feature=blue
PartitionName=fast Nodes=blue
"""
UPDATED = "Features=w,blue ActiveFeatures=w,blue Weight=7"


@pytest.fixture
def ctl(slurm: Slurm) -> Slurm:
    """slurmctld with a partition over a feature, and two nodes without it."""
    slurm.sh("cat > /etc/slurm/more.conf", CONF)
    slurm.begins()
    slurm.starts("w-0", "w-1", more="Feature=w Weight=3")
    return slurm


def fields(slurm: Slurm, node: str = "w-0") -> str:
    """Available features and weight of a node."""
    return slurm.sh(f"sinfo -h -p all -n {node} -o '%f %w'").strip()


def fast(slurm: Slurm) -> str:
    """The nodes of the partition over the feature."""
    return slurm.sh("sinfo -h -N -p fast -o %N").strip()


def test_a_slurmd_that_starts_again_in_its_old_pod_overwrites_nothing(ctl: Slurm) -> None:
    """It registers with what it was started with, and slurmctld keeps the record that it has."""
    assert ctl.sh(f"scontrol update NodeName=w-0 {UPDATED}") == ""
    ctl.sh("pid=$(cat /run/slurmd-w-0.pid); kill $pid; while kill -0 $pid 2>/dev/null; do sleep 0.1; done")
    before = ctl.sh("scontrol show node w-0 | grep -o 'SlurmdStartTime=.*'")
    ctl.sh("sleep 1.1")
    ctl.starts("w-0", more="Feature=w Weight=3")
    ctl.until(f"scontrol show node w-0 | grep -o 'SlurmdStartTime=.*' | grep -cxF '{before.strip()}'", "0")
    assert fields(ctl) == "w,blue 7"


def test_slurmctld_falls_back_to_the_registered_weight_when_it_reads_its_files(ctl: Slurm) -> None:
    """So the operator compares with each answer instead of once; the features stay."""
    assert ctl.sh(f"scontrol update NodeName=w-0 {UPDATED}") == ""
    ctl.sh("scontrol reconfigure")
    ctl.until("sinfo -h -p all -n w-0 -o '%f %w'", "w,blue 3")


def test_a_record_that_was_deleted_comes_back_as_it_was_registered(ctl: Slurm) -> None:
    """With the features and the weight of slurmd's command line."""
    assert ctl.sh(f"scontrol update NodeName=w-0 {UPDATED}") == ""
    assert ctl.sh("scontrol delete NodeName=w-0") == ""
    ctl.sh("kill -HUP $(cat /run/slurmd-w-0.pid)")
    ctl.until("sinfo -h -p all -n w-0 -o '%f %w'", "w 3")


def test_a_partition_over_a_feature_has_its_nodes_only_when_it_is_updated_itself(ctl: Slurm) -> None:
    """An update of the features alone leaves it as it was; the partition's own update takes nodes in and out."""
    assert ctl.sh(f"scontrol update NodeName=w-[0-1] {UPDATED}") == ""
    assert fast(ctl) == ""
    assert ctl.sh("scontrol update PartitionName=fast Nodes=blue") == ""
    ctl.until("sinfo -h -p fast -o %N", "w-[0-1]")
    assert ctl.runs("-p fast -w w-1") == ["w-1"]
    assert ctl.sh("scontrol update NodeName=w-0 Features=w ActiveFeatures=w") == ""
    assert ctl.sh("scontrol update PartitionName=fast Nodes=blue") == ""
    ctl.until("sinfo -h -p fast -o %N", "w-1")


def test_features_are_refused_without_the_active_ones(ctl: Slurm) -> None:
    """So both are sent."""
    assert "Active features not subset of available features" in ctl.sh("scontrol update NodeName=w-0 Features=blue")


def test_an_unknown_partition_is_refused_in_these_words(ctl: Slurm) -> None:
    """The operator leaves a partition that slurmctld has yet to read."""
    assert "nvalid partition" in ctl.sh("scontrol update PartitionName=later Nodes=blue")
