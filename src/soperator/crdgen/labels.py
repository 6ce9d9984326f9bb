"""The reference page of labels and annotations, as data so that a test can find a key without an entry; `make crds` writes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from soperator.render.parts import labels

NAME = "labels.md"
Kind = Literal["label", "annotation", "finalizer", "condition"]


@dataclass(frozen=True)
class LabelRow:
    """One key: whether it is a label or an annotation, the objects that have it, and its meaning; `is_yours` if a person may write it."""

    key: str
    kind: Kind
    on: str
    message: str
    is_yours: bool = False


MARKS = (
    LabelRow(labels.ABANDON, "annotation", "NodeSet, SlurmCluster, SlurmAccount, SlurmQOS",
         "`true`: a deletion no longer waits for jobs; it continues at once, and the jobs end.", True),
    LabelRow(labels.JOINED, "annotation", "SlurmCluster",
         "The request of the key rotation whose key all hosts outside Kubernetes have; the rotation waits for it.", True),
    LabelRow(labels.ACCEPT_KEY, "annotation", "SlurmCluster",
         "The resourceVersion of a Secret whose key the daemons have, although the operator remembers another key; no other version counts.", True),
    LabelRow(labels.BROUGHT_FOR, "annotation", "Secrets with keys",
         "The SlurmCluster for which a person provides the keys; without it a Secret that the operator did not make is refused.", True),
    LabelRow(labels.MANAGED_BY, "label", "all objects of the operator", f"`{labels.MANAGER}`."),
    LabelRow(labels.APP, "label", "all objects of a cluster", f"`{labels.APP_NAME}`, for tools; the operator does not read it."),
    LabelRow(labels.INSTANCE, "label", "all objects of a cluster", "The name of the SlurmCluster, for tools."),
    LabelRow(labels.COMPONENT, "label", "everything of a role", "The role, for tools."),
    LabelRow(labels.CLUSTER, "label", "all objects of a cluster", "The name of the SlurmCluster."),
    LabelRow(labels.ROLE, "label", "pods", "The role of the pod, such as `controller`, `login` or `worker`."),
    LabelRow(labels.NODESET, "label", "pods of workers", "The name of the NodeSet."),
    LabelRow(labels.INDEX, "label", "pods of workers", "The index of the Slurm node in its NodeSet."),
    LabelRow(labels.PROTECTED, "label", "pods of workers",
         "`true` while an eviction would end a job: the PodDisruptionBudget of the cluster selects it."),
    LabelRow(labels.SAFE_TO_EVICT, "annotation", "pods of workers", "`false`: the cluster autoscaler does not remove the Node."),
    LabelRow(labels.TEMPLATE, "annotation", "pods of workers, the populate Job",
         "A hash of the template of the NodeSet's pods. A rollout replaces a pod with another hash."),
    LabelRow(labels.PLAN, "annotation", "pods that enter the jail", "A hash of the pod's mount plan."),
    LabelRow(labels.IMAGE, "annotation", "pods, the populate Job", "The pod's image of Slurm, or the Job's image of the jail."),
    LabelRow(labels.DRAINED, "annotation", "pods of workers",
         "The reason of a lasting drain by the operator. The operator does not drain again a node that a person resumed."),
    LabelRow(labels.GIVES_WAY, "annotation", "pods of workers",
         "`true`: a deleted pod ends only when its node is drained (`preemptible`)."),
    LabelRow(labels.IN_SERVICE, "condition", "pods of workers", "Whether Slurm starts jobs on the node, and if not, why."),
    LabelRow(labels.CONFIG, "annotation", "pods of slurmrestd and slurmdbd", "The generation of Slurm's files in the pod."),
    LabelRow(labels.SECRETS, "annotation", "pods of slurmdbd and the database", "The versions of the Secrets with which the pod started."),
    LabelRow(labels.GENERATION, "label", "what judges a configuration", "The generation that the trial reads."),
    LabelRow(labels.FIXED, "annotation", "pods of slurmctld", "The settings that only a restart of slurmctld changes."),
    LabelRow(labels.TRANSACTION, "annotation", "the ConfigMap with Slurm's files", "The progress of a change of the configuration."),
    LabelRow(labels.PLACES, "annotation", "the ConfigMap with Slurm's files", "The locations of the nodes in topology.conf."),
    LabelRow(labels.MEMORY, "annotation", "the anchor of a cluster",
         "The stored state of the cluster and its NodeSets, after a checksum. The operator undoes an edit."),
    LabelRow(labels.MEMORY, "label", "ConfigMaps with the stored state of a HealthCheck or SlurmAccount", "The kind of that object."),
    LabelRow(labels.POINTS, "annotation", "the Job that creates mount points", "The mount points that the Job has created."),
    LabelRow(labels.FILL, "annotation", "the Job that creates mount points", "The fill of the jail in which the Job created them."),
    LabelRow(labels.REQUEST, "annotation", "the populate Job, Jobs of backups", "The request that the Job carries out."),
    LabelRow(labels.MODE, "annotation", "the populate Job", "`Missing` or `Overwrite`."),
    LabelRow(labels.KEEP, "annotation", "claims and Secrets after a deletion", "`true`: the object has no owner, so it outlives its cluster."),
    LabelRow(labels.ROTATION, "annotation", "Secrets with keys", "The request of the last rotation."),
    LabelRow(labels.STAGE, "annotation", "Secrets with keys", "The stage of the rotation."),
    LabelRow(labels.SINCE, "annotation", "Secrets with keys, Jobs of backups",
         "The time since which no daemon signs with the former key, or when the backup began, in seconds since 1970."),
    LabelRow(labels.DIGEST, "annotation", "Secrets with keys, pods", "A hash of the key file that daemons read."),
    LabelRow(labels.CHECKSUM, "annotation", "copies of Secrets with keys", "A hash of the copied files."),
    LabelRow(labels.BROUGHT, "annotation", "copies of Secrets with keys", "`true`: a person provided the keys."),
    LabelRow(labels.TOKEN, "annotation", "Secrets with tokens of users", "The token's user, its expiry, and the version of the key that signed it."),
    LabelRow(labels.UNHEALTHY, "annotation", "Nodes", "The failed check for which a worker has left the Node."),
    LabelRow(labels.FINALIZER, "finalizer", "NodeSet, SlurmCluster, the anchor", "The deletion of the object waits until no job is left."),
)  # fmt: skip


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Labels and annotations"
    yield ""
    yield "<!-- Generated from src/soperator/crdgen/labels.py by `make crds`. -->"
    yield ""
    yield "## Yours"
    yield ""
    yield "You may set these keys; the operator reads them."
    yield ""
    yield from _table([each for each in MARKS if each.is_yours])
    yield ""
    yield "## The operator's"
    yield ""
    yield "You may read these keys and select by them, but do not change them: the operator restores a changed value, or a wrong value misleads it."
    yield ""
    yield from _table([each for each in MARKS if not each.is_yours])


def _table(marks: list[LabelRow]) -> Iterator[str]:
    yield "| key | what | on | meaning |"
    yield "|---|---|---|---|"
    for each in marks:
        yield f"| `{each.key}` | {each.kind} | {each.on} | {each.message} |"
