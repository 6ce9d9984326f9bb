"""The inputs of the renderer: our two kinds with their names, and the operator's defaults.

Everything here is a value. Keys, times and the state of the cluster are arguments of the functions that need them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from soperator.api.base import API_VERSION
from soperator.api.healthcheck import HealthCheckSpec
from soperator.api.nodeset import Gpu, NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.parts import names
from soperator.slurm.topology import Place

#: A Kubernetes object as the API server takes it.
Object = dict[str, Any]


@dataclass(frozen=True)
class Defaults:
    """Images for roles whose spec names none, the DNS domain of the Kubernetes cluster, and the namespace of the operator, empty where unknown."""

    slurm: str
    login: str
    munge: str
    agents: str
    jail: str
    sssd: str = ""
    mariadb: str = ""
    proxy: str = ""
    cluster_domain: str = "cluster.local"
    operator_namespace: str = ""


@dataclass(frozen=True)
class Cluster:
    """A SlurmCluster object, and what its configuration takes from its NodeSets.

    `shares` is the memory per CPU of each in MiB, None where unknown (`job_limits.shares`); `gpus` those of each that has any (`gres.counted`).
    `checked` is whether a HealthCheck names it, `accounted` whether slurmctld is to tell slurmdbd of its jobs by now,
    `places` where each node lies that topology.conf is to name.
    `sleeps` are the longest times in which its nodes wake and go to sleep, None where none ever sleeps (`power_saving.timeouts`).
    `anchor` is the uid of the second owner of all that it owns (`anchor.render_anchor`), empty where that is not known.
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

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def has_topology(self) -> bool:
        """Whether Slurm gets a topology.conf, ours or the user's."""
        return self.spec.topology.is_on or bool(self.spec.config.topology.strip())

    @property
    def owner(self) -> Object:
        """The owner reference for what this object owns."""
        return _owner("SlurmCluster", self.name, self.uid)

    @property
    def owners(self) -> list[Object]:
        """The owner references for this object's children: itself, and the anchor where there is one."""
        return [self.owner, *self.anchored]

    @property
    def anchored(self) -> list[Object]:
        """The owner reference to the anchor, as a list; empty where there is none."""
        return [anchor_owner(self.name, self.anchor)] if self.anchor else []


@dataclass(frozen=True)
class HealthCheck:
    """A HealthCheck object; `since` is when it was made, in seconds since 1970."""

    namespace: str
    name: str
    uid: str
    spec: HealthCheckSpec
    since: float = 0.0


@dataclass(frozen=True)
class NodeSet:
    """A NodeSet object."""

    namespace: str
    name: str
    uid: str
    spec: NodeSetSpec

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def owner(self) -> Object:
        """The owner reference for what this object owns."""
        return _owner("NodeSet", self.name, self.uid)


def anchor_owner(cluster: str, uid: str) -> Object:
    """Return the owner reference to a cluster's anchor; it controls nothing, and nothing waits for it."""
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
