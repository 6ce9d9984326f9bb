"""The rules for podTemplate of a NodeSet and of each role of a SlurmCluster.

podTemplate, volumes and volumeMounts are passed through without interpretation, so that every field of Kubernetes can be used. But a worker depends
on a few fields: a pod with another host name is another Slurm node, and a pod with another command is not a Slurm node. The operator refuses those
fields, and names its own field with the same effect, because a silent override would confuse.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from soperator.api.base import Problem
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.merge_keys import list_problems

WORKER = "slurmd"

_SPEC: Mapping[str, str] = MappingProxyType(
    {
        "hostname": "it is the Slurm node's name: remove it",
        "subdomain": "the host names of the cluster depend on it: remove it",
        "setHostnameAsFQDN": "Slurm knows nodes by their short names: remove it",
        "hostNetwork": "each Slurm node needs its own address: remove it",
        "hostPID": "jobs would see the processes of the Node: remove it",
        "hostIPC": "jobs would share the memory of the Node: remove it",
        "hostUsers": "set security.userNamespace in the SlurmCluster instead",
        "restartPolicy": "workers always restart: remove it",
        "nodeName": "it would bypass the scheduler: set scheduling.nodeSelector instead",
        "nodeSelector": "set scheduling.nodeSelector instead",
        "tolerations": "set scheduling.tolerations instead",
        "affinity": "set scheduling.affinity instead",
        "priorityClassName": "set scheduling.priorityClassName instead",
        "ephemeralContainers": "Kubernetes accepts them only from kubectl debug: remove them",
    }
)
_META = ("name", "generateName", "namespace", "ownerReferences", "finalizers", "uid")
_CONTAINER: Mapping[str, str] = MappingProxyType(
    {
        "command": "the image's entry script starts slurmd: remove it, and set extraConf for settings of slurmd",
        "args": "the image's entry script starts slurmd: remove it, and set extraConf for settings of slurmd",
        "image": "set image instead",
        "resources": "set resources instead, which also determine the size of the Slurm node",
    }
)
#: The same for the roles of a SlurmCluster.
_ROLE_SPEC: Mapping[str, str] = MappingProxyType(
    {
        **_SPEC,
        "hostname": "clients find the pod by its own name: remove it",
        "setHostnameAsFQDN": "Slurm knows hosts by their short names: remove it",
        "hostNetwork": "the NetworkPolicies of the cluster need the pod's own address: remove it",
        "hostPID": "the pod would see the processes of the Node: remove it",
        "hostIPC": "the pod would share the memory of the Node: remove it",
        "restartPolicy": "these pods always restart: remove it",
    }
)
_STARTED = "the image's entry script starts it: remove it"
_ROLE_CONTAINER: Mapping[str, str] = MappingProxyType(
    {
        "command": _STARTED,
        "args": _STARTED,
        "image": "set images of the SlurmCluster instead",
        "resources": "set resources next to podTemplate instead",
    }
)
#: The same for containers whose resources have no field.
_UNSIZED: Mapping[str, str] = MappingProxyType({key: _ROLE_CONTAINER[key] for key in ("command", "args", "image")})
_OURS = "slurm.soperator.io/"
_NAMES = (
    *(
        "cdi",
        "driver",
        "driver-list",
        "host-tmp",
        "hostkeys",
        "infiniband",
        "jail",
        "jail-script",
        "keys",
        "munge",
        "plan",
        "private",
    ),
    *("run", "spool", "ssh", "sssd", "tmp"),
)
_MOUNTS = (
    "/mnt/driver",
    "/run/driver",
    "/mnt/jail",
    "/mnt/tmp",
    "/mnt/submounts",
    "/tmp",
    "/etc/soperator",
    "/etc/slurm",
    "/opt/soperator",
    "/run/soperator",
    "/run/slurm",
    "/run/munge",
    "/var/spool/slurmd",
)


def pod_problems(spec: NodeSetSpec) -> list[Problem]:
    """Return the problems of podTemplate, volumes and volumeMounts of a NodeSet."""
    return [
        *_template(spec.pod_template, {WORKER: _CONTAINER}, _SPEC),
        *_volumes(spec),
        *(
            problem
            for number, mount in enumerate(spec.volume_mounts)
            for problem in _mount(f"volumeMounts[{number}]", mount, spec)
        ),
    ]


@dataclass(frozen=True)
class RoleTemplate:
    """The podTemplate of a role: its path in the spec, and the fields of the role's own containers that it must not set."""

    path: str
    template: Mapping[str, Any]
    containers: Mapping[str, Mapping[str, str]]
    #: Whether the pods have a user namespace, in which root is nobody on the Node.
    has_users: bool = False


def role_templates(spec: SlurmClusterSpec) -> Iterable[RoleTemplate]:
    """Return the podTemplate of each role of a cluster."""
    sized = _ROLE_CONTAINER
    jobs = dict.fromkeys(("script", "copy", "seal", "mount-points"), _UNSIZED)
    yield RoleTemplate("jail", spec.jail.pod_template, jobs, has_users=True)
    yield RoleTemplate("controller", spec.controller.pod_template, {"slurmctld": sized})
    yield RoleTemplate("login", spec.login.pod_template, {"sshd": sized}, has_users=True)
    yield RoleTemplate("rest", spec.rest.pod_template, {"slurmrestd": sized})
    if spec.rest.users:
        yield RoleTemplate("rest.users", spec.rest.users.pod_template, {"slurmrestd": sized, "proxy": _UNSIZED})
    if spec.accounting:
        own = spec.accounting
        yield RoleTemplate("accounting.slurmdbd", own.slurmdbd.pod_template, {"slurmdbd": sized})
        yield RoleTemplate("accounting.managedDatabase", own.managed_database.pod_template, {"mariadb": sized})
    if spec.metrics.exporter:
        yield RoleTemplate("metrics.exporter", spec.metrics.exporter.pod_template, {"exporter": sized})


def role_problems(spec: SlurmClusterSpec) -> Iterable[Problem]:
    """Return the problems of the podTemplates of a cluster's roles."""
    for each in role_templates(spec):
        for problem in _template(each.template, each.containers, _ROLE_SPEC):
            yield replace(problem, field=f"spec.{each.path}.{problem.field}")


def _template(
    template: Mapping[str, Any], ours: Mapping[str, Mapping[str, str]], words: Mapping[str, str]
) -> Iterable[Problem]:
    for key, value in template.items():
        if key not in ("metadata", "spec"):
            yield Problem(
                f"podTemplate.{key}",
                _short(value),
                "a pod template has only metadata and spec: move or remove the field",
            )
        elif not isinstance(value, Mapping):
            yield Problem(f"podTemplate.{key}", _short(value), "it must be a map of fields")
    yield from _directives("podTemplate", template)
    yield from _metadata(_map(template.get("metadata")))
    pod = _map(template.get("spec"))
    for key in sorted(words.keys() & pod.keys()):
        yield Problem(f"podTemplate.spec.{key}", _short(pod[key]), words[key])
    yield from list_problems("podTemplate.spec", pod)
    for field in ("containers", "initContainers"):
        for number, container in enumerate(_list(pod.get(field))):
            yield from _own_container(f"podTemplate.spec.{field}[{number}]", container, ours)


def _directives(field: str, value: object) -> Iterable[Problem]:
    """Return a problem for each directive of kubectl's strategic merge, with which a template could remove essential fields of a worker."""
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _directives(f"{field}[{number}]", each)
    for key, below in _map(value).items():
        if str(key).startswith("$"):
            remedy = "directives of strategic merge are not supported: remove the directive, and set a field to null to remove the field"
            yield Problem(f"{field}.{key}", _short(below), remedy)
        else:
            yield from _directives(f"{field}.{key}", below)


def _metadata(metadata: Mapping[str, Any]) -> Iterable[Problem]:
    for key in sorted(metadata.keys() & set(_META)):
        yield Problem(f"podTemplate.metadata.{key}", _short(metadata[key]), "the operator owns it: remove it")
    for field in ("labels", "annotations"):
        if field in metadata and not isinstance(metadata[field], Mapping):
            yield Problem(f"podTemplate.metadata.{field}", _short(metadata[field]), "it must be a map of texts")
        for key in _map(metadata.get(field)):
            if key.startswith((_OURS, "app.kubernetes.io/")):
                remedy = (
                    "the operator identifies the pod by labels and annotations with this prefix: choose another prefix"
                )
                yield Problem(f"podTemplate.metadata.{field}", key, remedy)


def _own_container(
    field: str, container: Mapping[str, Any], ours: Mapping[str, Mapping[str, str]]
) -> Iterable[Problem]:
    words = ours.get(str(container.get("name")), {})
    for key in sorted(words.keys() & container.keys()):
        yield Problem(f"{field}.{key}", _short(container[key]), words[key])


def _volumes(spec: NodeSetSpec) -> Iterable[Problem]:
    seen: set[str] = set()
    for number, volume in enumerate(spec.volumes):
        name = volume.get("name")
        if not isinstance(name, str) or not name:
            yield Problem(f"volumes[{number}].name", _short(name), "a volume needs a name: set name")
        elif name in seen:
            yield Problem(f"volumes[{number}].name", name, "another volume has this name: choose another name")
        elif name in _NAMES or name.startswith("submount-"):
            yield Problem(
                f"volumes[{number}].name", name, "a volume of the worker itself has this name: choose another name"
            )
        else:
            seen.add(name)


def _mount(field: str, mount: Mapping[str, Any], spec: NodeSetSpec) -> Iterable[Problem]:
    name, path = mount.get("name"), str(mount.get("mountPath", ""))
    template = _map(spec.pod_template.get("spec")).get("volumes", [])
    volumes = {volume.get("name") for volume in [*spec.volumes, *(template if isinstance(template, list) else [])]}
    if name not in volumes:
        yield Problem(f"{field}.name", _short(name), "no volume has this name: add one to volumes")
    if not path.startswith("/"):
        yield Problem(f"{field}.mountPath", path, "give an absolute path")
    if re.search("//|/[.][.]?(/|$)", path):
        yield Problem(f"{field}.mountPath", path, "the path is not normalized: remove '//', '.' and '..'")
        return
    for ours in _MOUNTS:
        if path.rstrip("/") == "" or f"{path}/".startswith(f"{ours}/") or f"{ours}/".startswith(f"{path.rstrip('/')}/"):
            remedy = f"the worker itself needs {ours}: choose another path, or use submounts for a path inside the jail"
            yield Problem(f"{field}.mountPath", path, remedy)
            break


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Mapping[str, Any]]:
    return [_map(each) for each in value] if isinstance(value, list) else []


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
