"""The library before Slurm's (images/slurm/mend) keeps one user's command from stopping slurmctld, which it does without."""

import shutil
import subprocess
from pathlib import Path

import pytest

from local.paths import REPOSITORY
from tests.slurm.machine import NEEDS, Slurm

pytestmark = NEEDS
#: bob ends alice's job in the way that is looked at by slurmctld alone.
ENDS = "su bob -c 'timeout 10 scancel --ctld 1 2>&1'; echo; timeout 5 squeue -ho %u; echo $?"


@pytest.fixture
def shared(slurm: Slurm) -> Slurm:
    """A machine with two users and no accounting."""
    slurm.sh("useradd -m alice; useradd -m bob")
    return slurm


def submit(slurm: Slurm) -> None:
    """A job of alice's that runs."""
    slurm.starts("w-0")
    slurm.sh("su alice -c 'cd; sbatch --wrap \"sleep 300\"'")
    slurm.until("squeue -ho %T", "RUNNING")


def test_a_user_who_ends_the_job_of_another_is_denied_and_slurmctld_goes_on(shared: Slurm, tmp_path: Path) -> None:
    """One's own job ends as asked."""
    built = tmp_path / "built"
    subprocess.run(["make", "-s", "-C", REPOSITORY / "images/slurm/mend", f"BUILD={built}"], check=True)
    shutil.copy(built / "mend.so", f"/proc/{shared.pid}/root/run/mend.so")
    shared.begins("LD_PRELOAD=/run/mend.so")
    submit(shared)
    said = shared.sh(ENDS)
    assert "Access/permission denied" in said
    assert said.endswith("\nalice\n0\n")
    assert shared.sh("su alice -c 'timeout 10 scancel --ctld 1'") == ""
    shared.until("squeue -ho %T", "")


def test_without_it_slurmctld_stands_still(shared: Slurm) -> None:
    """Once this fails, Slurm is mended, and the library can go."""
    shared.begins()
    submit(shared)
    assert shared.sh(ENDS).endswith("\n124\n")
