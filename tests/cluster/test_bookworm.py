"""A jail of another distribution, older than Slurm's: Debian 12 (glibc 2.36, Open MPI 4 with PMIx 4) under Debian 13's Slurm and PMIx 5.

`make test-bookworm` builds the image and runs this; `make test` skips it.
"""

import os
import time
from collections.abc import Iterator

import pytest

from local import images
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, local
from tests.cluster.second import claims, clean, install, make_storage

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

NAMESPACE = "slurm-bookworm"
CLUSTER = "older"
RING = """
from mpi4py import MPI
world = MPI.COMM_WORLD
print(world.rank, MPI.Get_processor_name(), world.allreduce(world.rank + 1), MPI.Get_library_version().split(",")[0], flush=True)
"""


@pytest.fixture(scope="module")
def older(lab: Lab) -> Iterator[Lab]:
    """A cluster whose jail is filled from the image of Debian 12, with one user."""
    if not lab.target.is_local or not os.environ.get("SOPERATOR_BOOKWORM"):
        pytest.skip("make test-bookworm builds the image that this needs, which takes minutes")
    (image,) = images.built(["jail-bookworm"])
    local("load", str(image.tar))
    second = Lab(lab.target, NAMESPACE, CLUSTER, lab.timings)
    clean(second)
    began = time.monotonic()
    make_storage(second)
    install(second, claims(second, image=image.references()["jail-bookworm"]))
    second.wait_available(240)
    second.timings.note("a cluster with a jail of Debian 12: helm install → available", time.monotonic() - began)
    make_user(second, "bob")
    second.ssh("bob", "cat > ring.py", stdin=RING.encode())
    yield second
    clean(second)


def test_steps_run_in_the_older_distribution(older: Lab) -> None:
    """The user's programs are Debian 12's with its glibc, and Slurm's commands beside them are those of the bundle."""
    seen = older.ssh("bob", "srun -N2 sh -c '. /etc/os-release; echo $VERSION_CODENAME $(getconf GNU_LIBC_VERSION)'")
    assert seen == "bookworm glibc 2.36\n" * 2
    assert "24.11" in older.ssh("bob", "sinfo --version")


def test_a_batch_job_runs_in_the_older_distribution(older: Lab) -> None:
    """sbatch, with a step on each node, an array and a file that lands at home."""
    older.ssh(
        "bob",
        "sbatch --quiet --wait -N2 -o batch.out --wrap 'srun hostname'; sbatch --quiet --wait -a 0-1 -o a-%a.out --wrap id",
    )
    assert sorted(older.ssh("bob", "cat batch.out").split()) == ["worker-0", "worker-1"]
    assert older.ssh("bob", "cat a-0.out a-1.out").count("(bob)") >= 2


@pytest.mark.parametrize("launch", ["srun --mpi=pmix", "srun --mpi=pmix_v5", "mpirun"])
def test_mpi_of_the_older_distribution_runs_over_two_nodes(older: Lab, launch: str) -> None:
    """Open MPI 4 finds its peers by PMIx 4 from the server of PMIx 5, and by its own mpirun, which starts its daemons with srun."""
    older.ssh("bob", f"sbatch --quiet --wait -N2 -n2 -o ring.out --wrap '{launch} python3 ring.py'")
    lines = [line.split(maxsplit=3) for line in older.ssh("bob", "cat ring.out").splitlines()]
    ranks = sorted(line[0] for line in lines)
    assert ranks == ["0", "1"], lines
    assert {line[2] for line in lines} == {"3"}
    assert {line[3] for line in lines} == {"Open MPI v4.1.4"}
    assert sorted(line[1] for line in lines) == ["worker-0", "worker-1"]


def test_pmi2_which_the_older_mpi_lacks_is_told_by_it(older: Lab) -> None:
    """Debian builds Open MPI with PMIx alone: with PMI-2 it says so, and the job fails instead of running as single ranks."""
    older.ssh("bob", "sbatch --quiet --wait -n2 -o pmi2.out --wrap 'srun --mpi=pmi2 python3 ring.py' || true")
    assert "PMI-2 support" in older.ssh("bob", "cat pmi2.out")
