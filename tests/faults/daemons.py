"""Slurm's own daemons are ill: slurmrestd hangs, is slow or answers 500; slurmctld is killed or hangs; its state volume is full."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local import demo
from tests.cluster.lab import local
from tests.faults.case import Stage, Steps
from tests.faults.crowd import NODES


def rest_hung(stage: Stage) -> Steps:
    """Slurmrestd takes connections and answers nothing."""
    with _paused(stage, "rest", "slurmrestd"):
        yield
    yield


def rest_slow(stage: Stage) -> Steps:
    """Slurmrestd needs four seconds for each answer: all goes on, slower; a worker is added meanwhile."""
    with _spoiled(stage, "--delay", "4"):
        stage.nodeset(replicas=NODES + 1)
        yield
        stage.lab.until("the further node takes jobs", stage.is_back, 120)
    yield
    stage.nodeset(replicas=NODES)
    stage.lab.until("as many nodes as before", stage.is_back, 90)


def rest_broken(stage: Stage) -> Steps:
    """Slurmrestd answers every request with 500."""
    with _spoiled(stage, "--status", "500"):
        yield
    yield


def controller_replaced(stage: Stage) -> Steps:
    """The pod of slurmctld is deleted, as by an eviction."""
    stage.lab.kubectl("delete", "pod", f"{stage.lab.cluster}-controller-0", "--wait=false")
    yield
    yield


@contextmanager
def _paused(stage: Stage, role: str, container: str) -> Iterator[None]:
    pods = [f"{stage.lab.namespace}/{name}" for name in stage.lab.pods(role)]
    for pod in pods:
        local("pod", "pause", pod, container)
    try:
        yield
    finally:
        for pod in pods:
            local("pod", "resume", pod, container)


@contextmanager
def _spoiled(stage: Stage, *how: str) -> Iterator[None]:
    """`python3 -m local pod spoil` for as long."""
    pod = next(iter(stage.lab.pods("rest")))
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    argv = [python, "-m", "local", "pod", "spoil", f"{stage.lab.namespace}/{pod}", "slurmrestd", *how]
    spoiler = subprocess.Popen(argv, cwd=demo.ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert spoiler.stdout is not None
        assert "answers" in spoiler.stdout.readline()
        yield
    finally:
        spoiler.terminate()
        spoiler.wait(20)
