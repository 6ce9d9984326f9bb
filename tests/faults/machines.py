"""Kubernetes itself is ill: its API server, its store, a kubelet, a Node's network, a Node; an image; a second operator."""

from tests.cluster.lab import OPERATOR, is_ready, local
from tests.faults.case import Stage, Steps
from tests.faults.crowd import NODES


def api_restarted(stage: Stage) -> Steps:
    """The API server is killed and started again."""
    local("component", "restart", "apiserver")
    yield
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


def victim(stage: Stage) -> str:
    """A Node with workers of the crowd, without the operator: on such a one nobody would be there to tell."""
    pods = stage.lab.pods(namespace=OPERATOR).values()
    operators = {pod["spec"]["nodeName"] for pod in pods}
    nodes = {pod["spec"]["nodeName"] for pod in stage.pods().values()}
    assert len(stage.pods()) >= NODES
    return min(nodes - operators)
