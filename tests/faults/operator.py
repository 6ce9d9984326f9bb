"""The operator is killed just when the effect of an action shows, one case for each kind of action; the next one goes on from there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from tests.faults.case import Stage, Steps, kill, renew
from tests.faults.crowd import NODES

DRAIN = "slurm.soperator.io/drain"


def created(stage: Stage) -> Steps:
    """A pod was created."""
    stage.nodeset(replicas=NODES + 1)
    stage.at_once("the pod is made", lambda: len(stage.pods()) > NODES)
    kill(stage, "operator")
    yield
    yield
    stage.nodeset(replicas=NODES)
    renew(stage, "operator")


def drained(stage: Stage) -> Steps:
    """A Slurm node was drained; the next operator resumes it."""
    sign = partial(_says, stage, "has the annotation")
    with _annotated(stage, _last(stage)):
        stage.at_once("the node drains", sign)
        kill(stage, "operator")
        yield
    yield
    renew(stage, "operator")


def marked(stage: Stage) -> Steps:
    """A pod lost its protection, for nothing runs on it."""
    last = _last(stage)
    with _annotated(stage, last):
        stage.at_once("the pod may be evicted", lambda: _label(stage, last) == "false")
        kill(stage, "operator")
        yield
    yield
    stage.lab.until("the pod is protected again", lambda: _label(stage, last) == "true", 30)
    renew(stage, "operator")


def deleted(stage: Stage) -> Steps:
    """A pod was deleted and is on its way out."""
    yield from _scaled_in(stage, partial(_is_leaving, stage))


def forgotten(stage: Stage) -> Steps:
    """A pod is gone, and Slurm's record of it is just being removed."""
    yield from _scaled_in(stage, lambda: len(stage.pods()) < NODES)


def rolled(stage: Stage) -> Steps:
    """A rollout has deleted its first pod; then the change is taken back."""
    stage.nodeset(podTemplate={"metadata": {"annotations": {"rolled": "yes"}}})
    try:
        stage.at_once("the first pod goes", partial(_is_leaving, stage))
        kill(stage, "operator")
        yield
    finally:
        stage.nodeset(podTemplate=None)
    yield
    renew(stage, "operator")


def warned(stage: Stage) -> Steps:
    """Jobs were warned that a bounded drain ends them; the next operator keeps to the time that they were told, and requeues them."""
    stage.nodeset(drain={"timeout": "1s", "onTimeout": "Requeue", "warningSignal": "CONT", "warningPeriod": "4s"})
    try:
        with _annotated(stage, "0"):
            stage.at_once("the jobs are warned", partial(_says, stage, "its jobs end at"))
            kill(stage, "operator")
            yield
            stage.lab.until("the MPI job waits again", lambda: _waits(stage), 60)
    finally:
        stage.nodeset(drain=None)
    yield
    renew(stage, "operator")


def configured(stage: Stage) -> Steps:
    """A new slurm.conf was written."""
    before = _config(stage)
    stage.lab.patch("slurmcluster", stage.lab.cluster, {"config": {"extraLines": {"slurm": "SlurmdDebug=verbose\n"}}})
    try:
        stage.at_once("the ConfigMap is new", lambda: _config(stage) != before)
        kill(stage, "operator")
        yield
        yield
        stage.lab.until("the new setting is in force", lambda: "verbose" in _debug(stage), 60)
    finally:
        stage.lab.patch("slurmcluster", stage.lab.cluster, {"config": None})
    stage.lab.until("the former setting is in force", lambda: "verbose" not in _debug(stage), 90)
    renew(stage, "operator")


def _scaled_in(stage: Stage, sign: Callable[[], bool]) -> Steps:
    stage.nodeset(replicas=NODES - 1)
    try:
        stage.at_once("the last worker goes", sign)
        kill(stage, "operator")
        yield
        yield
    finally:
        stage.nodeset(replicas=NODES)
    renew(stage, "operator")


def _last(stage: Stage) -> str:
    """The highest number; a scale-in takes an idle worker and not always the last, so the numbers may have gaps."""
    return max(stage.pods(), key=int)


@contextmanager
def _annotated(stage: Stage, number: str) -> Iterator[None]:
    """A Node whose workers are to be drained."""
    node = stage.pods()[number]["spec"]["nodeName"]
    stage.lab.kubectl("annotate", "node", node, f"{DRAIN}=true", "--overwrite")
    try:
        yield
    finally:
        stage.lab.kubectl("annotate", "node", node, f"{DRAIN}-")


def _is_leaving(stage: Stage) -> bool:
    return any("deletionTimestamp" in pod["metadata"] for pod in stage.pods().values())


def _says(stage: Stage, words: str) -> bool:
    return words in stage.reasons()


def _label(stage: Stage, number: str) -> str:
    return str(stage.pods()[number]["metadata"]["labels"]["slurm.soperator.io/protected"])


def _waits(stage: Stage) -> bool:
    return stage.crowd.ring in stage.crowd.ledger.run("squeue -h --me -t PD -o %j").stdout.split()


def _config(stage: Stage) -> str:
    found = stage.api.get(f"/api/v1/namespaces/{stage.lab.namespace}/configmaps/{stage.lab.cluster}-config") or {}
    return str(found.get("data", {}).get("slurm.conf"))


def _debug(stage: Stage) -> str:
    return stage.crowd.ledger.run("scontrol show config | grep -w SlurmdDebug").stdout
