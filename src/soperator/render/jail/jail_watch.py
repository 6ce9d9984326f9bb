"""The container beside slurmd that checks whether a step can enter the jail.

It has no rights and never waits for the jail (spank/watch.c). The pod is ready while a step can enter the jail; otherwise the operator drains the
node with the container's message. The container comes after slurmd's in the pod, because it would otherwise delay slurmd.
"""

from soperator.api.common import Resources
from soperator.render.jail import submounts
from soperator.render.parts import names, pod
from soperator.render.parts.model import (
    Cluster,
    Defaults,
    NodeSet,
    Object,
)
from soperator.render.parts.paths import BUNDLE, PLAN_PATH

#: Request and limit are equal, so that a pod whose slurmd has them equal keeps its place in Kubernetes' class Guaranteed.
_SMALL = Resources(requests={"cpu": "20m", "memory": "32Mi"}, limits={"cpu": "20m", "memory": "32Mi"})


def container(cluster: Cluster, nodeset: NodeSet, defaults: Defaults) -> Object:
    """Return the container `jail` of a worker's pod."""
    placed = submounts.mounts(submounts.of_worker(cluster, nodeset))
    return pod.container(cluster, "jail", nodeset.spec.image or pod.slurm_image(cluster, defaults), _SMALL) | {
        "command": [f"{BUNDLE}/libexec/jail-watch", "--plan", PLAN_PATH, "--port", str(names.JAIL_PORT)],
        "ports": [{"name": "jail", "containerPort": names.JAIL_PORT}],
        "securityContext": pod.unprivileged(pod.AGENT_UID),
        "volumeMounts": [
            pod.mount("jail", pod.JAIL, readOnly=True),
            pod.mount("plan", "/etc/soperator/jail", readOnly=True),
            *[each | {"readOnly": True} for each in placed],
        ],
        "readinessProbe": {
            "httpGet": {"path": "/", "port": names.JAIL_PORT},
            "periodSeconds": 2,
            "failureThreshold": 2,
            "timeoutSeconds": 3,
        },
    }
