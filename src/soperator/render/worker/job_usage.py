"""The usage of a worker's jobs, if the spec enables it: slurmd's container measures it, and a second container serves it.

Only slurmd's container can inspect the processes of jobs. The second container answers Prometheus, and so any client; it has no rights, and no file
except the one with the numbers (agents/usage).
"""

from soperator.api.common import Resources
from soperator.render.parts import names, pod
from soperator.render.parts.model import (
    Cluster,
    Defaults,
    NodeSet,
    Object,
)

_FOLDER = "/run/usage"
#: Request and limit are equal, for the same reason as in the container `jail`.
_SMALL = Resources(requests={"cpu": "20m", "memory": "32Mi"}, limits={"cpu": "20m", "memory": "32Mi"})


def is_on(cluster: Cluster) -> bool:
    """Return whether workers report the usage of their jobs."""
    return cluster.spec.metrics.jobs


def containers(cluster: Cluster, nodeset: NodeSet, defaults: Defaults) -> list[Object]:
    """Return the container that serves the numbers, if the spec enables it."""
    if not is_on(cluster):
        return []
    image = nodeset.spec.image or pod.slurm_image(cluster, defaults)
    made = pod.container(cluster, "usage", image, _SMALL) | {
        "command": ["/usr/lib/soperator/usage", "serve", "--file", f"{_FOLDER}/jobs", "--port", str(names.USAGE_PORT)],
        "ports": [{"name": "usage", "containerPort": names.USAGE_PORT}],
        "securityContext": pod.unprivileged(pod.AGENT_UID),
        "volumeMounts": [pod.mount("usage", _FOLDER, readOnly=True)],
    }
    return [made]


def volumes(cluster: Cluster) -> list[Object]:
    """Return the volume with the numbers, if the spec enables it."""
    return [pod.empty("usage", medium="Memory", sizeLimit="4Mi")] if is_on(cluster) else []


def mounts(cluster: Cluster) -> list[Object]:
    """Return the mount to which slurmd's container writes the numbers."""
    return [pod.mount("usage", _FOLDER)] if is_on(cluster) else []


def environment(cluster: Cluster) -> list[Object]:
    """Return the environment that turns the measurement on: the name of the cluster."""
    return pod.env(SOPERATOR_USAGE=cluster.name) if is_on(cluster) else []
