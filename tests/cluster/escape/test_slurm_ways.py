"""Slurm itself as the way out: nothing that its commands offer makes a daemon read or write outside the jail, or act for another user."""

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.cluster.escape.conftest import Ground

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

REFUSED = (
    "denied|permission|permitted|invalid user id|does not exist|invalid job|disabled|privilege|isn't defined|not found"
)
PAYLOAD = "payload-of-the-escape-suite"


@pytest.fixture(params=["userns", "host"])
def ground(grounds: dict[str, Ground], request: pytest.FixtureRequest) -> Iterator[Ground]:
    """Each cluster with its node, which takes jobs again afterwards."""
    found = grounds[request.param]
    yield found
    found.lab.ssh("root", f"scontrol update nodename={found.node} state=resume 2>/dev/null; true")


def said(ground: Ground, user: str, command: str) -> str:
    """What a command printed, errors included, however it ended."""
    return ground.lab.ssh(user, f"{{ {command}\n}} 2>&1; true")


def found_in_pod(ground: Ground) -> list[str]:
    """The files outside the jail, in the container of slurmd, that hold the payload."""
    places = "/run /tmp /etc /root /var/spool/slurmd/conf-cache /mnt/tmp /home"
    return ground.exec("sh", "-c", f"grep -rls {PAYLOAD} {places} 2>/dev/null; true").split()


@pytest.mark.parametrize(
    "path",
    [
        "/run/slurm/new",
        "/run/soperator/new",
        "/tmp/new",
        "/var/spool/slurmd/conf-cache/plugstack.conf",
        "/etc/ld.so.preload",
    ],
)
def test_sbcast_writes_nothing_outside_the_jail(ground: Ground, path: str) -> None:
    """A file that root of the jail broadcasts is opened in the job's jail, or refused; slurmd's container has none of it."""
    script = f"sbcast -f /root/payload {path}; srun sh -c 'rm -f {path}'"
    command = f"echo '#{PAYLOAD}' > /root/payload; salloc -Q -w {ground.node} sh -c {shlex.quote(script)}"
    said(ground, "root", command + "; rm -f /root/payload")
    assert [each for each in found_in_pod(ground) if not each.startswith("/mnt/tmp/job-")] == []


def test_a_link_in_the_spool_leads_slurmd_nowhere(ground: Ground) -> None:
    """slurmd writes scripts as root: root of the jail cannot put a link in the way, and what it would point at stays as it was."""
    before = ground.exec("stat", "-c", "%a %U %G", "/run/slurm")
    number = ground.lab.ssh(
        "root", f"sbatch --parsable --hold --no-requeue -w {ground.node} -o /dev/null --wrap '# {PAYLOAD}'"
    ).strip()
    link = f"/var/spool/slurmd/job{int(number):05d}"
    made = said(ground, "root", f"srun -w {ground.node} ln -s /run/slurm {link}; scontrol release {number}; sleep 1")
    assert "Read-only file system" in made
    ground.lab.until("the job has ended", lambda: said(ground, "root", f"squeue -h -j {number} -t R,PD,CG") == "", 30)
    said(ground, "root", f"scancel {number}")
    assert found_in_pod(ground) == []
    assert ground.exec("stat", "-c", "%a %U %G", "/run/slurm") == before


def test_output_files_are_opened_by_the_user_in_the_jail(ground: Ground) -> None:
    """A path that leads to root's folder, by a link too, is refused; one of the pod is one of the jail."""
    lab, jobs = ground.lab, []
    lab.ssh("alice", "ln -sf /etc/of-alice link")
    for path in (
        "link",
        "/etc/of-alice",
        "/mnt/jail/root/tmp/of-alice",
        "/proc/1/root/tmp/of-alice",
        "/run/slurm/of-alice",
    ):
        jobs.append(lab.ssh("alice", f"sbatch --parsable -w {ground.node} -o {path} --wrap 'echo {PAYLOAD}'").strip())
    lab.until("all have ended", lambda: lab.ssh("alice", f"squeue -h -j {','.join(jobs)}") == "", 60)
    assert "No such file" in said(ground, "root", "ls /etc/of-alice")
    assert found_in_pod(ground) == []


@pytest.mark.parametrize("option", ["--task-prolog", "--task-epilog"])
def test_programs_around_a_task_are_as_confined_as_the_task(ground: Ground, option: str) -> None:
    """They see the jail, not the pod, with the same few capabilities."""
    path = f"/home/alice/around-{ground.node}.sh"
    script = "{ grep CapBnd /proc/self/status; ls -d /mnt/jail/root /usr/sbin/slurmd; id -un; } > $HOME/around.out 2>&1"
    ground.lab.ssh(
        "alice", f"printf '#!/bin/sh\\n%s\\n' {shlex.quote(script)} > {path}; chmod 755 {path}; rm -f around.out"
    )
    said(ground, "alice", f"srun -w {ground.node} {option}={path} true")
    ground.lab.until("it has run", lambda: "alice" in said(ground, "alice", "cat around.out"), 10)
    found = said(ground, "alice", f"cat around.out; rm -f {path}")
    assert "CapBnd:\t00000000a00405fb" in found
    assert found.count("cannot access") == 2


def test_the_environment_of_a_job_does_not_reach_slurmstepd(ground: Ground) -> None:
    """A loader's variable writes files for programs of the user alone, and an option of the plugin cannot be set by one."""
    ground.lab.ssh("alice", "rm -rf ld; mkdir ld; printf 'root\\t/\\t/\\t-\\tall\\n' > plan")
    variables = "LD_DEBUG=files LD_DEBUG_OUTPUT=$HOME/ld/of LD_PRELOAD=/home/alice/none.so"
    plugin = "_SLURM_SPANK_OPTION_jail_plan=/home/alice/plan SLURM_SPANK_jail_plan=/home/alice/plan"
    found = said(ground, "alice", f"env {variables} {plugin} srun -w {ground.node} ls -d /mnt/jail/root")
    assert "cannot access" in found
    assert set(ground.lab.ssh("alice", "stat -c %U ld/*; rm -rf ld plan").split()) == {"alice"}


@pytest.mark.parametrize("folder", ["/proc/1/root/mnt/jail", "/../../../mnt/jail", "/mnt/jail/root"])
def test_a_working_folder_outside_is_none(ground: Ground, folder: str) -> None:
    """The task begins in a folder of the jail instead."""
    found = said(ground, "alice", f"srun -w {ground.node} --chdir={folder} sh -c 'pwd; ls'").splitlines()
    assert not {"root", ".soperator", "root.partial"} & set(found)


def test_a_plugin_of_the_users_own_is_not_loaded(ground: Ground) -> None:
    """The name of an MPI plugin cannot lead to a file of the user."""
    found = said(ground, "alice", f"srun -w {ground.node} --mpi=../../../../home/alice/own hostname")
    assert ground.node not in found.splitlines()


def test_nobody_gets_into_the_job_of_another(ground: Ground) -> None:
    """A step in it, its end, its script and its steps' output are refused to others."""
    job = ground.lab.ssh("bob", f"squeue -h -u bob -w {ground.node} -o %i").split()[0]
    for command in (
        f"srun --jobid={job} --overlap hostname",
        f"scancel {job}",
        f"scontrol write batch_script {job} -",
        f"scontrol update jobid={job} timelimit=1",
        f"sattach {job}.0",
        f"sbatch -w {ground.node} --uid=bob --wrap hostname",
    ):
        found = said(ground, "alice", command)
        assert re.search(REFUSED, found, re.I), f"{command}: {found}"
    assert ground.lab.ssh("bob", f"squeue -h -j {job} -o %T").strip() == "RUNNING"


@pytest.mark.parametrize(
    "command",
    [
        "scontrol update nodename={node} state=drain reason=mine",
        "scontrol shutdown",
        "scontrol reconfigure",
        "scontrol reboot {node}",
        "scontrol token username=root",
        "scontrol create nodename=mine",
        "strigger --set --down --program=/bin/true",
    ],
)
def test_an_ordinary_user_administers_nothing(ground: Ground, command: str) -> None:
    """slurmctld refuses, and the node goes on."""
    found = said(ground, "alice", command.format(node=ground.node))
    assert re.search(REFUSED, found, re.I), found
    state = ground.lab.ssh("alice", f"sinfo -h -n {ground.node} -o %T").strip()
    assert state in ("idle", "mixed", "allocated"), state


def test_slurmctld_starts_no_program_for_anybody(ground: Ground) -> None:
    """A trigger would run as slurm beside the keys; root of the jail can become slurm, so there are none."""
    found = said(
        ground,
        "root",
        "runuser -u slurm -- strigger --set --reconfig --program=/bin/true; strigger --set --reconfig --program=/bin/true",
    )
    assert found.count("isabled") + found.count("rror") >= 2, found
    assert "RECONFIG" not in said(ground, "root", "strigger --get").upper()
