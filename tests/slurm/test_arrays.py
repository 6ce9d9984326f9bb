"""How large a job array may be: by Slurm's own defaults and by ours, with a real slurmctld."""

import pytest

from soperator.render.slurm_conf import slurm_conf
from tests.slurm.machine import NEEDS, Slurm

pytestmark = [*NEEDS, pytest.mark.timeout(120)]
ARRAY = "sbatch --parsable --hold --array=0-{} --wrap true 2>&1"


def ours() -> str:
    """Our lines about the number of jobs."""
    return "".join(f"{key}={value}\n" for key, value in slurm_conf.SIZES.items())


@pytest.mark.parametrize(("lines", "is_taken"), [("", False), (ours(), True)], ids=["slurms", "ours"])
def test_an_array_of_ten_thousand_is_taken(slurm: Slurm, lines: str, is_taken: bool) -> None:
    """Five of them are: each task counts as a job. Slurm's own defaults refuse the first."""
    slurm.sh("cat > /etc/slurm/more.conf", f"MinJobAge=300\n{lines}")
    slurm.begins()
    slurm.starts("w-0", is_saved=False)
    said = [slurm.sh(ARRAY.format(9999)).strip() for _ in range(5)]
    assert [each.isdigit() for each in said] == [is_taken] * 5, said


def test_a_larger_one_is_refused_at_once(slurm: Slurm) -> None:
    """With Slurm's words, which docs/howto/limit-jobs.md has."""
    slurm.sh("cat > /etc/slurm/more.conf", f"MinJobAge=300\n{ours()}")
    slurm.begins()
    slurm.starts("w-0", is_saved=False)
    assert "Invalid job array specification" in slurm.sh(ARRAY.format(10001))
