"""SSSD beside every daemon that looks up users, if the spec names a directory service.

Each pod has its own SSSD, in a container without any capability; only this container mounts its configuration, with the password to the directory.
SSSD shares its sockets with the daemons, and through the mount plan with the jail. The sockets between SSSD's own processes stay in its container,
because they trust every root.
"""

from soperator.render.parts import pod
from soperator.render.parts.model import Cluster, Defaults, Object

PIPES = "/var/lib/sss/pipes"
_CONFIG = "/etc/soperator/sssd"


def is_used(cluster: Cluster) -> bool:
    """Return whether the cluster has a directory service."""
    return bool(cluster.spec.sssd.config_secret_name)


def sidecar(cluster: Cluster, defaults: Defaults) -> list[Object]:
    """Return the container of SSSD, which answers before the next containers of the pod start."""
    if not is_used(cluster):
        return []
    image = cluster.spec.images.sssd or defaults.sssd
    return [
        pod.container(cluster, "sssd", image, cluster.spec.sssd.resources)
        | {
            "restartPolicy": "Always",
            "securityContext": pod.file_maker(),
            "volumeMounts": [
                pod.mount("sssd-config", _CONFIG, readOnly=True),
                pod.mount("sssd-state", "/var/lib/sss"),
                pod.mount("sssd", PIPES),
                pod.mount("sssd-private", f"{PIPES}/private"),
                pod.mount("sssd-run", "/run"),
                pod.mount("sssd-run", "/tmp", subPath="tmp"),
            ],
            "startupProbe": {
                "exec": {"command": ["test", "-S", f"{PIPES}/nss"]},
                "periodSeconds": 1,
                "failureThreshold": 60,
            },
        }
    ]


def mounts(cluster: Cluster) -> list[Object]:
    """Return the mounts of a container that uses SSSD."""
    return [pod.mount("sssd", PIPES, readOnly=True)] if is_used(cluster) else []


def volumes(cluster: Cluster) -> list[Object]:
    """Return the volumes behind the mounts of SSSD and of its clients."""
    if not is_used(cluster):
        return []
    secret = {"secretName": cluster.spec.sssd.config_secret_name, "defaultMode": 0o400}
    return [
        {"name": "sssd-config", "secret": secret},
        pod.empty("sssd", sizeLimit=pod.SMALL),
        pod.empty("sssd-private", medium="Memory", sizeLimit=pod.SMALL),
        pod.empty("sssd-state", sizeLimit="4Gi"),
        pod.empty("sssd-run", medium="Memory", sizeLimit="64Mi"),
    ]
