"""Every Kubernetes kind that the operator uses, as a value.

A kind here has only the fields that a URL needs. Plurals are constants, neither derived nor discovered, because discovery would cost a request per
group at each start, and the operator uses about twenty kinds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource type of the Kubernetes API."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` of objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of the collection, or of one object, or of one object's subresource.

        Without a namespace, the collection spans all namespaces; an object of a namespaced kind must have one.
        """
        if self.namespaced and name is not None and not namespace:
            raise ValueError(f"{self.kind} {name}: a namespaced object needs a namespace")
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part is not None]
        return "/".join(parts)

    def __str__(self) -> str:
        return self.kind


POD = Kind("", "v1", "pods", "Pod")
SERVICE = Kind("", "v1", "services", "Service")
CONFIGMAP = Kind("", "v1", "configmaps", "ConfigMap")
SECRET = Kind("", "v1", "secrets", "Secret")
SERVICEACCOUNT = Kind("", "v1", "serviceaccounts", "ServiceAccount")
PVC = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PV = Kind("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
NODE = Kind("", "v1", "nodes", "Node", namespaced=False)
NAMESPACE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
EVENT = Kind("events.k8s.io", "v1", "events", "Event")
#: The same Events in the core API, where they can be selected by their object.
SAID = Kind("", "v1", "events", "Event")
LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease")
STATEFULSET = Kind("apps", "v1", "statefulsets", "StatefulSet")
DEPLOYMENT = Kind("apps", "v1", "deployments", "Deployment")
DAEMONSET = Kind("apps", "v1", "daemonsets", "DaemonSet")
JOB = Kind("batch", "v1", "jobs", "Job")
CRONJOB = Kind("batch", "v1", "cronjobs", "CronJob")
PDB = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
NETWORKPOLICY = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
ROLE = Kind("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLEBINDING = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CRD = Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
MARIADB = Kind("k8s.mariadb.com", "v1alpha1", "mariadbs", "MariaDB")
SLURMCLUSTER = Kind("slurm.soperator.io", "v1alpha1", "slurmclusters", "SlurmCluster")
NODESET = Kind("slurm.soperator.io", "v1alpha1", "nodesets", "NodeSet")
HEALTHCHECK = Kind("slurm.soperator.io", "v1alpha1", "healthchecks", "HealthCheck")
SLURMACCOUNT = Kind("slurm.soperator.io", "v1alpha1", "slurmaccounts", "SlurmAccount")
SLURMQOS = Kind("slurm.soperator.io", "v1alpha1", "slurmqos", "SlurmQOS")
SLURMBACKUP = Kind("slurm.soperator.io", "v1alpha1", "slurmbackups", "SlurmBackup")

ALL = (
    POD, SERVICE, CONFIGMAP, SECRET, SERVICEACCOUNT, PVC, PV, NODE, NAMESPACE, EVENT, SAID, LEASE, STATEFULSET, DEPLOYMENT,
    DAEMONSET, JOB, CRONJOB, PDB, NETWORKPOLICY, ROLE, ROLEBINDING, CRD, SLURMCLUSTER, NODESET,
    HEALTHCHECK, SLURMACCOUNT, SLURMQOS, SLURMBACKUP, MARIADB,
)  # fmt: skip

BY_TYPE: Mapping[tuple[str, str], Kind] = MappingProxyType({(kind.api_version, kind.kind): kind for kind in ALL})


def kind_of(obj: Mapping[str, Any]) -> Kind:
    """Return the kind of an object given as a dict; raises ValueError for one that is not listed here."""
    try:
        return BY_TYPE[obj["apiVersion"], obj["kind"]]
    except KeyError:
        raise ValueError(f"{obj.get('apiVersion')} {obj.get('kind')} is an unknown kind") from None
