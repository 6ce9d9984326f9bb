"""The operator is killed just when the effect of an action shows, one case for each kind of action; the next one goes on from there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from tests.faults.case import Stage, Steps, kill, renew
from tests.faults.crowd import NODES

DRAIN = "slurm.soperator.io/drain"
LAST = str(NODES - 1)


def created(stage: Stage) -> Steps:
    """A pod was created."""
    stage.nodeset(replicas=NODES + 1)
    stage.at_once("the pod is made", lambda: str(NODES) in stage.pods())
    kill(stage, "operator")
    yield
    yield
    stage.nodeset(replicas=NODES)
    renew(stage, "operator")


def drained(stage: Stage) -> Steps:
    """A Slurm node was drained; the next operator resumes it."""
    sign = partial(_says, stage, "has the annotation")
    with _annotated(stage, LAST):
        stage.at_once("the node drains", sign)
        kill(stage, "operator")
        yield
    yield
    renew(stage, "operator")


def deleted(stage: Stage) -> Steps:
    """A pod was deleted and is on its way out."""
    yield from _scaled_in(stage, lambda: "deletionTimestamp" in stage.pods().get(LAST, {"metadata": {}})["metadata"])


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


@contextmanager
def _annotated(stage: Stage, number: str) -> Iterator[None]:
    """A Node whose workers are to be drained."""
    node = stage.pods()[number]["spec"]["nodeName"]
    stage.lab.kubectl("annotate", "node", node, f"{DRAIN}=true", "--overwrite")
    try:
        yield
    finally:
        stage.lab.kubectl("annotate", "node", node, f"{DRAIN}-")


def _says(stage: Stage, words: str) -> bool:
    return words in stage.reasons()
