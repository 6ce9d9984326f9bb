"""Reports on hosts outside Kubernetes: nodes that Slurm knows and that belong to no NodeSet (`soperator join`).

Only their administrator can change them, so a rotation or a deletion can only wait and name them.
"""

from soperator.reconcile.context import Operator
from soperator.render.parts import labels
from soperator.runtime.cache.store import Key
from soperator.slurm.keys import RotationRecord
from soperator.slurm.node import SlurmNode

_SHOWN = 5


def hosts(operator: Operator, key: Key) -> list[SlurmNode] | None:
    """Return the hosts whose slurmd may run, by name; None without an answer of Slurm. A host that is DOWN has no jobs to protect."""
    nodes = operator.slurm.nodes(key)
    if nodes is None:
        return None
    sets = {each.metadata.name for each in operator.stores.nodesets_of(key)}
    found = [each for each in nodes.values() if not _is_worker(each, sets)]
    return sorted((each for each in found if each.is_up or each.is_busy), key=lambda each: each.name)


def without_key(operator: Operator, key: Key, record: RotationRecord) -> str:
    """Return the hosts that still need the new key of a rotation, and the commands that copy it to them.

    The text is empty if there are none, or if an administrator confirmed the key.
    """
    obj = operator.stores.clusters.get(*key)
    if obj and obj.metadata.annotations.get(labels.JOINED) == record.request:
        return ""
    found = hosts(operator, key)
    if found is None:
        return "Slurm has not reported which hosts outside Kubernetes it knows"
    return (
        f"run soperator join again for {named(found)}, outside Kubernetes, then: "
        f"kubectl -n {key[0]} annotate slurmcluster {key[1]} --overwrite {labels.JOINED}={record.request}"
        if found
        else ""
    )


def busy(operator: Operator, key: Key) -> str:
    """Return the hosts outside Kubernetes for which the deletion of a cluster waits; empty if there are none."""
    found = hosts(operator, key)
    if found is None:
        return ""
    working = [each for each in found if each.is_busy]
    return f"jobs on {named(working)}, which is outside Kubernetes" if working else ""


def named(found: list[SlurmNode]) -> str:
    """Return the first few names, as text."""
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{', '.join(each.name for each in found[:_SHOWN])}{more}"


def _is_worker(node: SlurmNode, sets: set[str]) -> bool:
    """Return whether a node is, or was, a worker of a NodeSet.

    Such a node has the NodeSet's name in its own name and as a feature, also after the NodeSet was deleted.
    """
    stem, _, number = node.name.rpartition("-")
    return number.isdecimal() and (stem in sets or (node.shape is not None and stem in node.shape.features))
