"""A separate root for each node: the variant without a shared jail (`jail.perNode`).

Each pod has its own claim, which Kubernetes creates and deletes with the pod (a generic ephemeral volume). The pod fills it before it starts, with
the steps of the populate Job. So a node starts with the content of its image, whatever changed on its predecessor, and a lost Node keeps no claim
that another pod waits for (decision 19).
"""

import json
from collections.abc import Sequence
from dataclasses import asdict

from soperator.api.common import Resources
from soperator.render.jail import claims
from soperator.render.jail.mount_points import Point
from soperator.render.parts import capabilities, pod
from soperator.render.parts.model import Cluster, Defaults, Object

_SCRIPT = "jail-script"


def volumes(cluster: Cluster) -> list[Object]:
    """Return the jail of a login or worker pod: the shared claim, or its own."""
    if not cluster.spec.jail.per_node:
        return [pod.claim("jail", claims.jail_claim(cluster))]
    ref = cluster.spec.jail.claim
    spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": ref.size}}}
    if ref.storage_class_name:
        spec["storageClassName"] = ref.storage_class_name
    return [
        {"name": "jail", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}},
        pod.empty(_SCRIPT, sizeLimit=pod.SMALL),
    ]


def init_containers(cluster: Cluster, defaults: Defaults, points: Sequence[Point]) -> list[Object]:
    """Return the init containers that fill a pod's own root; each detects a filled root. None if the jail is shared."""
    if not cluster.spec.jail.per_node:
        return []
    agent, image = cluster.spec.images.agents or defaults.agents, cluster.spec.jail.image or defaults.jail
    script, claim = pod.mount(_SCRIPT, "/soperator"), pod.mount("jail", pod.JAIL)
    seal = ["python3", "-m", "soperator.agents.populate", "seal", "--claim", pod.JAIL]
    made = [
        ("jail-script", agent, ["cp", "-r", "/usr/share/soperator/.", "/soperator"], [script]),
        ("jail-copy", image, ["sh", "/soperator/copy.sh"], [script, claim]),
        ("jail-seal", agent, seal, [claim]),
    ]
    if points:
        said = json.dumps([asdict(each) for each in points])
        made.append(("jail-points", agent, ["python3", "-m", "soperator.agents.mountpoints", said], [claim]))
    return [
        pod.container(cluster, name, of, Resources())
        | {
            "command": command,
            "securityContext": pod.file_maker(*capabilities.POPULATE),
            "env": pod.env(SOPERATOR_JAIL_IMAGE=image),
            "volumeMounts": mounts,
        }
        for name, of, command, mounts in made
    ]


def users_of_the_image(cluster: Cluster, defaults: Defaults) -> list[Object]:
    """Return the init container that copies the image's users into slurmctld's pod, which has no shared jail to read."""
    if not cluster.spec.jail.per_node:
        return []
    made = pod.container(cluster, "users", cluster.spec.jail.image or defaults.jail, Resources())
    to = f"{pod.JAIL}/root/etc"
    return [
        made
        | {
            "command": ["sh", "-c", f"mkdir -p {to} && cp /etc/passwd /etc/group {to}/"],
            "securityContext": pod.file_maker(),
            "volumeMounts": [pod.mount("jail", pod.JAIL)],
        }
    ]
