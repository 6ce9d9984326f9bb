"""Kubernetes itself is ill: its API server, its store, a kubelet, a Node's network, a Node; an image; a second operator."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from local import demo, images
from tests.cluster.lab import OPERATOR, is_ready, local
from tests.faults.case import Stage, Steps, renew
from tests.faults.crowd import NODES

SECOND = "soperator-second"


def api_restarted(stage: Stage) -> Steps:
    """The API server is killed and started again."""
    local("component", "restart", "apiserver")
    yield
    yield


def api_away(stage: Stage) -> Steps:
    """There is no API server for 20 s: the operator gives its Lease up, and starts anew until it is answered."""
    local("component", "stop", "apiserver")
    try:
        time.sleep(20)
    finally:
        local("component", "start", "apiserver")
    yield
    yield
    renew(stage, "operator")


def etcd_restarted(stage: Stage) -> Steps:
    """The store of the API server is killed and started again."""
    local("component", "restart", "etcd")
    yield
    yield


def kubelet_stopped(stage: Stage) -> Steps:
    """A Node's kubelet ends: Kubernetes hears nothing of the Node, and its pods go on."""
    kubelet = f"{victim(stage)}/kubelet"
    local("component", "stop", kubelet)
    try:
        yield
    finally:
        local("component", "start", kubelet)
    yield


def network_cut(stage: Stage) -> Steps:
    """A Node's network cable is pulled until Kubernetes calls it NotReady, and put in again before Slurm gives its node up."""
    node = victim(stage)
    local("node", "cut", node)
    try:
        yield
    finally:
        local("node", "mend", node)
    yield


def node_off(stage: Stage) -> Steps:
    """All processes of a Node are killed, and the Node is switched on again: its jobs run again."""
    node = switched_off(stage)
    try:
        yield
    finally:
        local("node", "start", node)
    yield


def node_lost(stage: Stage) -> Steps:
    """A Node stays away: one worker of it gets a successor of another name, no more than the budget allows; when it is back one is too many."""
    stage.nodeset(nodeFailure={"replaceAfter": "15s", "maxReplaced": "1"})
    stage.lab.patch("slurmcluster", stage.lab.cluster, {"config": {"extraLines": {"slurm": "SlurmdTimeout=15\n"}}})
    stage.lab.until("slurmctld waits for 15 s only", lambda: _timeout(stage) == "15" and stage.is_back(), 90)
    _without_slurmctld(stage, victim(stage))
    before = set(stage.pods())
    node = switched_off(stage)
    try:
        yield
        stage.lab.until("the successor is ready", lambda: any(map(is_ready, _others(stage, before))), 60)
        time.sleep(10)
        assert len(_others(stage, before)) == 1, "more were replaced than maxReplaced allows"
        assert before <= set(stage.pods()), "a pod on a silent Node went"
    finally:
        local("node", "start", node)
    yield
    stage.lab.patch("slurmcluster", stage.lab.cluster, {"config": None})
    stage.nodeset(nodeFailure=None, replicas=NODES - 1)
    stage.lab.until("the names are as before", lambda: set(stage.pods()) <= before and stage.is_back(), 120)
    stage.nodeset(replicas=NODES)
    stage.lab.until("as many as before", stage.is_back, 90)


def unpullable(stage: Stage) -> Steps:
    """A rollout to an image that does not exist stops at its first node; the others go on as they were."""
    stage.nodeset(image="localhost/nothing:1")
    try:
        yield
        new = [number for number, pod in stage.pods().items() if not is_ready(pod)]
        assert len(new) == 1, new
    finally:
        stage.nodeset(image=None)
    yield


def two_operators(stage: Stage) -> Steps:
    """Helm refuses a second operator of another version; one that is applied past helm replaces nothing that runs."""
    with _second_image(stage) as other:
        settings = [*demo.image_settings(stage.lab.target), f"images.slurm={other}"]
        with pytest.raises(demo.DemoError, match="soperator-is-here"):
            demo.helm(stage.lab.target, "soperator", SECOND, *settings, name="soperator")
        with _applied(stage, settings):
            before = _uids(stage)
            yield
            time.sleep(20)
            assert _uids(stage) == before
    yield


@contextmanager
def _applied(stage: Stage, settings: Sequence[str]) -> Iterator[None]:
    """The chart's objects without helm's care, as by `kubectl apply` of a rendered chart; the mark of the first release stays helm's."""
    words = [word for setting in settings for word in ("--set", setting)]
    chart = str(demo.ROOT / "charts" / "soperator")
    rendered = stage.lab.target.run("helm", "template", "second", chart, "-n", SECOND, *words)
    others = "\n---".join(each for each in rendered.split("\n---") if "soperator-is-here" not in each)
    stage.lab.kubectl("create", "namespace", SECOND)
    try:
        stage.lab.target.run("kubectl", "apply", "-f", "-", stdin=others)
        stage.lab.target.run("kubectl", "rollout", "status", "deployment/second", "-n", SECOND, "--timeout=60s")
        yield
    finally:
        stage.lab.target.run("kubectl", "delete", "--ignore-not-found", "-f", "-", stdin=others)
        stage.lab.kubectl("delete", "namespace", SECOND, "--ignore-not-found", "--timeout=60s")


def _uids(stage: Stage) -> dict[str, str]:
    return {number: pod["metadata"]["uid"] for number, pod in stage.pods().items()}


def _others(stage: Stage, before: set[str]) -> list[dict[str, Any]]:
    return [pod for number, pod in stage.pods().items() if number not in before]


def _timeout(stage: Stage) -> str:
    """How long slurmctld waits for a silent slurmd."""
    shown = stage.crowd.ledger.run("scontrol show config | sed -n 's/^SlurmdTimeout *= *\\([0-9]*\\).*/\\1/p'")
    return shown.stdout.strip()


@contextmanager
def _second_image(stage: Stage) -> Iterator[str]:
    """The image of slurmd under another name on every Node."""
    mine = next(tag for image in images.built() for name, tag in image.references().items() if name == "slurm")
    other = f"{mine}-second"
    nodes = [each.removeprefix("node/") for each in stage.lab.kubectl("get", "nodes", "-o", "name").split()]
    ctr = f"{stage.lab.target.path.split(':')[0]}/ctr"
    for node in nodes:
        local("node", "exec", node, "--", ctr, "-n", "k8s.io", "images", "tag", "--force", mine, other)
    try:
        yield other
    finally:
        for node in nodes:
            local("node", "exec", node, "--", ctr, "-n", "k8s.io", "images", "rm", other)


def switched_off(stage: Stage) -> str:
    """Pull the power of a Node; where slurmctld ran there, that is a SIGKILL to it too."""
    node = victim(stage)
    local("node", "stop", node)
    if any(pod["spec"]["nodeName"] == node for pod in stage.lab.pods("controller").values()):
        stage.crowd.ledger.crashed()
    return node


def _without_slurmctld(stage: Stage, node: str) -> None:
    """Move slurmctld to another Node: a worker is replaced only where Slurm says that its node is DOWN."""
    if not any(pod["spec"]["nodeName"] == node for pod in stage.lab.pods("controller").values()):
        return
    stage.lab.kubectl("cordon", node)
    try:
        stage.lab.kubectl("delete", "pod", *stage.lab.pods("controller"), "--timeout=60s")
        stage.lab.until("slurmctld is elsewhere", lambda: all(map(is_ready, stage.lab.pods("controller").values())), 60)
    finally:
        stage.lab.kubectl("uncordon", node)
    stage.lab.until("all is well again", stage.is_back, 60)


def victim(stage: Stage) -> str:
    """A Node with workers of the crowd, without the operator: on such a one nobody would be there to tell."""
    pods = stage.lab.pods(namespace=OPERATOR).values()
    operators = {pod["spec"]["nodeName"] for pod in pods}
    nodes = {pod["spec"]["nodeName"] for pod in stage.pods().values()}
    assert len(stage.pods()) >= NODES
    return min(nodes - operators)
