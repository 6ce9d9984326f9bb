"""Fields of a spec that weaken the isolation between a pod of the cluster and its Node.

They are allowed, because an administrator may need them, and they are reported.
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
        *_template("podTemplate", spec.pod_template),
        *_volumes("volumes", spec.volumes),
        *submounts_loosened("submounts", spec.submounts),
    ]


def cluster_loosened(spec: SlurmClusterSpec) -> list[Problem]:
    """Return each field of a SlurmCluster that takes a wall down."""
    return [
        *submounts_loosened("jail.submounts", spec.jail.submounts),
        *(each for path, _, template in role_templates(spec) for each in _template(f"{path}.podTemplate", template)),
    ]


def submounts_loosened(field: str, submounts: Sequence[Submount]) -> Iterator[Problem]:
    """Yield each submount that brings a system folder of the Node into the jail."""
    for number, each in enumerate(submounts):
        path = each.host_path.path if each.host_path else _path(each.volume or {})
        if path and not each.read_only and _SYSTEM.match(path):
            yield Problem(
                f"spec.{field}[{number}]",
                path,
                "root of the jail can change what the Node runs: name a folder of its own",
            )


def _template(at: str, template: Mapping[str, Any]) -> Iterator[Problem]:
    pod = _map(template.get("spec"))
    yield from _pod(f"{at}.spec", pod)
    yield from _containers(f"{at}.spec", pod)
    yield from _volumes(f"{at}.spec.volumes", _list(pod.get("volumes")))


def _pod(at: str, pod: Mapping[str, Any]) -> Iterator[Problem]:
    security = _map(pod.get("securityContext"))
    told = {
        "shareProcessNamespace": (
            pod.get("shareProcessNamespace"),
            "users' processes would see those of the pod's daemons",
        ),
        "serviceAccountName": (pod.get("serviceAccountName"), "the pod may get credentials of Kubernetes"),
        "automountServiceAccountToken": (
            pod.get("automountServiceAccountToken"),
            "credentials of Kubernetes are in the pod",
        ),
        "securityContext.seccompProfile": (
            _type(security.get("seccompProfile")) == "Unconfined" and "Unconfined",
            "every system call of the Node's kernel is open",
        ),
    }
    for field, (value, why) in told.items():
        if value:
            yield Problem(f"spec.{at}.{field}", str(value)[:80], f"{why}: remove it")


def _containers(at: str, pod: Mapping[str, Any]) -> Iterator[Problem]:
    for field in ("containers", "initContainers"):
        for number, container in enumerate(_list(pod.get(field))):
            where, security = (
                f"spec.{at}.{field}[{number}].securityContext",
                _map(container.get("securityContext")),
            )
            added = _map(security.get("capabilities")).get("add")
            told: dict[str, tuple[object, str]] = {
                "privileged": (security.get("privileged") is True, "it has every right on the Node"),
                "capabilities.add": (
                    ", ".join(map(str, added)) if isinstance(added, list) else "",
                    "rights that the pod does not need",
                ),
                "procMount": (
                    security.get("procMount") == "Unmasked",
                    "settings of the Node's kernel are in its /proc",
                ),
                "seccompProfile": (
                    _type(security.get("seccompProfile")) == "Unconfined",
                    "every system call of the Node's kernel is open",
                ),
            }
            for key, (value, why) in told.items():
                if value:
                    text = (
                        value
                        if isinstance(value, str)
                        else str(security.get(key) if key != "seccompProfile" else "Unconfined")
                    )
                    yield Problem(f"{where}.{key}", text[:80], f"{why}: remove it")


def _volumes(field: str, volumes: Iterable[Mapping[str, Any]]) -> Iterator[Problem]:
    for number, volume in enumerate(volumes):
        if path := _path(volume):
            remedy = "a folder of the Node is in the pod, whose root is root there too: use a claim"
            yield Problem(f"spec.{field}[{number}].hostPath.path", path[:80], remedy)


def _path(volume: Mapping[str, Any]) -> str:
    return str(_map(volume.get("hostPath")).get("path", ""))


def _type(profile: object) -> str:
    return str(_map(profile).get("type", ""))


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Mapping[str, Any]]:
    return [_map(each) for each in value] if isinstance(value, list) else []
