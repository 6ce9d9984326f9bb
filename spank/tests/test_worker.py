"""The programs beside slurmd in a worker's container, with a real slurmd and the jail: the log of steps (images/slurm/logs), usage of jobs."""

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from trixie import JAIL, NEEDS, Slurm, wait_idle

pytestmark = NEEDS
ROOT = Path(__file__).parents[2]
#: Where slurmd's and the relay's output goes, which in a pod is the container's.
LOG = "/run/worker.log"
START = f"setsid bash -euc '. /run/worker/logs; relay_logs /run/log/slurm; slurmd -D -L /run/log/slurm' >{LOG} 2>&1 </dev/null &"
STOP = "pkill -x slurmd; until_true '! pgrep -x slurmd >/dev/null'"
PROLOG = '#!/bin/sh\necho printed\necho "prolog: [$SLURM_JOB_ID] looked around" >/run/log/slurm\n'
BURN = "kept = bytearray(b'x' * (200 << 20))\nwhile True: pass\n"
SERIES = re.compile(r'(slurm_job_\w+)\{.*job_id="(\d+)".*\} (\S+)')


def put(slurm: Slurm) -> None:
    """Copy the image's files into the root."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(ROOT / "images/slurm/logs", "worker/logs")
        for name in ("__init__.py", "agents", "observe"):
            tar.add(ROOT / "src/soperator" / name, f"worker/soperator/{name}")
    user = ["-U", "--preserve-credentials"] if slurm.userns else []
    enter = ["nsenter", "-t", str(slurm.pid), "-m", "-u", "-i", "-n", "-p", *user]
    subprocess.run([*enter, "tar", "--no-same-owner", "-xf", "-", "-C", "/run"], input=packed.getvalue(), check=True)


@pytest.fixture(scope="module")
def worker(slurm: Slurm) -> Iterator[Slurm]:
    """Start the pod with a slurmd as in a worker, and a prolog."""
    put(slurm)
    slurm.sh(f"cat >/etc/slurm/prolog.sh <<'END'\n{PROLOG}END\nchmod +x /etc/slurm/prolog.sh")
    slurm.sh(f"echo Prolog=/etc/slurm/prolog.sh >>/etc/slurm/slurm.conf; {STOP}; {START}")
    try:
        slurm.until(f"grep -q 'slurmd started' {LOG}")
        slurm.sh("scontrol reconfigure")
        slurm.until("sinfo -h -o %T | grep -q idle")
        yield slurm
    finally:
        slurm.sh(f"sed -i /^Prolog=/d /etc/slurm/slurm.conf; {STOP}; pkill -f relay_logs; pkill -x mawk")
        slurm.sh("setsid slurmd -D >>/var/log/slurm/d.out 2>&1 </dev/null &")
        slurm.sh("scontrol reconfigure; until_true 'sinfo -h -o %T | grep -q idle'")


def test_what_slurmstepd_and_a_prolog_say_is_on_slurmds_output_once(worker: Slurm) -> None:
    """The log of a step has the numbers of the job and the step; slurmd's own lines appear once."""
    done = worker.sh("srun -t 1 /nothing-is-here; squeue -h", "alice")
    assert "execve(): /nothing-is-here" in done.stderr
    worker.until(f"grep -q 'slurmstepd: .*done with step' {LOG}")
    lines = worker.sh(f"cat {LOG}").stdout.splitlines()
    (launched,) = [line for line in lines if "launch task StepId=" in line]
    job = re.search(r"StepId=(\d+)\.0 ", launched)
    assert job
    assert launched.startswith("slurmd: ")
    failed = f"slurmstepd: [{job[1]}.0] error: execve(): /nothing-is-here: No such file or directory"
    assert [line for line in lines if "execve" in line] == [failed], lines
    assert lines.count(f"prolog: [{job[1]}] looked around") == 1
    assert all(re.match(r"(slurmd|slurmstepd|prolog): ", line) for line in lines), lines


def used(slurm: Slurm) -> dict[tuple[str, str], float]:
    """Return the present values, by metric and job."""
    said = slurm.sh("cat /run/usage").stdout
    return {(match[1], match[2]): float(match[3]) for line in said.splitlines() if (match := SERIES.match(line))}


def wait_until(slurm: Slurm, metric: str, job: str, least: float) -> float:
    """Wait until a job's value is at least the given one."""
    pattern = f'^{metric}{{.*job_id="{job}".*}}'
    slurm.until(
        f"awk -v least={least:.0f} '/{pattern}/ && $NF >= least {{ found = 1 }} END {{ exit !found }}' /run/usage"
    )
    return used(slurm)[metric, job]


def test_what_a_job_uses_is_measured_under_its_number_and_gone_with_it(worker: Slurm) -> None:
    """The values are CPU and memory of the job's steps, including ended ones, and exclude slurmstepd."""
    measure = "python3 -S -B -m soperator.agents.usage measure --to /run/usage --cluster demo --node one"
    worker.sh(f"PYTHONPATH=/run/worker setsid {measure} >/run/usage.log 2>&1 </dev/null &")
    try:
        worker.sh(f'cat >{JAIL}/home/alice/burn.py <<"END"\n{BURN}END')
        script = "srun timeout 2 python3 burn.py; srun python3 burn.py"
        job = worker.sh(f"sbatch --parsable -t 2 -o /dev/null --wrap '{script}'", "alice").stdout.strip()
        assert wait_until(worker, "slurm_job_memory_bytes", job, 200 << 20) < 600 << 20
        first = wait_until(worker, "slurm_job_cpu_seconds_total", job, 1)
        assert wait_until(worker, "slurm_job_cpu_seconds_total", job, first + 1) > first
        worker.sh(f"scancel {job}")
        assert wait_idle(worker) == "idle none"
        worker.until(f"! grep -q 'job_id=\"{job}\"' /run/usage")
        assert used(worker) == {}
    finally:
        worker.sh("pkill -f agents.usage")
    assert worker.sh("cat /run/usage.log").stdout == ""
