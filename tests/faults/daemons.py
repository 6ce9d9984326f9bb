"""Slurm's own daemons are ill: slurmrestd hangs, is slow or answers 500; slurmctld is killed or hangs; its state volume is full."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local import demo
from local.paths import DEFAULT_STATE
from tests.cluster.lab import local
from tests.faults.case import Stage, Steps, kill, renew
from tests.faults.crowd import NODES
from tests.faults.judge import SAVE

STATE = "/var/spool/slurmctld"
FILLER = f"{STATE}/filler"
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
TAINT = "fault.example.com/state=moved:NoSchedule"
#: What an administrator does when slurmctld was killed: slurmds forget the numbers of jobs that are given again, nodes and jobs are let go.
MEND = """
scontrol reconfigure
sleep 5
for node in $(sinfo -h -N -n {nodes} -t drain -o %N); do scontrol update nodename=$node state=resume; done
for job in $(squeue -h -r -t PD -o '%i %r' | grep held | cut -d' ' -f1); do scontrol release $job; done
"""
SMALL = """
mkdir -p /run/small
mount -t tmpfs -o size=16m tmpfs /run/small
cp -a {path}/. /run/small
chown --reference={path} /run/small && chmod --reference={path} /run/small
mount --bind /run/small {path}
"""
BACK = """
umount {path}
find {path} -mindepth 1 -delete
cp -a /run/small/. {path}
umount /run/small
"""


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


def controller_killed(stage: Stage) -> Steps:
    """SIGKILL to slurmctld when all that it has heard is written down."""
    stage.crowd.ledger.wait([stage.array], 120)
    time.sleep(SAVE)
    kill(stage, "controller")
    yield
    yield
    renew(stage, "controller")


def controller_killed_at_work(stage: Stage) -> Steps:
    """SIGKILL to slurmctld while it starts jobs: it forgets some, starts some a second time, and gives numbers again which slurmds refuse.

    That is Slurm's own doing, and it takes an administrator to mend it (docs/reliability.md).
    """
    kill(stage, "controller")
    yield
    stage.lab.until("slurmctld answers", lambda: not stage.crowd.ledger.run("timeout 5 scontrol ping").returncode, 60)
    time.sleep(15)  # launches have been tried and refused by then
    stage.lab.ssh("root", MEND.format(nodes=stage.names()))
    yield
    renew(stage, "controller")


def controller_replaced(stage: Stage) -> Steps:
    """The pod of slurmctld is deleted, as by an eviction."""
    stage.lab.kubectl("delete", "pod", f"{stage.lab.cluster}-controller-0", "--wait=false")
    yield
    yield


def controller_hung(stage: Stage) -> Steps:
    """Slurmctld is stopped for a while: nobody gets an answer."""
    with _paused(stage, "controller", "slurmctld"):
        yield
    yield


def state_full(stage: Stage) -> Steps:
    """No byte fits on slurmctld's state volume any more; new batch jobs are refused, those that run end."""
    inside = ["exec", f"{stage.lab.cluster}-controller-0", "-c", "slurmctld", "--"]
    with _small_state(stage):
        stage.lab.tried(*inside, "sh", "-c", f"cat /dev/zero > {FILLER}")
        try:
            stage.lab.until("a new job is refused", lambda: not stage.crowd.ledger.submit("refused", "true"), 30)
            yield
            time.sleep(10)  # the state is to be saved at least once
        finally:
            stage.lab.kubectl(*inside, "rm", "-f", FILLER)
        yield
        assert stage.crowd.ledger.submit("accepted", "true", "-t 1"), "a job is refused after there was room again"


def clock_ahead(stage: Stage) -> Steps:
    """The clock of one slurmd runs 5 min ahead: it takes each message for expired, so its node goes DOWN, and is back when the clock is right.

    slurmd believes no clock but its own, and slurmctld takes what such a slurmd says: a job that runs there when its node goes DOWN is run
    again by Slurm and also ends. So none runs there then; one that waits for the node has to run when it is back.
    """
    with _faked_clock(stage) as offset:
        stage.crowd.ledger.wait([stage.crowd.ledger.submit("before", "true", "-C skewed", "-t 1")], 60)
        offset.write_text("+5m\n")
        try:
            yield
            waits = stage.crowd.ledger.submit("waits", "true", "-C skewed", "-t 1")
        finally:
            offset.write_text("+0\n")
        yield
        stage.crowd.ledger.wait([waits], 120)


@contextmanager
def _faked_clock(stage: Stage) -> Iterator[Path]:
    """A worker whose slurmd asks libfaketime for the time; what is written into the file is added to it."""
    folder = DEFAULT_STATE / "skew"
    folder.mkdir(exist_ok=True)
    shutil.copy(FAKETIME, folder)
    offset = folder / "offset"
    offset.write_text("+0\n")
    pairs = {
        "LD_PRELOAD": f"/mnt/skew/{FAKETIME.name}",
        "FAKETIME_TIMESTAMP_FILE": "/mnt/skew/offset",
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    slurmd = {"name": "slurmd", "env": [{"name": name, "value": value} for name, value in pairs.items()]}
    spec = {
        "clusterRef": {"name": stage.lab.cluster},
        "resources": {"requests": {"cpu": "50m", "memory": "1Gi"}},
        "volumes": [{"name": "skew", "hostPath": {"path": str(folder)}}],
        "volumeMounts": [{"name": "skew", "mountPath": "/mnt/skew", "readOnly": True}],
        "podTemplate": {"spec": {"containers": [slurmd]}},
    }
    done = stage.lab.apply("NodeSet", "skewed", spec)
    assert done.returncode == 0, done.stderr
    try:
        stage.lab.wait_available()
        yield offset
    finally:
        stage.lab.kubectl("delete", "nodeset", "skewed", "--timeout=90s")


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


@contextmanager
def _small_state(stage: Stage) -> Iterator[None]:
    """Slurmctld's state on a tmpfs of 16 MiB, copied there and back while slurmctld is down; it stays on its Node meanwhile."""
    pod = stage.lab.pods("controller")[f"{stage.lab.cluster}-controller-0"]
    claim = next(each for each in pod["spec"]["volumes"] if each["name"] == "state")["persistentVolumeClaim"][
        "claimName"
    ]
    path = stage.lab.look("pv", f"{stage.lab.namespace}-{claim}")["spec"]["hostPath"]["path"]
    node = pod["spec"]["nodeName"]
    nodes = [each.removeprefix("node/") for each in stage.lab.kubectl("get", "nodes", "-o", "name").split()]
    others = [each for each in nodes if each != node]
    stage.lab.kubectl("taint", "nodes", *others, TAINT, "--overwrite")
    try:
        _moved(stage, node, SMALL.format(path=path))
        try:
            yield
        finally:
            _moved(stage, node, BACK.format(path=path))
    finally:
        stage.lab.kubectl("taint", "nodes", *others, f"{TAINT}-")


def _moved(stage: Stage, node: str, script: str) -> None:
    """Change what is mounted on the Node between two lives of slurmctld."""
    local("component", "pause", "scheduler")
    try:
        stage.lab.kubectl("delete", "pod", f"{stage.lab.cluster}-controller-0", "--grace-period=20")
        local("node", "exec", node, "--", "sh", "-ec", script)
    finally:
        local("component", "resume", "scheduler")
    stage.lab.until("slurmctld is back", stage.is_back, 90)
