"""The pods of a restoration, which `soperator restore` creates while the cluster does not exist.

One reads a whole snapshot and prints its content, the other writes the database and the state to their claims. They run no user's program
and have no port.
"""

from dataclasses import dataclass
from typing import Literal

from soperator.api.backup import Repository
from soperator.render.backup import repository
from soperator.render.parts import labels, pod
from soperator.render.parts.model import Object

ROLE = "restore"
#: Where the pod that reads shows what it has found.
FOUND = "/soperator/private/found.json"
_KEYS = "64Mi"
Verb = Literal["read", "write"]


@dataclass(frozen=True)
class Restoration:
    """The inputs of a restoration: a cluster by its namespace and name, the image of the pods, the repository, and the snapshot."""

    namespace: str
    cluster: str
    image: str
    repository: Repository
    snapshot: str = "latest"

    def pod(self, verb: Verb) -> str:
        """Return the name of a pod."""
        return f"{self.cluster}-restore-{verb}"


def render_pod(said: Restoration, verb: Verb, state: str = "", database: str = "") -> Object:
    """Return a pod; the pod that writes mounts the claim of the state, and that of the database if there is one."""
    volumes = [
        *repository.volumes(said.repository),
        pod.empty("scratch"),
        pod.empty("private", medium="Memory", sizeLimit=_KEYS),
        pod.empty("run"),
        pod.empty("tmp"),
    ]
    mounts = [
        *repository.mounts(said.repository),
        pod.mount("scratch", "/soperator/scratch"),
        pod.mount("private", "/soperator/private"),
        pod.mount("run", "/run/mysqld"),
        pod.mount("tmp", "/tmp"),
    ]
    for name, claim, path in (("state", state, "/var/spool/slurmctld"), ("database", database, "/var/lib/mysql")):
        if claim:
            volumes.append(pod.claim(name, claim))
            mounts.append(pod.mount(name, path))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": said.pod(verb),
            "namespace": said.namespace,
            "labels": {labels.MANAGED_BY: "soperator-restore", labels.ROLE: ROLE},
        },
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,  # it is deleted only when it has done its work
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [_container(said, verb, mounts)],
            "volumes": volumes,
        },
    }


def _container(said: Restoration, verb: Verb, mounts: list[Object]) -> Object:
    # MariaDB runs as its own user, and is ended by root.
    rights = ["CHOWN", "DAC_OVERRIDE", "FOWNER", *(["SETUID", "SETGID", "KILL"] if verb == "write" else [])]
    return {
        "name": ROLE,
        "image": said.image,
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "args": [verb, said.snapshot],
        "env": [
            *pod.env(SOPERATOR_HOST=f"{said.namespace}/{said.cluster}"),
            *repository.env(said.repository),
        ],
        "securityContext": pod.file_maker(*rights),
        "volumeMounts": mounts,
    }
