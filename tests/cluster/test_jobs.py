"""The main job and the classic example, as a user runs them.

Slurm keeps dynamic nodes in the order in which they registered, so which of them gets the first rank is nobody's to say.
"""

import subprocess

import pytest

from local import demo
from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster


def test_the_training_runs_on_two_nodes_and_leaves_its_results_in_the_shared_root(lab: Lab, alice: str) -> None:
    """The digits are learnt by two ranks on two Kubernetes Nodes, and checkpoint and log are seen from login and both workers."""
    lab.ssh(alice, "rm -rf digits")
    demo.train(lab.address, demo.Clock())
    output = lab.ssh(alice, "cat digits/digits-*.out")
    ranks = dict(
        line.split(" (")[0].removeprefix("rank ").split(" on ")
        for line in output.splitlines()
        if line.startswith("rank ")
    )
    assert (sorted(ranks), sorted(ranks.values())) == (["0", "1"], ["worker-0", "worker-1"])
    assert "\nranks 2\nnodes 2\n" in output
    assert float(output.split("accuracy ")[-1]) >= 0.95
    machines = {pod["spec"]["nodeName"] for pod in lab.pods("worker").values()}
    assert len(machines) == 2, machines
    sizes = lab.ssh(alice, "cd digits; stat -c %s checkpoint.npz; srun -N2 stat -c %s checkpoint.npz").split()
    assert len(set(sizes)) == 1
    assert len(sizes) == 3
    assert len(lab.ssh(alice, "cat digits/train.log").splitlines()) == 8


def test_parallel_steps_overlap(lab: Lab, alice: str) -> None:
    """Of two steps that a job starts beside each other, both begin before either ends, and the job waits for them."""
    copy = subprocess.run(["tar", "-C", str(demo.ROOT / "examples"), "-c", "steps"], capture_output=True, check=True)
    lab.ssh(alice, "rm -rf steps; tar -x", stdin=copy.stdout)
    lab.ssh(alice, "cd steps && sbatch --wait steps.sbatch")
    lines = lab.ssh(alice, "cat steps/steps-*.out").splitlines()
    assert lines[0] == "step one on one node"
    assert set(lines[1:3]) == {"left begins", "right begins"}, lines
    assert set(lines[3:5]) == {"left ends", "right ends"}, lines
    tasks = dict(line.split(": ") for line in lines[5:7])
    assert (sorted(tasks), sorted(tasks.values())) == (["0", "1"], ["worker-0", "worker-1"]), lines
    assert lines[7] == "all steps done"


def test_the_parts_of_a_heterogeneous_job_are_each_in_a_jail(lab: Lab, alice: str) -> None:
    """`srun A : B` runs both parts, each on a node of its own, in namespaces of its own, in the one shared root."""
    part = "sh -c 'echo $(hostname) $(cat /proc/1/comm) $SLURM_HET_SIZE; touch of-part-$(hostname)'"
    output = lab.ssh(alice, f"rm -f of-part-*; srun -Q -n1 {part} : -n1 {part}; ls of-part-*; rm of-part-*")
    assert sorted(output.splitlines()) == [
        "of-part-worker-0",
        "of-part-worker-1",
        "worker-0 jail-holder 2",
        "worker-1 jail-holder 2",
    ]


def test_output_lands_where_the_job_was_submitted(lab: Lab, alice: str) -> None:
    """A job's output file is in the folder of the jail from which it was submitted, and belongs to its user."""
    lab.ssh(alice, "rm -rf out && mkdir out && cd out && sbatch --quiet --wait --wrap 'echo here; echo there >&2; pwd'")
    output = lab.ssh(alice, "cat out/slurm-*.out; stat -c %U out/slurm-*.out")
    assert output.splitlines() == ["here", "there", "/home/alice/out", "alice"]


def test_a_job_without_the_submitted_environment_has_that_of_a_login(lab: Lab, alice: str) -> None:
    """With --export=NONE slurmd runs su, which is the jail's in the jail: HOME, USER and what the user's profile sets."""
    profile = "cp .profile .profile.kept; echo 'export OF_PROFILE=$(id -un)' >>.profile"
    try:
        lab.ssh(
            alice, f"rm -f env.out; {profile}; sbatch --quiet --wait --export=NONE -w worker-1 -o env.out --wrap env"
        )
        found = lab.ssh(alice, "cat env.out").splitlines()
    finally:
        lab.ssh(alice, "mv .profile.kept .profile; rm -f env.out")
    assert {"HOME=/home/alice", "USER=alice", "OF_PROFILE=alice"} <= set(found)
