"""The rules for submounts: for a single submount, which the API server also checks, and among several, which only this module checks.

Only the jail itself shows whether a target is missing or leads through a symbolic link: the Job that creates the mount points reports it
(`soperator.agents.mountpoints`), and the helper in the pod reports a later change.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from soperator.api.base import Problem
from soperator.api.common import Submount
from soperator.api.validation.cel import (
    Rule,
    cel_at_least,
    cel_list,
    cel_text,
)
from soperator.api.validation.quantity import amount

#: Trees and paths of the jail that every node mounts anyway, or that are above one of them.
RESERVED_TREES = (
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/opt/soperator",
    "/var/spool/slurmd",
    "/var/lib/sss",
    "/etc/pam.d/soperator-sshd",
    "/etc/resolv.conf",
    "/etc/hosts",
)
RESERVED_PATHS = ("/", "/opt", "/etc", "/etc/pam.d", "/var", "/var/lib", "/var/spool")
#: A tmpfs of less than a page is none, and one of 0 bytes has no bound at all. Source: tmpfs(5).
LEAST = "64Ki"

_TREES = "|".join(tree.lstrip("/").replace(".", "[.]") for tree in RESERVED_TREES)
RESERVED = f"^/({_TREES})(/.*)?$|^/tmp/"
CROOKED = "//|/[.][.]?(/|$)|./$"
_CLIMBING = "(^|/)[.][.](/|$)"

#: Kubernetes' kinds of volumes. A pod with another one is taken, and given an empty folder. Source: core/v1 Volume of Kubernetes 1.36.
_SOURCES = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI emptyDir ephemeral fc flexVolume"
    " flocker gcePersistentDisk gitRepo glusterfs hostPath image iscsi nfs persistentVolumeClaim photonPersistentDisk"
    " portworxVolume projected quobyte rbd scaleIO secret storageos vsphereVolume"
)
#: The message about a size below LEAST.
UNBOUNDED = (
    f"must be at least {LEAST}, because memory without a limit could use all memory of the node: set a size such as 1Gi"
)


def _sources(mount: Submount) -> int:
    return (mount.claim_name != "") + sum(source is not None for source in (mount.tmpfs, mount.host_path, mount.volume))


SUBMOUNT = (
    Rule(
        cel=f"[{cel_text('claimName')} != '', has(self.tmpfs), has(self.hostPath), has(self.volume)].exists_one(given, given)",
        message="a submount needs exactly one of claimName, tmpfs, hostPath and volume: keep one and remove the others",
        holds=lambda mount: _sources(mount) == 1,
    ),
    Rule(
        cel=f"{cel_text('subPath')} == '' || {cel_text('claimName')} != ''",
        message="subPath is a folder inside a claim: set claimName, or remove subPath",
        holds=lambda mount: not mount.sub_path or bool(mount.claim_name),
        field="sub_path",
    ),
    Rule(
        # `has` bounds the cost of the pattern where `orValue` would not.
        cel=f"!has(self.subPath) || !(self.subPath.startsWith('/') || self.subPath.matches('{_CLIMBING}'))",
        message="subPath must be inside the claim: remove '/' at its beginning, and '..'",
        holds=lambda mount: not mount.sub_path.startswith("/") and not re.search(_CLIMBING, mount.sub_path),
        field="sub_path",
    ),
    Rule(
        cel="!has(self.tmpfs) || !self.readOnly",
        message="a read-only tmpfs stays empty for ever: remove readOnly",
        holds=lambda mount: not (mount.tmpfs and mount.read_only),
        field="read_only",
    ),
    Rule(
        cel="!self.perJob || (!has(self.tmpfs) && !self.readOnly)",
        message="perJob gives each job a writable folder, and a tmpfs is private to each job anyway: remove perJob, or readOnly or tmpfs",
        holds=lambda mount: not (mount.per_job and (mount.tmpfs or mount.read_only)),
        field="per_job",
    ),
    Rule(
        cel=f"!self.path.matches('{RESERVED}') && !(self.path in {cel_list(RESERVED_PATHS)})",
        message=(
            f"path conflicts with mounts of every node ({', '.join(RESERVED_TREES)}, a folder above one of them, or one "
            "below /tmp): choose another path in the jail, for example /home"
        ),
        holds=lambda mount: not re.search(RESERVED, mount.path) and mount.path not in RESERVED_PATHS,
        field="path",
    ),
    Rule(
        cel=f"self.path == '/' || !self.path.matches('{CROOKED}')",
        message="path must be normalized: remove '//', '.', '..' and a '/' at its end",
        holds=lambda mount: mount.path == "/" or not re.search(CROOKED, mount.path),
        field="path",
    ),
)

HOST_PATH = (
    Rule(
        cel="!self.path.matches('/[.][.](/|$)')",
        message="path must not contain '..': write the absolute path of the folder",
        holds=lambda host: not re.search("/[.][.](/|$)", host.path),
        field="path",
    ),
)

TMPFS = (
    Rule(
        cel=cel_at_least("size", LEAST),
        message=f"size {UNBOUNDED}",
        holds=lambda tmpfs: amount(tmpfs.size) >= amount(LEAST),
        field="size",
    ),
)


def mount_problems(
    path: str, own: Sequence[Submount], shared: Sequence[Submount], cluster: str = ""
) -> Iterator[Problem]:
    """Yield the problems among the submounts of one object, and between them and those of its cluster.

    Two submounts at one path are a fault. One below another is valid, because the outer one is mounted first.
    """
    anew = [each.path for each in (*shared, *own) if each.per_job]
    taken = {each.path: f"SlurmCluster {cluster} mounts something at this path on every node" for each in shared}
    for number, mount in enumerate(own):
        if mount.path in taken:
            remedy = f"{taken[mount.path]}: choose another path, or remove one of the two"
            yield Problem(f"{path}[{number}].path", mount.path, remedy)
        taken[mount.path] = "another volume is mounted at this path"
        if above := next((path for path in anew if mount.path.startswith(f"{path}/")), ""):
            remedy = f"each job has a new {above}, which has no folder to mount on: choose a path outside it"
            yield Problem(f"{path}[{number}].path", mount.path, remedy)
        if mount.volume is not None:
            yield from volume_problems(f"{path}[{number}].volume", mount.volume)


def volume_problems(field: str, volume: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of a volume source that Kubernetes does not have; the API server validates the content."""
    if len(volume) != 1:
        said = ", ".join(sorted(volume)) or "nothing"
        yield Problem(
            field, said[:80], "a volume has exactly one source: set one, for example nfs: {server: …, path: …}"
        )
    for key in sorted(volume.keys() - set(_SOURCES.split())):
        remedy = "Kubernetes has no volume source of this name: correct it, and leave out name, which the operator sets"
        yield Problem(field, key[:80], remedy)
