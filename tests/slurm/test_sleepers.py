"""Nodes that sleep, across a slurmctld that reads its files anew, which it does whenever the topology changes: facts of docs/decisions/0073."""

import pytest

from soperator.policy.workers.types import Verb
from tests.slurm.machine import NEEDS, Slurm
from tests.slurm.sleeping import CONF, sleeps

pytestmark = NEEDS


@pytest.fixture
def owl(slurm: Slurm) -> Slurm:
    """A slurmctld with one node, which sleeps."""
    slurm.sh("cat > /etc/slurm/more.conf", CONF)
    slurm.begins()
    assert sleeps(slurm, "w-0", "Feature=owl") == ""
    return slurm


def starts_anew(slurm: Slurm) -> None:
    """slurmctld reads what it has written down."""
    slurm.begins()
    slurm.until("sinfo -h -p owl -o %t", "idle~")


def tell(slurm: Slurm, state: str) -> None:
    """Set the node's state."""
    assert slurm.sh(f"scontrol update NodeName=w-0 State={state}") == ""


def wakes_for_a_job(slurm: Slurm) -> None:
    """See a job wake the node."""
    slurm.sh("sbatch -Q -p owl -o /dev/null --wrap hostname")
    slurm.until("sinfo -h -p owl -o %t", "alloc#")


def test_a_node_that_sleeps_is_woken_after_slurmctld_has_started_anew(owl: Slurm) -> None:
    """The operator's word for it leaves no flag behind."""
    starts_anew(owl)
    wakes_for_a_job(owl)


def test_a_node_that_somebody_resumed_while_it_slept_is_woken_once_it_was_put_to_sleep_again(owl: Slurm) -> None:
    """Until then slurmctld 24.11 waits for it to respond, which it cannot: its jobs stay where they are. 26.05 wakes it at once."""
    tell(owl, "DOWN Reason=disk")
    tell(owl, "RESUME")
    starts_anew(owl)
    if owl.is_2411():
        assert "NOT_RESPONDING" in owl.sh("scontrol show node w-0")
        assert "Unable to allocate" in "\n".join(owl.runs("-p owl --immediate=3"))
        tell(owl, Verb.SLEEP)
    owl.until("scontrol show node w-0 | grep -o NOT_RESPONDING; sinfo -h -p owl -o %t", "idle~")
    wakes_for_a_job(owl)
