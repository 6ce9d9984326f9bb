"""The ConfigMap that owns every child of a cluster too, and that nobody owns (docs/decisions/0089)."""

from soperator.render import labels, names
from soperator.render.model import Object

_README = """\
Every object of SlurmCluster {name} names this ConfigMap as a second owner. Kubernetes' garbage collector therefore keeps them while the SlurmCluster
or a NodeSet is being deleted and jobs still run, also with --cascade=foreground. The operator deletes this ConfigMap when the last job has ended.
Delete it yourself only when SlurmCluster {name} is gone and no operator runs: the objects that are left go with it.
"""


def render_anchor(namespace: str, name: str) -> Object:
    """The anchor of a cluster."""
    text = _README.format(name=name)
    meta = {"name": names.anchor(name), "namespace": namespace, "labels": labels.cluster(name)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"README": text}, "immutable": True}
