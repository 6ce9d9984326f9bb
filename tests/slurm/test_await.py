"""A job on a node that woke begins at once where images/slurm/wake waits for it; where it may not wait nothing is lost (docs/decisions/0081)."""

import shutil
from pathlib import Path

import pytest

from local.paths import REPOSITORY
from tests.slurm.machine import NEEDS, Slurm
from tests.slurm.sleeping import CONF, sleeps, wakes

pytestmark = NEEDS

PROGRAM = "/run/wake/build/await-nodes"
COUNT = "pidof await-nodes | wc -w"
LOG = "grep -o '[a-z_]*: Configuration for JobId=1.*' /var/log/slurm/ctld.log"
AT_ONCE = "prolog_running_decr: Configuration for JobId=1 is complete"


def begins(slurm: Slurm, flags: str = "", more: str = "") -> None:
    """Start slurmctld with the program, built with flags, and submit a job that wakes a node."""
    shutil.copytree(
        REPOSITORY / "images/slurm/wake",
        Path(f"/proc/{slurm.pid}/root/run/wake"),
        ignore=shutil.ignore_patterns("build"),
    )
    assert slurm.sh(f"make -s -C /run/wake CPPFLAGS={flags}") == ""
    slurm.sh("cat > /etc/slurm/more.conf", f"{CONF}PrologSlurmctld={PROGRAM}\n{more}")
    slurm.begins()
    assert sleeps(slurm, "w-[0-1]", "Feature=owl") == ""
    slurm.sh("sbatch -Q -p owl -w w-0 -o /tmp/said --wrap hostname")
    slurm.until("squeue -h -o %T", "CONFIGURING")


def has_begun(slurm: Slurm) -> None:
    """The job begins as soon as its node has woken, and not with one of slurmctld's looks."""
    slurm.until(COUNT, "1")
    wakes(slurm, "w-0", "")
    slurm.until("cat /tmp/said", "w-0")
    assert slurm.sh(LOG).strip() == AT_ONCE
    slurm.until(COUNT, "0")


def test_a_job_begins_when_its_node_has_woken(slurm: Slurm) -> None:
    """The next one on that node, which is awake, waits for nothing. Another PrologSlurmctld stands beside it."""
    begins(slurm, more="PrologSlurmctld=/usr/bin/true\n")
    has_begun(slurm)
    assert slurm.sh("srun -Q -p owl -w w-0 hostname").strip() == "w-0"


@pytest.mark.parametrize("how", ["pkill -9 -x slurmctld", "pkill -x slurmctld"])
def test_slurmctld_that_ends_meanwhile_waits_anew(slurm: Slurm, how: str) -> None:
    """No wait outlives it, and the job neither fails nor is queued again; after an orderly end 26.05 does not wait anew, and looks itself."""
    begins(slurm)
    slurm.sh("scontrol update JobId=1 Comment=written")
    slurm.until("grep -aos written /var/spool/slurmctld/job_state", "written")
    slurm.sh(how)
    slurm.until(COUNT, "0")
    slurm.begins()
    if slurm.is_2411() or "-9" in how:
        has_begun(slurm)
    else:
        wakes(slurm, "w-0", "")
        slurm.until("cat /tmp/said", "w-0")
    assert "Requeuing" not in slurm.sh("cat /var/log/slurm/ctld.log")


def test_no_wait_outlives_its_job(slurm: Slurm) -> None:
    """Where Slurm takes the job back, for its node is given up, and where its user ends it."""
    begins(slurm)
    slurm.until(COUNT, "1")
    slurm.sh("scontrol update NodeName=w-0 State=DOWN Reason='soperator: no capacity: Unschedulable'")
    slurm.until(COUNT, "0")
    slurm.until("squeue -h -o %T", "PENDING")
    slurm.sh("scancel 1; sbatch -Q -p owl -w w-1 --wrap hostname")
    slurm.until(COUNT, "1")
    slurm.sh("scancel 2")
    slurm.until(COUNT, "0")
    slurm.until("squeue -h", "")


@pytest.mark.parametrize(("flags", "more"), [("-DMOST=0", ""), ("", "PrologEpilogTimeout=11\n")])
def test_where_it_may_not_wait_the_job_is_left_to_slurmctld(slurm: Slurm, flags: str, more: str) -> None:
    """Where too many wait, where PrologEpilogTimeout would come, and where Slurm's library gives up: the job keeps its node."""
    begins(slurm, flags, more)
    slurm.until(f"sleep 1; {COUNT}", "0")
    assert slurm.sh("squeue -h -o '%T %N'").strip() == "CONFIGURING w-0"
    assert slurm.sh(f"SLURM_CONF=/dev/null SLURM_JOB_ID=1 SLURM_JOB_NODELIST=w-0 {PROGRAM}; echo $?").startswith("0\n")


@pytest.mark.parametrize("parts", ["-p owl -w w-0 : -p all -w w-2", "-p all -w w-2 : -p owl -w w-0"])
def test_a_job_of_several_parts_begins_when_the_last_has_its_nodes(slurm: Slurm, parts: str) -> None:
    """Whichever part it is that waits."""
    begins(slurm)
    slurm.sh("scancel 1")
    slurm.until(COUNT, "0")
    slurm.starts("w-2")
    slurm.sh(f"sbatch -Q -o /tmp/said {parts} --wrap 'echo $SLURM_HET_SIZE'")
    slurm.until(COUNT, "1")
    wakes(slurm, "w-0", "")
    slurm.until("cat /tmp/said", "2")
    assert "job_time_limit" not in slurm.sh("cat /var/log/slurm/ctld.log")
