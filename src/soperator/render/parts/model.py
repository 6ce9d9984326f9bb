"""The inputs of the renderer: the two kinds with their names, and the operator's defaults.

All inputs are values, so that equal inputs render equal objects. Keys, times and the state of the cluster are arguments of the functions that need
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from soperator.api.backup import SlurmBackupSpec
from soperator.api.base import API_VERSION
from soperator.api.fields.config import TOPOLOGY_FILES, FileRef
from soperator.api.healthcheck import HealthCheckSpec
from soperator.api.nodeset import Gpu, NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.parts import names
from soperator.slurm.topology import Place

#: A Kubernetes object as the API server takes it.
Object = dict[str, Any]


@dataclass(frozen=True)
class Defaults:
    """Images for roles whose spec names none, the DNS domain of the Kubernetes cluster, and the namespace of the operator, empty if unknown."""

    slurm: str
    login: str
    munge: str
    agents: str
    jail: str
    sssd: str = ""
    mariadb: str = ""
    proxy: str = ""
    backup: str = ""
    cluster_domain: str = "cluster.local"
    operator_namespace: str = ""


@dataclass(frozen=True)
class Cluster:
    """A SlurmCluster object, and the inputs that its configuration takes from its NodeSets.

    `shares` is the memory per CPU of each NodeSet in MiB, None if unknown (`job_limits.shares`); `gpus` are the GPUs of each NodeSet that has any
    (`gres.counted`). `checked` says whether a HealthCheck refers to the cluster, `accounted` whether slurmctld reports jobs to slurmdbd; `places` is
    the location of each node in topology.conf. `sleeps` are the longest times in seconds in which its nodes wake and power down, None without power
    saving (`power_saving.timeouts`). `contents` are the entries of ConfigMaps and Secrets that its configuration refers to, as far as they are
    known. `anchor` is the uid of the second owner of its children (`anchor.render_anchor`), empty if not known.
    """

    namespace: str
    name: str
    uid: str
    spec: SlurmClusterSpec
    shares: Mapping[str, int | None] = field(default_factory=lambda: MappingProxyType({}))
    gpus: Mapping[str, Gpu] = field(default_factory=lambda: MappingProxyType({}))
    checked: bool = False
    accounted: bool = False
    places: Mapping[str, Place] = field(default_factory=lambda: MappingProxyType({}))
    sleeps: tuple[int, int] | None = None
    anchor: str = ""
    contents: Mapping[FileRef, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def key(self) -> tuple[str, str]:
        """The namespace and the name of the object, which identify it."""
        return self.namespace, self.name

    @property
    def has_topology(self) -> bool:
        """Whether Slurm gets a topology.conf, from the operator or from the user."""
        return self.spec.topology.is_on or bool(self.spec.config.file(*TOPOLOGY_FILES))

    @property
    def owner(self) -> Object:
        """The owner reference to this object, for its children."""
        return _owner("SlurmCluster", self.name, self.uid)

    @property
    def owners(self) -> list[Object]:
        """The owner references for this object's children: itself, and the anchor if one exists."""
        return [self.owner, *self.anchored]

    @property
    def anchored(self) -> list[Object]:
        """The owner reference to the anchor as a list; empty without an anchor."""
        return [anchor_owner(self.name, self.anchor)] if self.anchor else []


@dataclass(frozen=True)
class HealthCheck:
    """A HealthCheck object; `since` is its creation time in seconds since 1970."""

    namespace: str
    name: str
    uid: str
    spec: HealthCheckSpec
    since: float = 0.0


@dataclass(frozen=True)
class NodeSet:
    """A NodeSet object with its name, its namespace and its spec."""

    namespace: str
    name: str
    uid: str
    spec: NodeSetSpec

    @property
    def key(self) -> tuple[str, str]:
        """The namespace and the name of the object, which identify it."""
        return self.namespace, self.name

    @property
    def owner(self) -> Object:
        """The owner reference to this object, for its children."""
        return _owner("NodeSet", self.name, self.uid)


@dataclass(frozen=True)
class Backup:
    """A SlurmBackup object with its name, its namespace and its spec."""

    namespace: str
    name: str
    uid: str
    spec: SlurmBackupSpec

    @property
    def owner(self) -> Object:
        """The owner reference to this object, for its children."""
        return _owner("SlurmBackup", self.name, self.uid)


def anchor_owner(cluster: str, uid: str) -> Object:
    """Return the owner reference to a cluster's anchor, which is not a controller and does not block a deletion."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": names.anchor(cluster), "uid": uid}


def _owner(kind: str, name: str, uid: str) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
