"""Distinguishes the operator's own Secrets with keys from foreign ones of the same name.

People choose a cluster's name, so another tool's Secret may have the name of the cluster's key. A pod that mounted it would show its
content to everybody who may create a SlurmCluster, and daemons would authenticate each other with a key that other people have. So the
operator adopts a key only if it wrote the Secret, or if a person with write access to that Secret marked it for the cluster.
"""

from soperator.kube.objects import Secret
from soperator.kube.views import ObjectMeta
from soperator.reconcile.keys.key_versions import RememberedKeys
from soperator.render.cluster.keys import read_held
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster
from soperator.slurm.keys import KeyContent


def is_ours(cluster: Cluster, meta: ObjectMeta) -> bool:
    """Return whether the operator wrote a Secret for this cluster or a former one of its name, or a person provided it for the cluster.

    Keys that outlive their cluster (`auth.keepKeys`) have the operator's labels and no owner.
    """
    is_labelled = labels.role(cluster.name, "keys").items() <= meta.labels.items()
    is_owned = any(each.uid == cluster.uid for each in meta.owner_references)
    return is_labelled or is_owned or meta.annotations.get(labels.BROUGHT_FOR) == cluster.name


def foreign(
    cluster: Cluster,
    name: str,
    live: Secret | None,
    kept: Secret | None,
    copied: KeyContent | None,
    known: RememberedKeys,
) -> str:
    """Return the name of the Secret or of its copy that is not the operator's; empty if both are, or do not exist.

    A Secret without any mark is also the operator's if its content is that of an intact copy, or the key that the daemons have.
    """
    held = read_held(live.metadata.annotations, live.data) if live else None
    is_mine = live is None or is_ours(cluster, live.metadata)
    is_known = held is not None and held.digest in {each.digest for each in known.versions}
    if kept is not None and not is_ours(cluster, kept.metadata) and not _is_copy(held if is_mine else None, copied):
        return names.kept(name)
    return "" if is_mine or is_known or copied is not None else name


def _is_copy(held: KeyContent | None, copied: KeyContent | None) -> bool:
    return held is not None and copied is not None and held.digest == copied.digest
