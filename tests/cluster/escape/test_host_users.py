"""A cluster without user namespaces, for storage that cannot be idmapped, beside one with them, on the same jail: the same things work."""

import pytest

from tests.cluster.escape.conftest import Ground
from tests.cluster.lab import condition

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest.fixture
def host(grounds: dict[str, Ground]) -> Ground:
    """The cluster in the Node's own user namespace."""
    return grounds["host"]


def test_the_cluster_tells_that_it_is_less_confined(host: Ground) -> None:
    """The condition says that root of the jail is root on the Node, and the pods are as it says."""
    said = condition(host.lab.status(), "Confined")
    assert (said["status"], said["reason"]) == ("False", "HostUsers")
    for role in ("login", "worker"):
        assert [pod["spec"]["hostUsers"] for pod in host.lab.pods(role).values()] == [True]
    assert host.exec("cat", "/proc/self/uid_map").split() == ["0", "0", "4294967295"]


def test_users_log_in_and_run_jobs(host: Ground) -> None:
    """A session, a step, a batch job and its output work as in a user namespace."""
    assert host.lab.ssh("alice", "id -un; hostname") == "alice\nplain-login-0\n"
    assert (
        host.lab.ssh("alice", f"srun -w {host.node} sh -c 'id -un; hostname; pwd'") == "alice\nplain-0\n/home/alice\n"
    )
    host.lab.ssh("alice", "rm -f of-plain; sbatch --quiet --wait -o of-plain --wrap 'hostname; srun id -un'")
    assert host.lab.ssh("alice", "cat of-plain; stat -c %U of-plain") == "plain-0\nalice\nalice\n"


def test_root_installs_and_makes_users(host: Ground) -> None:
    """Root of the jail gives files to users and sets modes, in a job."""
    script = "install -o alice -m 4755 /bin/true /root/of-root; stat -c '%U %a' /root/of-root; rm /root/of-root"
    assert host.lab.ssh("root", f'srun -w {host.node} sh -c "{script}"') == "alice 4755\n"


def test_both_clusters_see_one_jail_with_the_same_owners(grounds: dict[str, Ground]) -> None:
    """What a job of one writes belongs to the same user in the other: the idmap leaves the numbers on the storage as they are."""
    userns, host = grounds["userns"], grounds["host"]
    userns.lab.ssh("alice", f"srun -w {userns.node} sh -c 'echo there > shared-file'")
    userns.lab.ssh("root", f"srun -w {userns.node} touch /root/shared-file")
    look = "stat -c '%U %G' /home/alice/shared-file /root/shared-file; rm /root/shared-file"
    assert host.lab.ssh("root", f'srun -w {host.node} sh -c "{look}"') == "alice alice\nroot root\n"


def test_tasks_are_bound_to_their_cpus_where_the_cluster_says_so(grounds: dict[str, Ground]) -> None:
    """With jobs.bindCpus a job of one CPU has one; without, a task may run on every CPU of the pod."""
    ask = "python3 -c 'import os; print(len(os.sched_getaffinity(0)), os.cpu_count())'"
    bound, every = grounds["host"].lab.ssh("alice", f"srun -c1 -w {grounds['host'].node} {ask}").split()
    assert bound == "1"
    free = grounds["userns"].lab.ssh("alice", f"srun -c1 -w {grounds['userns'].node} {ask}").split()
    assert free == [every, every]


def test_the_key_of_one_cluster_opens_nothing_of_the_other(grounds: dict[str, Ground]) -> None:
    """A token that one cluster gave to its root is taken by its own slurmrestd, and refused by the other's in the same namespace."""
    own, other = grounds["userns"].lab, grounds["host"].lab
    ask = (
        "import json, subprocess, sys, urllib.request as web\n"
        "token = subprocess.run(['scontrol', 'token', 'lifespan=60'], capture_output=True, text=True).stdout.strip()\n"
        "header = {'X-SLURM-USER-NAME': 'root', 'X-SLURM-USER-TOKEN': token.removeprefix('SLURM_JWT=')}\n"
        "for url in sys.argv[1:]:\n"
        "    try:\n"
        "        print(web.urlopen(web.Request(url, headers=header), timeout=10).status)\n"
        "    except web.HTTPError as error:\n"
        "        print(error.code)\n"
    )
    urls = [f"http://{each.cluster}-rest.{each.namespace}.svc:6820/slurm/v0.0.42/nodes/" for each in (own, other)]
    codes = own.ssh("root", f"python3 - {' '.join(urls)}", ask.encode()).split()
    assert codes[0] == "200"
    assert codes[1] in ("401", "500", "511"), codes
