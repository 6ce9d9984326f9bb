"""Finds the fields of a spec that weaken the isolation between a pod of the cluster and its Node.

Such fields are allowed, because an administrator may need them, and reported, so that nobody weakens a cluster unnoticed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from soperator.api.base import Problem
from soperator.api.common import Submount
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.pod_template import role_templates

#: Folders of a Node in which root of the jail could change the Node's programs: its files there belong to root of the Node.
_SYSTEM = re.compile(
    r"^/($|(bin|boot|dev|etc|lib|lib64|proc|root|run|sbin|sys|usr|var/run|var/log|var/lib/(kubelet|containerd|docker|containers|etcd))(/|$)|(var|var/lib)$)"
)


def loosened(spec: NodeSetSpec) -> list[Problem]:
    """Return each field of a NodeSet that weakens the isolation, with its effect."""
    return [
        *_template("podTemplate", spec.pod_template, True),
        *_volumes("volumes", spec.volumes),
        *submounts_loosened("submounts", spec.submounts),
    ]


def cluster_loosened(spec: SlurmClusterSpec) -> list[Problem]:
    """Return each field of a SlurmCluster that weakens the isolation, with its effect."""
    return [
        *submounts_loosened("jail.submounts", spec.jail.submounts),
        *(
            problem
            for each in role_templates(spec)
            for problem in _template(f"{each.path}.podTemplate", each.template, each.has_users)
        ),
    ]


def submounts_loosened(field: str, submounts: Sequence[Submount]) -> Iterator[Problem]:
    """Yield each submount that exposes a system folder of the Node in the jail."""
    for number, each in enumerate(submounts):
        path = each.host_path.path if each.host_path else _path(each.volume or {})
        if path and not each.read_only and _SYSTEM.match(path):
            yield Problem(
                f"spec.{field}[{number}]",
                path,
                "root of the jail can change the programs of the Node: use a folder without system files",
            )


def _template(at: str, template: Mapping[str, Any], has_users: bool) -> Iterator[Problem]:
    pod = _map(template.get("spec"))
    yield from _pod(f"{at}.spec", pod)
    yield from _containers(f"{at}.spec", pod, has_users)
    yield from _volumes(f"{at}.spec.volumes", _list(pod.get("volumes")))


_OPEN_KERNEL = "the pod may use every system call of the Node's kernel"
_OWN_RIGHTS = "the operator's own limits no longer apply"


def _pod(at: str, pod: Mapping[str, Any]) -> Iterator[Problem]:
    security = _map(pod.get("securityContext"))
    weakened = {
        "shareProcessNamespace": (
            pod.get("shareProcessNamespace"),
            "users' processes would see the processes of the pod's daemons",
        ),
        "serviceAccountName": (pod.get("serviceAccountName"), "the pod may get Kubernetes credentials"),
        "automountServiceAccountToken": (
            pod.get("automountServiceAccountToken"),
            "the pod has Kubernetes credentials",
        ),
        "securityContext": ("null" if _is_null(pod, "securityContext") else "", _OWN_RIGHTS),
        "securityContext.seccompProfile": (
            "null"
            if _is_null(security, "seccompProfile")
            else _type(security.get("seccompProfile")) == "Unconfined" and "Unconfined",
            _OPEN_KERNEL,
        ),
    }
    for field, (value, why) in weakened.items():
        if value:
            yield Problem(f"spec.{at}.{field}", str(value)[:80], f"{why}: remove it")


def _containers(at: str, pod: Mapping[str, Any], has_users: bool) -> Iterator[Problem]:
    for field in ("containers", "initContainers"):
        for number, container in enumerate(_list(pod.get(field))):
            where = f"spec.{at}.{field}[{number}].securityContext"
            if _is_null(container, "securityContext"):
                yield Problem(where, "null", f"{_OWN_RIGHTS}: remove it")
            weakened = _rights(_map(container.get("securityContext")))
            if not has_users:
                weakened |= _root(_map(container.get("securityContext")))
            for key, (value, why) in weakened.items():
                if value:
                    yield Problem(f"{where}.{key}", value[:80], f"{why}: remove it")


def _rights(security: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the fields of a container's security context that weaken the isolation, with value and effect; the value is empty if a field does
    not.
    """
    capabilities = _map(security.get("capabilities"))
    added, is_kept = capabilities.get("add"), "drop" in capabilities and not capabilities["drop"]
    is_kept = is_kept or _is_null(security, "capabilities")
    is_unconfined = _type(security.get("seccompProfile")) == "Unconfined"
    return {
        "privileged": (
            "True" if security.get("privileged") is True else "",
            "the container has every right on the Node",
        ),
        "capabilities.add": (
            ", ".join(map(str, added)) if isinstance(added, list) else "",
            "the container gets rights that it does not need",
        ),
        "capabilities.drop": ("nothing" if is_kept else "", "the container gets rights that it does not need"),
        "procMount": (
            "Unmasked" if security.get("procMount") == "Unmasked" else "",
            "the container's /proc exposes settings of the Node's kernel",
        ),
        "seccompProfile": ("Unconfined" if is_unconfined else "", _OPEN_KERNEL),
    }


def _root(security: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the fields that give root's rights to a container in a pod without a user namespace, with value and effect."""
    is_root = "runAsUser" in security and security["runAsUser"] in (0, None)
    return {
        "runAsUser": (str(security.get("runAsUser")) if is_root else "", "root of the container is root of the Node"),
        "allowPrivilegeEscalation": (
            "True" if security.get("allowPrivilegeEscalation") is True else "",
            "a program may gain rights that its user does not have",
        ),
    }


def _volumes(field: str, volumes: Iterable[Mapping[str, Any]]) -> Iterator[Problem]:
    for number, volume in enumerate(volumes):
        if path := _path(volume):
            remedy = "the pod mounts a folder of the Node, and its root is also root there: use a claim"
            yield Problem(f"spec.{field}[{number}].hostPath.path", path[:80], remedy)
        sources = _list(_map(volume.get("projected")).get("sources"))
        if any("serviceAccountToken" in each for each in sources):
            at = f"spec.{field}[{number}].projected.sources"
            yield Problem(at, "serviceAccountToken", "the pod has Kubernetes credentials: remove it")


def _is_null(fields: Mapping[str, Any], key: str) -> bool:
    """Return whether a template removes a field that the operator sets."""
    return key in fields and fields[key] is None


def _path(volume: Mapping[str, Any]) -> str:
    return str(_map(volume.get("hostPath")).get("path", ""))


def _type(profile: object) -> str:
    return str(_map(profile).get("type", ""))


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Mapping[str, Any]]:
    return [_map(each) for each in value] if isinstance(value, list) else []
