"""The claims of the jail and of slurmctld's state, which outlive the pods. `populate_job` has the Job that fills the jail, and `mount_plan` the
mounts of a node.
"""

from soperator.api.common import ClaimRef
from soperator.render.parts import names, pod
from soperator.render.parts.model import Cluster, Object


def render_claim(cluster: Cluster) -> list[Object]:
    """Return the jail's claim, if the spec names none. It has no owner, so the users' files stay when the cluster is deleted."""
    ref = cluster.spec.jail.claim
    if ref.name or cluster.spec.jail.per_node:
        return []
    return [claim(cluster, names.jail_claim(cluster.name), ref, "ReadWriteMany", owned=False)]


def jail_claim(cluster: Cluster) -> str:
    """Return the name of the claim with the jail."""
    return cluster.spec.jail.claim.name or names.jail_claim(cluster.name)


def claim(cluster: Cluster, name: str, ref: ClaimRef, mode: str, owned: bool) -> Object:
    """Return a claim that the operator creates; one without an owner stays when the cluster is deleted."""
    spec: Object = {"accessModes": [mode], "resources": {"requests": {"storage": ref.size}}}
    if ref.storage_class_name:
        spec["storageClassName"] = ref.storage_class_name
    meta = pod.metadata(cluster, name, "storage", owned)
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def render_state_claim(cluster: Cluster) -> list[Object]:
    """Return the claim of slurmctld's state, if the spec names none."""
    if cluster.spec.controller.state.name:
        return []
    mode = "ReadWriteOnce" if cluster.spec.controller.replicas == 1 else "ReadWriteMany"
    return [claim(cluster, names.state_claim(cluster.name), cluster.spec.controller.state, mode, owned=True)]
