"""The ConfigMap that is a second owner of every child of a cluster, so that a foreground deletion keeps the children while jobs run
(docs/decisions/0089).
"""

from soperator.render.parts import labels, names
from soperator.render.parts.model import Object

_README = """\
Every object of SlurmCluster {name} names this ConfigMap as a second owner. Kubernetes' garbage collector therefore keeps them while the SlurmCluster
or a NodeSet is being deleted and jobs still run, also with --cascade=foreground. The operator deletes this ConfigMap when the last job has ended.
A finalizer keeps it while the SlurmCluster is there. Delete it yourself, and remove the finalizer, only when SlurmCluster {name} is gone and no
operator runs: the objects that are left go with it.
"""


def render_anchor(namespace: str, name: str) -> Object:
    """Return the anchor of a cluster."""
    return {**anchor_marks(namespace, name), "data": {"README": _README.format(name=name)}, "immutable": True}


def anchor_marks(namespace: str, name: str) -> Object:
    """Return the metadata that an anchor of another release must also have; the content of an anchor cannot change."""
    meta = {
        "name": names.anchor(name),
        "namespace": namespace,
        "labels": labels.recommended(labels.cluster(name)),
        "finalizers": [labels.FINALIZER],
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
