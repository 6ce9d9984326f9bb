"""Submounts: other storage at paths of the jail. Kubernetes mounts it into the pod, and the mount plan binds it into the jail.

The folder in the pod is named by a number, so that a path may have any characters.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from soperator.api.common import Submount
from soperator.render.parts import pod
from soperator.render.parts.model import Cluster, NodeSet, Object

FOLDER = "/mnt/submounts"


@dataclass(frozen=True)
class NumberedSubmount:
    """A submount, its number among the submounts of a pod, and the object whose spec defines it."""

    number: int
    submount: Submount
    owner: str

    @property
    def volume(self) -> str:
        """The name of the submount's volume."""
        return f"submount-{self.number}"

    @property
    def folder(self) -> str:
        """The path of the submount in the pod."""
        return f"{FOLDER}/{self.number}"


def of_login(cluster: Cluster) -> list[NumberedSubmount]:
    """Return the submounts of login nodes, outer before inner."""
    return _placed(cluster, None)


def of_worker(cluster: Cluster, nodeset: NodeSet) -> list[NumberedSubmount]:
    """Return the submounts of a NodeSet's nodes, outer before inner."""
    return _placed(cluster, nodeset)


def volumes(placed: Sequence[NumberedSubmount]) -> list[Object]:
    """Return the volumes of the pod; a submount in memory needs none, because the plan mounts it."""
    return [{"name": each.volume, **_source(each.submount)} for each in placed if not each.submount.tmpfs]


def mounts(placed: Sequence[NumberedSubmount]) -> list[Object]:
    """Return the mounts of those volumes in the container."""
    return [
        pod.mount(each.volume, each.folder, **_sub_path(each.submount)) for each in placed if not each.submount.tmpfs
    ]


def described(each: Submount) -> str:
    """Return a short description of the storage, such as the name of its claim."""
    if each.claim_name:
        words = f"claim {each.claim_name}" + (f", folder {each.sub_path}" if each.sub_path else "")
    elif each.tmpfs:
        words = f"memory, at most {each.tmpfs.size}"
    elif each.host_path:
        words = f"{each.host_path.path} of the Node"
    else:
        words = f"volume of type {', '.join(each.volume or {})}"
    plain = "".join(letter if letter.isprintable() else "?" for letter in words)
    return plain if len(plain) <= 100 else f"{plain[:99]}…"


def _placed(cluster: Cluster, nodeset: NodeSet | None) -> list[NumberedSubmount]:
    shared = [each for each in cluster.spec.jail.submounts if nodeset or not each.per_job]
    asked = [(each, f"SlurmCluster {cluster.name}") for each in shared]
    if nodeset:
        asked += [(each, f"NodeSet {nodeset.name}") for each in nodeset.spec.submounts]
    asked.sort(key=lambda each: each[0].path.split("/"))
    return [NumberedSubmount(number, each, owner) for number, (each, owner) in enumerate(asked)]


def _sub_path(each: Submount) -> Object:
    return {"subPath": each.sub_path} if each.sub_path else {}


def _source(each: Submount) -> Object:
    if each.claim_name:
        return {"persistentVolumeClaim": {"claimName": each.claim_name}}
    if each.host_path:
        return {"hostPath": {"path": each.host_path.path}}
    return dict(each.volume or {})
