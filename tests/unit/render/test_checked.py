"""The partitions of deep checks in slurm.conf, and what they make of preemption."""

from dataclasses import replace

import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import slurm_conf
from soperator.slurm import conf

PARTITIONS = [{"name": "main", "default": True}, {"name": "low", "options": {"PreemptMode": "REQUEUE"}}]


def lines(extra: str = "", checked: bool = True) -> tuple[dict[str, str], dict[str, str]]:
    """The settings, and the PreemptMode of each partition."""
    spec = SlurmClusterSpec.model_validate({"partitions": PARTITIONS, "config": {"extraLines": {"slurm": extra}}})
    cluster = replace(Cluster("slurm", "demo", "u", spec), checked=checked)
    found = conf.parse(slurm_conf.slurm_conf(cluster))
    settings = {each.head: each.pairs[0][1] for each in found}
    modes = {each.pairs[0][1]: each.get("PreemptMode") or "" for each in found if each.head == "PartitionName"}
    return settings, modes


def test_without_a_check_there_is_nothing_of_it() -> None:
    """Neither partitions nor preemption."""
    settings, modes = lines(checked=False)
    assert "PreemptType" not in settings
    assert modes == {"main": "", "low": "REQUEUE"}


def test_checks_make_way_and_nobody_else_does() -> None:
    """Users' partitions are not preempted, but for one that says so."""
    settings, modes = lines()
    assert (settings["PreemptType"], settings["PreemptMode"]) == ("preempt/partition_prio", "CANCEL")
    assert modes == {"main": "OFF", "low": "REQUEUE", "soperator-check": "CANCEL", "soperator-retest": "OFF"}


@pytest.mark.parametrize(
    ("extra", "mode"),
    [
        ("PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG", "CANCEL"),
        ("PreemptType=preempt/qos\nPreemptMode=REQUEUE", ""),
        ("PreemptType=preempt/none", ""),
        ("PreemptMode=GANG", ""),
    ],
)
def test_what_an_administrator_says_of_preemption_stands(extra: str, mode: str) -> None:
    """Nothing is set beside it; checks make way where it goes by partitions."""
    _, modes = lines(extra)
    assert modes["soperator-check"] == mode
    assert modes["main"] == ""
