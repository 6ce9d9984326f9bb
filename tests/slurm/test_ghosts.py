"""A job whose processes were killed with their slurmd, with a real slurmctld: how it is noticed."""

import re
import time

import pytest

from soperator.policy.health.lost_jobs import WAIT
from tests.slurm.machine import NEEDS, Slurm

pytestmark = [*NEEDS, pytest.mark.timeout(300)]
SLURMD = "unshare --uts sh -c 'hostname w-0; slurmd -N w-0 -Z --conf \"CPUs=2 RealMemory=100 Port=7000\"'"


def test_a_registration_half_a_minute_after_slurmd_ends_the_ghost_and_no_job_that_runs(slurm: Slurm) -> None:
    """The first registration comes too soon for slurmctld, which passes over jobs that just began; a job of after the start stays as it is."""
    slurm.sh("slurmctld")
    slurm.until("scontrol ping | grep -o UP", "UP")
    slurm.starts("w-0", cpus=2, is_saved=False)
    slurm.sh("sbatch -Q -n1 -w w-0 -o /dev/null --requeue --wrap 'sleep 4321'")
    slurm.until("pgrep -x sleep -a | grep -c 4321", "1")
    slurm.sh(
        "pkill -9 slurmd; pkill -9 slurmstepd; kill -9 $(pgrep -f 'slee[p] 4321'); rm -rf /var/spool/slurmd-w-0/*; "
        + SLURMD
    )
    began = time.monotonic()
    slurm.sh("sbatch -Q -n1 -w w-0 -o /dev/null --wrap 'sleep 1234'")
    slurm.until("pgrep -x sleep -a | grep -c 1234", "1")
    time.sleep(max(0.0, began + WAIT - time.monotonic()))
    assert slurm.sh("squeue -h -j 1 -o %T").strip() == "RUNNING", "by itself slurmctld does not notice"
    slurm.sh("pkill -HUP -o slurmd")
    slurm.until("squeue -h -j 1 -o %T", "PENDING")
    assert re.search("JobId=1 missing from batch node", slurm.sh("cat /var/log/slurm/ctld.log"))
    assert slurm.sh("squeue -h -j 2 -o %T").strip() == "RUNNING"
    assert slurm.sh("pgrep -x sleep -a | grep -c 1234").strip() == "1"
