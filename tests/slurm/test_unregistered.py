"""Jobs that are larger than what has registered, and records that are made before their nodes come: facts of docs/decisions/0101."""

import asyncio
import shlex
from collections.abc import Sequence

import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.kube.api import Api
from soperator.kube.exec import Result, Target
from soperator.reconcile.io.slurm_exec import PodExec
from soperator.render.parts.model import Cluster
from soperator.slurmrest.client import SlurmError
from tests.slurm.machine import NEEDS, Slurm
from tests.slurm.sleeping import CONF

pytestmark = NEEDS

CLUSTER = Cluster("slurm", "demo", "u", SlurmClusterSpec())
REFUSED = "Requested node configuration is not available"
SIZE = ["CPUs=1", "RealMemory=100", "Feature=owl"]
LARGE = "sbatch -p owl -o /tmp/large"
STATES = "sinfo -h -N -p owl -o '%N %T'"


@pytest.fixture
def owls(slurm: Slurm) -> Slurm:
    """A slurmctld with two nodes that have registered, and scontrol at its place in the image."""
    slurm.sh("mkdir -p /opt/soperator/bin; ln -s /usr/bin/scontrol /opt/soperator/bin/scontrol")
    slurm.sh("cat > /etc/slurm/more.conf", CONF)
    slurm.begins()
    slurm.starts("w-0", "w-1", more="Feature=owl")
    return slurm


def inside(slurm: Slurm, pause: float = 0.0) -> PodExec:
    """Commands beside this slurmctld, with so many seconds before each."""

    async def run(_api: Api, _target: Target, command: Sequence[str]) -> Result:
        await asyncio.sleep(pause)
        said = slurm.sh(f"({shlex.join(command)}) 2>&1; echo $?").rstrip("\n")
        printed, _, code = said.rpartition("\n")
        return Result(int(code), "", printed)

    return PodExec(None, run)  # type: ignore[arg-type]  # nothing here asks Kubernetes


def future(nodes: str) -> str:
    """The command that makes FUTURE records."""
    return f"scontrol create NodeName={nodes} State=FUTURE {' '.join(SIZE)}"


async def makes(slurm: Slurm, nodes: str) -> str:
    """Make records as for nodes that sleep; the refusal, empty where there is none."""
    try:
        await inside(slurm).record(CLUSTER, [f"NodeName={nodes}", "State=CLOUD", *SIZE])
    except SlurmError as error:
        return str(error)
    return ""


def test_scontrol_create_takes_the_record_of_an_idle_node_that_has_the_name(owls: Slurm) -> None:
    """It fails, and with 24.11 the node is gone, a suspended job on it or not: why no record is made while a slurmd may register. 26.05 leaves it."""
    assert owls.sh("sbatch -Q -p owl -N2 -o /dev/null --wrap 'sleep 100'") == ""
    owls.until("squeue -h -o %T", "RUNNING")
    owls.sh("scontrol suspend 1")
    owls.until(STATES, "w-0 idle\nw-1 idle")
    assert "Node already exists" in owls.sh(future("w-1"))
    owls.until(STATES, "w-0 idle" if owls.is_2411() else "w-0 idle\nw-1 idle")
    assert owls.sh("squeue -h -o '%T %N'") == "SUSPENDED w-[0-1]\n"


@pytest.mark.parametrize("nodes", ["w-1", "w-[2-3],w-1"])
async def test_records_that_are_there_are_not_made_over(owls: Slurm, nodes: str) -> None:
    """A command that is sent twice, as to a second slurmctld's pod, or that meets a node which has registered, changes nothing."""
    assert "has a record of one of them" in await makes(owls, nodes)
    assert owls.sh(STATES) == "w-0 idle\nw-1 idle\n"
    assert await makes(owls, "w-[2-3]") == ""
    assert "has a record of one of them" in await makes(owls, "w-[2-4]")
    assert owls.sh(STATES) == "w-0 idle\nw-1 idle\nw-2 idle~\nw-3 idle~\n"


async def test_a_record_that_nobody_lists_is_not_made_over(owls: Slurm) -> None:
    """One that is FUTURE, made by hand, stands neither in sinfo nor in the answers of slurmrestd."""
    assert owls.sh(future("w-2")) == ""
    assert owls.sh(STATES) == "w-0 idle\nw-1 idle\n"
    assert "has a record of one of them" in await makes(owls, "w-2")
    assert "State=FUTURE" in owls.sh("scontrol --future show node w-2")


async def test_the_first_records_are_made_and_none_while_slurmctld_does_not_answer(slurm: Slurm) -> None:
    """A slurmctld without any node says so in other words than of one that it does not know."""
    slurm.sh("mkdir -p /opt/soperator/bin; ln -s /usr/bin/scontrol /opt/soperator/bin/scontrol")
    slurm.sh("cat > /etc/slurm/more.conf", CONF)
    slurm.begins()
    assert await makes(slurm, "w-[0-1]") == ""
    slurm.until(STATES, "w-0 idle~\nw-1 idle~")
    slurm.sh("pkill -STOP '^slurmctld'")
    assert "not known" in await makes(slurm, "w-[2-3]")
    slurm.sh("pkill -CONT '^slurmctld'")
    assert slurm.sh(STATES) == "w-0 idle~\nw-1 idle~\n"


async def test_a_job_that_waits_for_new_records_is_not_ended_by_the_word_that_opens_them(owls: Slurm) -> None:
    """They are DOWN for a moment. A slow API server leaves Slurm the time to give them to a job before, which cannot be queued again."""
    number = owls.sh("sbatch --parsable --no-requeue -H -p owl -N3 -o /dev/null --wrap 'sleep 100'").strip()
    owls.sh(f"scontrol release {number}")
    owls.until("squeue -h -o '%T'", "PENDING")
    await inside(owls, 8.0).record(CLUSTER, ["NodeName=w-2", "State=CLOUD", *SIZE])
    owls.until("squeue -h -t all -o '%T %D'", "CONFIGURING 3")


async def test_a_node_that_registered_just_before_it_is_given_up_is_not(owls: Slurm) -> None:
    """The command may come long after it was decided upon; one that sleeps, or wakes, is DOWN then, and its job waits again."""
    assert owls.sh("sbatch -Q --no-requeue -p owl -w w-1 -o /dev/null --wrap 'sleep 100'") == ""
    owls.until("squeue -h -o %T", "RUNNING")
    assert await makes(owls, "w-[2-3]") == ""
    with pytest.raises(SlurmError, match="w-1 is awake by now"):
        await inside(owls).deny(CLUSTER, "w-[1-3]", "soperator: no capacity: none")
    assert owls.sh("squeue -h -o '%T %N'") == "RUNNING w-1\n"
    owls.sh("scontrol update NodeName=w-3 State=POWER_UP")
    owls.until("sinfo -h -N -n w-3 -p owl -o '%t'", "idle#")
    await inside(owls).deny(CLUSTER, "w-[2-3]", "soperator: no capacity: none")
    assert owls.sh("sinfo -h -N -n w-2,w-3 -p owl -o '%N %T %E'").count("no capacity: none") == 2


async def test_one_task_of_an_array_is_queued_again_and_only_while_it_is_on_the_node(owls: Slurm) -> None:
    """The others run on, wherever they are, and so does one that a late command finds on another node."""
    script = "-o /dev/null --wrap 'sleep 100'"
    number = int(owls.sh(f"sbatch --parsable --requeue -p owl --array=0-1 -N1 --exclusive {script}"))
    owls.until("squeue -h -t R | wc -l", "2")
    on = dict(line.split() for line in owls.sh("squeue -h -o '%K %N'").splitlines())
    await inside(owls).requeue(CLUSTER, f"{number}_1", on["0"])
    assert owls.sh("squeue -h -t R | wc -l") == "2\n"
    await inside(owls).requeue(CLUSTER, f"{number}_1", on["1"])
    owls.until("squeue -h -o '%K %T' | sort", "0 RUNNING\n1 PENDING")


async def test_a_heterogeneous_job_is_queued_again_from_the_node_of_any_component(owls: Slurm) -> None:
    """By its leader; a command that finds no component on the node leaves it alone."""
    parts = " : ".join(f"-p owl -N1 --exclusive --requeue -w {each}" for each in ("w-0", "w-1"))
    number = owls.sh(f"sbatch --parsable -o /dev/null {parts} --wrap 'sleep 100'").strip()
    owls.until("squeue -h -t R | wc -l", "2")
    await inside(owls).requeue(CLUSTER, number, "w-9")
    assert owls.sh("squeue -h -t R | wc -l") == "2\n"
    await inside(owls).requeue(CLUSTER, number, "w-1")
    owls.until("squeue -h -o %T", "PENDING\nPENDING")


def test_a_held_job_is_queued_and_starts_when_its_nodes_have_registered(owls: Slurm) -> None:
    """What docs/howto/limit-jobs.md tells users: released too early, it waits; without the hold, and with a start time, 24.11 refuses it."""
    if owls.is_2411():
        assert REFUSED in owls.sh(f"{LARGE} -N3 --wrap hostname")
        assert REFUSED in owls.sh(f"{LARGE} -N3 --begin=now+60 --wrap hostname")
    number = owls.sh(f"{LARGE} --parsable -H -N3 --wrap 'srun hostname | sort'").strip()
    assert "not available now" in owls.sh(f"scontrol release {number}")
    owls.until("squeue -h -o '%T %r'", "PENDING PartitionConfig")
    owls.starts("w-2", more="Feature=owl", is_saved=False)
    owls.until("cat /tmp/large", "w-0\nw-1\nw-2")


def test_a_future_record_makes_a_large_job_wait_and_keeps_its_size_for_the_node(owls: Slurm) -> None:
    """Invisible, it counts; slurmd registers under it with the record's size, not with its own."""
    assert owls.sh(future("w-[2-3]")) == ""
    assert owls.sh(f"{LARGE} -Q -N3 --wrap hostname") == ""
    assert "PENDING" in owls.sh("squeue -h -o %T")
    assert owls.sh(STATES) == "w-0 idle\nw-1 idle\n"
    owls.starts("w-2", more="Feature=owl,cat Weight=7", cpus=2, is_saved=False)
    assert owls.sh("sinfo -h -p owl -n w-2 -o '%c %f %w'") == "1 owl 1\n"


def test_a_future_record_does_not_hold_where_there_is_a_topology(owls: Slurm) -> None:
    """Although the tree names the node; neither release lets a job wait for it."""
    owls.reads("tree", "SwitchName=root Nodes=w-[0-5]\n", CONF)
    assert owls.sh(future("w-2")) == ""
    said = "Requested topology configuration is not available" if owls.is_2411() else REFUSED
    assert said in owls.sh(f"{LARGE} -N3 --wrap hostname")
