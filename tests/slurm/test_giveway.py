"""The hook with which a worker gives way, and what Slurm 24.11 really says."""

from local.paths import REPOSITORY
from tests.slurm.machine import NEEDS, Slurm

pytestmark = NEEDS
SCRIPT = REPOSITORY / "images/slurm/giveway"
HOOK = "timeout {} env SOPERATOR_NODE_NAME={} bash /giveway /proc /usr/bin/scontrol; echo $?"
LATE = "124"


def test_the_hook_ends_when_the_node_is_drained_and_its_job_has_ended_and_for_a_node_that_slurm_does_not_know(
    slurm: Slurm,
) -> None:
    """A job, and a node that could take one, hold it."""
    slurm.sh("cat > /giveway", SCRIPT.read_text())
    slurm.begins()
    slurm.starts("w-0")
    assert slurm.sh(HOOK.format(30, "w-1")).strip() == "0"
    assert slurm.sh(HOOK.format(2, "w-0")).strip() == LATE
    slurm.sh("sbatch -Q -w w-0 -o /dev/null --wrap 'sleep 300'")
    slurm.until("squeue -h -t R | wc -l", "1")
    slurm.sh("scontrol update nodename=w-0 state=drain reason=way")
    assert slurm.sh(HOOK.format(2, "w-0")).strip() == LATE
    slurm.until("grep -ao way /var/spool/slurmctld/node_state | head -n 1", "way")
    slurm.sh("pkill -KILL '^slurmctld'")
    assert slurm.sh(HOOK.format(3, "w-0")).strip() == LATE
    slurm.begins(signal="KILL")
    slurm.sh("scancel -w w-0")
    assert slurm.sh(HOOK.format(45, "w-0")).strip() == "0"
    assert slurm.sh("sinfo -hN -n w-0 -o %T").strip() == "drained"
