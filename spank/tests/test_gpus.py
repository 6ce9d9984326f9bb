"""GPUs: a job's /dev has the devices that Slurm allocated to the job, and no others. The devices are fake: /dev/null under other numbers."""

import subprocess
from pathlib import Path

import pytest
from conftest import PODS, Jail, Pod
from test_jobs import shell
from trixie import NEEDS, Slurm, wait_idle

PATTERNS = [("gpus", "/dev/fakegpu[0-9]*", "/dev", "-", "-"), ("gpus", "/dev/fakedri/renderD[0-9]*", "/dev", "-", "-")]
NAMES = [
    "fakegpu0",
    "fakegpu1",
    "fakegpu2",
    "fakegpu11",
    "fakegpuctl",
    "fakedri/renderD0",
    "fakedri/renderD1",
    "fakedri/other",
]
MAKE = "".join(f"mkdir -p $(dirname {{dev}}/{name}); mknod -m 666 {{dev}}/{name} c 1 3; " for name in NAMES)
# The pod's /dev with the devices in it: a user namespace may bind device nodes, not make them.
HERE = (
    "mkdir /run/dev; mount -t tmpfs x /run/dev; for d in null zero full random urandom tty; do touch /run/dev/$d; "
    "mount --bind /dev/$d /run/dev/$d; done; "
    + "".join(
        f"mkdir -p $(dirname /run/dev/{name}); touch /run/dev/{name}; mount --bind {{nodes}}/{name} /run/dev/{name}; "
        for name in NAMES
    )
    + "mount --move /run/dev /dev; "
)
SEEN = "cd /dev; ls -d fake* fakedri/*; for d in fakegpu* fakedri/*; do echo x >$d || echo dead $d; done"


@pytest.fixture
def nodes(jail: Jail, tmp_path: Path) -> str:
    """Create device nodes on the machine; the plan lists them, and no longer has `minimal`."""
    made = tmp_path / "nodes"
    subprocess.run(["sh", "-c", MAKE.format(dev=made)], check=True)
    jail.lines[4] = ("dev", "-", "/dev", "-", "devices")
    jail.write_plan(*PATTERNS)
    return HERE.format(nodes=made)


def of_job(output: str) -> list[str]:
    return sorted(line for line in output.splitlines() if line.startswith("fake"))


COMMON = ["fakedri", "fakedri/other", "fakegpuctl"]


def test_a_step_has_its_gpus(jail: Jail, pod: Pod, nodes: str) -> None:
    """A step sees its devices, which work, and none of the others: Slurm counts them in the order of their names."""
    done = shell(jail, pod, nodes + f"step 7 0 1000 '{SEEN}'", SLURM_STEP_GPUS="1,3")
    assert of_job(done.stdout) == sorted([*COMMON, "fakegpu1", "fakegpu11", "fakedri/renderD1"]), (
        done.stdout + done.stderr
    )
    assert "dead" not in done.stdout


def test_a_step_without_gpus_has_none(jail: Jail, pod: Pod, nodes: str) -> None:
    """A job without GPUs has none, even if it sets the variable of the other kind of step."""
    done = shell(jail, pod, nodes + f"step 7 0 1000 '{SEEN}'", SLURM_JOB_GPUS="0-11")
    assert of_job(done.stdout) == COMMON, done.stdout + done.stderr
    done = shell(jail, pod, nodes + f"step 7 0xfffffffb 1000 '{SEEN}'", SLURM_STEP_GPUS="0-11")
    assert of_job(done.stdout) == COMMON


def test_a_later_step_brings_more(jail: Jail, pod: Pod, nodes: str) -> None:
    """The devices of a later step are added to those of the job, in its own /dev and not in another job's."""
    script = f"""
SLURM_STEP_GPUS=0 step 7 0 1000 true; step 8 0 1000 true; SLURM_STEP_GPUS=0,2 step 7 1 1000 true
step 7 2 1000 '{SEEN}; echo --'; step 8 1 1000 '{SEEN}'; names jail-holder"""
    first, second = shell(jail, pod, nodes + script).stdout.split("--\n")
    assert of_job(first) == sorted([*COMMON, "fakegpu0", "fakegpu2", "fakedri/renderD0"])
    assert of_job(second) == COMMON


def test_a_login_session_has_none(jail: Jail, nodes: str) -> None:
    """`jail run` shows no device that belongs to jobs."""
    done = shell(jail, PODS["userns-move"], nodes + f"$jail run --plan {jail.plan} -- sh -c '{SEEN}'")
    assert of_job(done.stdout) == COMMON, done.stderr


def test_a_user_cannot_lead_a_device_astray(jail: Jail, pod: Pod, nodes: str) -> None:
    """Root of the job puts a link at the path of a device: the later step fails with a message and mounts nothing elsewhere."""
    script = (
        "step 7 0 0 'ln -s /tmp/elsewhere /dev/fakegpu0; touch /tmp/elsewhere'; SLURM_STEP_GPUS=0 step 7 1 0 'echo ran'"
    )
    done = shell(jail, pod, nodes + script)
    assert "jail: cannot create a mount point for the device fakegpu0: " in done.stderr
    assert "ran" not in done.stdout.split()


@pytest.mark.skipif(NEEDS[1].args[0], reason="no Slurm in SPANK_TRIXIE")
def test_slurm_gives_each_job_its_own(slurm: Slurm) -> None:
    """Two jobs at the same time see the two GPUs that Slurm allocated to each; a job without GPUs sees none, even if it sets the variable."""
    script = (
        "echo $SLURM_JOB_GPUS; ls /dev | grep fakegpu; srun -Q --gres=gpu:1 sh -c 'ls /dev | grep -c fakegpu'\n"
        "touch met.$SLURM_JOB_ID; n=0; until [ $(ls met.* | wc -l) = 2 ]; do n=$((n+1)); [ $n -lt 200 ] || exit 1; sleep 0.1; done"
    )
    file = "/mnt/jail/root/home/alice/gpus"
    (Path(f"/proc/{slurm.pid}/root") / file[1:]).write_text(f"#!/bin/sh\n{script}\n")
    batch = "sbatch -W --gres=gpu:2 --output=gpus.out.{} " + file
    done = slurm.sh(
        f"{batch.format(1)} & {batch.format(2)}; wait; SLURM_JOB_GPUS=0,1 SLURM_STEP_GPUS=0,1 srun -Q ls /dev",
        user="alice",
    )
    assert "fakegpu" not in done.stdout
    first, second = (slurm.read(f"/home/alice/gpus.out.{n}").split() for n in (1, 2))
    for numbers, *seen in (first, second):
        assert seen == [*(f"fakegpu{n}" for n in numbers.split(",")), "2"]
    assert not set(first[0].split(",")) & set(second[0].split(","))
    assert wait_idle(slurm) == "idle none"


SAY = """#!/bin/sh
echo $SLURM_STEP_GPUS $CUDA_VISIBLE_DEVICES $(ls /dev | grep -o 'fakegpu[0-9]' | tr -d a-z | xargs | tr ' ' ,)
"""
STEPS = """#!/bin/sh
echo $CUDA_VISIBLE_DEVICES
srun -Q -n1 --exact --gres=gpu:1 sh -c 'touch /tmp/on; until [ -e /tmp/off ]; do sleep 0.1; done' &
until [ -e /tmp/on ]; do sleep 0.1; done
srun -Q -n1 --exact --gres=gpu:1 ./say
touch /tmp/off
wait
srun -Q -n2 --gres=gpu:2 --gpu-bind=single:1 ./say
"""


@pytest.mark.skipif(NEEDS[1].args[0], reason="no Slurm in SPANK_TRIXIE")
def test_libraries_are_told_the_gpus_by_their_places_in_dev(slurm: Slurm) -> None:
    """The job with the third GPU of the node has one device, CUDA's 0; a step and a task with a part of its job's GPUs count within the job's."""
    home = Path(f"/proc/{slurm.pid}/root/mnt/jail/root/home/alice")
    for name, text in (("say", SAY), ("steps", STEPS)):
        (home / name).write_text(text)
        (home / name).chmod(0o755)
    other = "sbatch --gres=gpu:2 -o /dev/null --wrap 'sleep 60'; until squeue -h -o %T | grep -q RUNNING; do sleep 0.1; done"
    done = slurm.sh(f"{other}; srun -Q --gres=gpu:1 ./say; scancel --me", user="alice")
    assert done.stdout.splitlines()[-1] == "2 0 2", done.stdout + done.stderr
    assert wait_idle(slurm) == "idle none"
    slurm.sh("sbatch -W -n2 --gres=gpu:2 --output=places /mnt/jail/root/home/alice/steps", user="alice")
    whole, second, *tasks = slurm.read("/home/alice/places").splitlines()
    assert (whole, second, sorted(tasks)) == ("0,1", "1 1 0,1", ["0 0 0,1", "1 1 0,1"])
    assert wait_idle(slurm) == "idle none"


@pytest.mark.skipif(NEEDS[1].args[0], reason="no Slurm in SPANK_TRIXIE")
def test_no_kind_of_step_gets_what_the_environment_claims(slurm: Slurm) -> None:
    """A job with one GPU that lists all four in its environment sees one: in a step, with an external launcher, and in a script."""
    claim = "SLURM_JOB_GPUS=0,1,2,3 SLURM_STEP_GPUS=0,1,2,3"
    for step in ("srun -Q --gres=gpu:1", "srun -Q --gres=gpu:1 --external-launcher"):
        done = slurm.sh(f"{claim} {step} sh -c 'ls /dev | grep -c fakegpu'", user="alice")
        assert done.stdout == "1\n", done.stderr
    slurm.sh(f"{claim} sbatch -W --gres=gpu:1 --output=claim --wrap 'ls /dev | grep -c fakegpu'", user="alice")
    assert slurm.read("/home/alice/claim") == "1\n"
    assert wait_idle(slurm) == "idle none"
