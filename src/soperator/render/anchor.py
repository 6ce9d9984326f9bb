"""The ConfigMap that owns every child of a cluster too, and that nobody owns (docs/decisions/0089)."""

from soperator.render import labels, names
from soperator.render.model import Object

_README = """\
Every object of SlurmCluster {name} names this ConfigMap as a second owner. Kubernetes' garbage collector therefore keeps them while the SlurmCluster
or a NodeSet is being deleted and jobs still run, also with --cascade=foreground. The operator deletes this ConfigMap when the last job has ended.
A finalizer keeps it while the SlurmCluster is there. Delete it yourself, and remove the finalizer, only when SlurmCluster {name} is gone and no
operator runs: the objects that are left go with it.
"""


def render_anchor(namespace: str, name: str, is_held: bool = True) -> Object:
    """The anchor of a cluster; `is_held` is whether a finalizer keeps it when somebody deletes it."""
    text = _README.format(name=name)
    finalizers = [labels.FINALIZER] if is_held else []
    meta = {
        "name": names.anchor(name),
        "namespace": namespace,
        "labels": labels.cluster(name),
        "finalizers": finalizers,
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"README": text}, "immutable": True}
