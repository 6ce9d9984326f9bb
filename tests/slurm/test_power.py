"""What slurmctld 24.11 does with nodes that sleep, where the operator's own tests only play it: without Kubernetes, in namespaces.

These are facts of docs/decisions/0073 and 0074.
"""

import time

import pytest

from soperator.api.nodeset import Gpu
from soperator.render.jail import gres
from soperator.slurm import conf
from tests.slurm.machine import NEEDS, Slurm
from tests.slurm.sleeping import CONF, sleeps, wakes

pytestmark = NEEDS

#: It looks every 30 s (slurmctld.h, PERIODIC_TIMEOUT) for jobs whose nodes are up: Slurm's own share of a wake, and no setting's to change.
WAITED = "job_time_limit: Configuration for JobId=1 complete"


@pytest.fixture
def ctl(slurm: Slurm) -> Slurm:
    """A slurmctld that lets nodes sleep, with the gres.conf that our two GPUs have."""
    slurm.sh("cat > /etc/slurm/more.conf", CONF)
    slurm.sh("cat > /etc/slurm/gres.conf", conf.render(gres.lines("w", Gpu(vendor="nvidia", count=2))))
    slurm.sh(
        "mkdir -p /run/soperator/gpus; ln -s /dev/null /run/soperator/gpus/0; ln -s /dev/zero /run/soperator/gpus/1"
    )
    slurm.begins()
    return slurm


def test_gpus_of_nodes_that_sleep_are_those_of_gres_conf(ctl: Slurm) -> None:
    """slurmctld, which has no such device, believes the file, and refuses a record that it does not cover; a job has what slurmd finds."""
    assert "Invalid argument" in sleeps(ctl, "w-5", "Feature=owl Gres=gpu:3")
    assert sleeps(ctl, "w-[0-1]", "Feature=owl Gres=gpu:2") == ""
    ctl.sh("sbatch -Q -p owl --gres=gpu:2 -o /tmp/said --wrap 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES'")
    wakes(ctl, "w-0", "Feature=owl Gres=gpu:2")
    ctl.until("sinfo -h -N -p owl -o '%N %t %G'", "w-0 alloc gpu:2\nw-1 idle~ gpu:2")
    began = time.monotonic()
    ctl.until("cat /tmp/said", "w-0 0,1")
    print(f"its slurmd has registered → the job runs: {time.monotonic() - began:.1f} s")
    assert WAITED in ctl.sh("cat /var/log/slurm/ctld.log")
    ctl.until("sinfo -h -N -p owl -o '%N %t %G'", "w-0 idle gpu:2\nw-1 idle~ gpu:2")


def test_jobs_that_may_run_elsewhere_do_so_where_there_is_no_machine(ctl: Slurm) -> None:
    """The job that was to wake a node, and the one that comes after it, begin in the other partition; one that may not waits, with the reason."""
    assert sleeps(ctl, "w-[0-1]", "Feature=owl") == ""
    ctl.sh("scontrol update PartitionName=owl PriorityJobFactor=2 PriorityTier=2")
    ctl.sh("sbatch -Q -p owl,cat -o /tmp/first --wrap hostname")
    ctl.until("squeue -h -o '%P %T %N'", "owl CONFIGURING w-0")
    ctl.starts("w-2", more="Feature=cat")
    ctl.sh("scontrol update NodeName=w-[0-1] State=DOWN Reason='soperator: no capacity: Unschedulable'")
    ctl.sh("scontrol update NodeName=w-0 State=POWER_DOWN")
    ctl.sh("sbatch -Q -p owl,cat -o /tmp/second --wrap hostname; sbatch -Q -p owl -J third --wrap hostname")
    ctl.until("cat /tmp/second", "w-2")
    ctl.until("cat /tmp/first", "w-2")
    assert "third PENDING" in ctl.sh("squeue -h -o '%j %T %r'")
    assert "no capacity: Unschedulable" in ctl.sh("sinfo -h -R -o %E")
    ctl.sh("scontrol update NodeName=w-[0-1] State=RESUME")
    ctl.until("squeue -h -n third -o '%T %N'", "CONFIGURING w-0")


def test_a_job_over_more_nodes_than_slurm_knows_begins_once_it_knows_them(ctl: Slurm) -> None:
    """24.11 refuses it, so who scales a NodeSet by its queue cannot begin at zero (docs/decisions/0075), and who sleeps can; 26.05 lets it wait."""
    said = "Requested node configuration is not available" if ctl.is_2411() else "Submitted batch job 1"
    assert said in ctl.sh("sbatch -p owl --wrap hostname")
    ctl.sh("scancel -u root")
    ctl.starts("w-2", more="Feature=owl")
    assert said.rstrip("1") in ctl.sh("sbatch -p owl -N2 --wrap hostname")
    ctl.sh("scancel -u root")
    assert sleeps(ctl, "w-[0-1]", "Feature=owl") == ""
    assert ctl.sh("sbatch -Q -p owl -N3 --wrap hostname") == ""
    ctl.until("squeue -h -o '%T %D'", "CONFIGURING 3")
