"""Finds the fields of a backup's objects that give pods rights on the Nodes, or the rights of a service account.

Whoever may write to a repository and knows its password can have planted them, so `soperator restore` asks before it creates them. The names
are searched for at any depth, because a podTemplate and a volume may have them in many places.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from soperator.render.parts.model import Object

#: Fields of Kubernetes and of ours that do so with any value but an empty one or false.
_NAMES = frozenset(
    {
        *(
            "hostPath",
            "privileged",
            "hostNetwork",
            "hostPID",
            "hostIPC",
            "hostPort",
            "procMount",
            "allowPrivilegeEscalation",
        ),
        *(
            "serviceAccountName",
            "serviceAccount",
            "serviceAccountToken",
            "nodeName",
            "hostUsers",
            "capabilities",
            "seLinuxOptions",
        ),
        *("automountServiceAccountToken", "volumeDevices", "appArmorProfile", "seccompProfile"),
        *("runtimeClassName", "hostProcess", "sysctls"),
        *("cdi", "infiniband"),  # devices and files of the Node
    }
)
#: Fields with which the operator limits its pods: null in a podTemplate removes them, and then the defaults of Kubernetes hold.
_LIMITS = frozenset(
    {
        *("securityContext", "capabilities", "allowPrivilegeEscalation", "seccompProfile", "appArmorProfile"),
        *("seLinuxOptions", "hostUsers", "automountServiceAccountToken"),
    }
)
#: Annotations of a pod that do so: the profiles of AppArmor and seccomp, as Kubernetes had them before the fields.
_ANNOTATIONS = (
    *("container.apparmor.security.beta.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/"),
    "seccomp.security.alpha.kubernetes.io/pod",
)
#: Where a probe or a hook names a host: the kubelet sends the request, from the Node's own address.
_HOSTS = (".httpGet.host", ".tcpSocket.host")
#: The sources of a volume that stay in the namespace, beside the name of the volume.
_VOLUMES = frozenset(
    {
        *("name", "persistentVolumeClaim", "emptyDir", "ephemeral", "configMap", "secret", "downwardAPI", "projected"),
        *("nfs", "image"),
    }
)


def node_access(objects: Iterable[Object]) -> list[str]:
    """Return each such field as object, path and value."""
    return [
        f"{each['kind']} {each['metadata']['name']}: {path} {json.dumps(value)[:100]}"
        for each in objects
        for path, value in _fields(each["spec"], "spec")
    ]


def _fields(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _fields(each, f"{path}[{number}]")
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        here = f"{path}.{name}"
        if _is_right(here, name, inner):
            yield here, inner
        else:
            yield from _volumes(name, inner, here)
            yield from _fields(inner, here)


def _is_right(path: str, name: str, value: Any) -> bool:
    if name == "userNamespace":
        return value is False
    if path.endswith("mariadbOperator.spec"):  # it is applied with the rights of the operator
        return bool(value)
    if name in _LIMITS and value is None:
        return True
    is_named = name in _NAMES or name.startswith(_ANNOTATIONS) or path.endswith(_HOSTS)
    return is_named and value not in (False, None, "", {}, [])


def _volumes(name: str, inner: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the sources of the volumes of a field that are none of the namespace; those in `_NAMES` are found anyway."""
    found = (
        enumerate(inner)
        if name == "volumes" and isinstance(inner, list)
        else [(None, inner)]
        if name == "volume"
        else []
    )
    for number, volume in found:
        if isinstance(volume, Mapping):
            at = path if number is None else f"{path}[{number}]"
            yield from ((f"{at}.{key}", each) for key, each in volume.items() if key not in _VOLUMES | _NAMES)
