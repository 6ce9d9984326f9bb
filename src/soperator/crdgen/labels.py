"""The reference page of labels and annotations; `make crds` writes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from soperator.render.parts import labels

NAME = "labels.md"
Kind = Literal["label", "annotation", "finalizer", "condition"]


@dataclass(frozen=True)
class Mark:
    """One key: what it is, on which objects it stands, and what it says; `is_yours` where a person may write it."""

    key: str
    kind: Kind
    on: str
    says: str
    is_yours: bool = False


MARKS = (
    Mark(labels.ABANDON, "annotation", "NodeSet, SlurmCluster, SlurmAccount, SlurmQOS",
         "`true` gives up the jobs that a deletion waits for: it continues at once, and they end.", True),
    Mark(labels.JOINED, "annotation", "SlurmCluster",
         "The name of the key rotation whose key all hosts outside Kubernetes have; the rotation waits for it.", True),
    Mark(labels.MANAGED_BY, "label", "everything that the operator makes", f"`{labels.MANAGER}`."),
    Mark(labels.APP, "label", "everything that belongs to a cluster", f"`{labels.APP_NAME}`; for tools, the operator does not read it."),
    Mark(labels.INSTANCE, "label", "everything that belongs to a cluster", "The name of the SlurmCluster, for tools."),
    Mark(labels.COMPONENT, "label", "everything of a role", "The same as the role, for tools."),
    Mark(labels.CLUSTER, "label", "everything that belongs to a cluster", "The name of the SlurmCluster."),
    Mark(labels.ROLE, "label", "pods", "What the pod is for, such as `controller`, `login` or `worker`."),
    Mark(labels.NODESET, "label", "pods of workers", "The name of the NodeSet."),
    Mark(labels.INDEX, "label", "pods of workers", "The number of the Slurm node in its NodeSet."),
    Mark(labels.PROTECTED, "label", "pods of workers",
         "`true` while an eviction would end a job: the PodDisruptionBudget of the cluster selects it."),
    Mark(labels.SAFE_TO_EVICT, "annotation", "pods of workers", "`false`: the cluster autoscaler leaves the Node alone."),
    Mark(labels.TEMPLATE, "annotation", "pods of workers, the populate Job",
         "A hash of what all pods of the NodeSet have in common. A pod with another one is replaced by a rollout."),
    Mark(labels.PLAN, "annotation", "pods that enter the jail", "A hash of the pod's mount plan."),
    Mark(labels.IMAGE, "annotation", "pods, the populate Job", "Its image of Slurm, or of the jail."),
    Mark(labels.DRAINED, "annotation", "pods of workers",
         "The reason of a drain by the operator that has lasted. Who resumes the node against it is not overruled."),
    Mark(labels.GIVES_WAY, "annotation", "pods of workers",
         "`true` where a pod that somebody deletes ends only when its node is drained (`preemptible`)."),
    Mark(labels.IN_SERVICE, "condition", "pods of workers", "Whether Slurm gives jobs to the node, and why not."),
    Mark(labels.CONFIG, "annotation", "pods of slurmrestd and slurmdbd", "The generation of Slurm's files that the pod has."),
    Mark(labels.SECRETS, "annotation", "pods of slurmdbd and the database", "The versions of the Secrets that the pod was started with."),
    Mark(labels.GENERATION, "label", "what judges a configuration", "The generation that is judged."),
    Mark(labels.FIXED, "annotation", "pods of slurmctld", "Settings that only a new slurmctld takes."),
    Mark(labels.TRANSACTION, "annotation", "the ConfigMap with Slurm's files", "How far a change of the configuration is."),
    Mark(labels.PLACES, "annotation", "the ConfigMap with Slurm's files", "The locations of the nodes in topology.conf."),
    Mark(labels.POINTS, "annotation", "the Job that makes mount points", "The mount points that it has created."),
    Mark(labels.FILL, "annotation", "the Job that makes mount points", "The filling of the jail in which it created them."),
    Mark(labels.REQUEST, "annotation", "the populate Job", "The request of a refill that it carries out."),
    Mark(labels.MODE, "annotation", "the populate Job", "`Missing` or `Overwrite`."),
    Mark(labels.KEEP, "annotation", "claims and Secrets that a deletion leaves", "`true`: it has no owner, so it outlives its cluster."),
    Mark(labels.ROTATION, "annotation", "Secrets with keys", "The request of the last rotation."),
    Mark(labels.STAGE, "annotation", "Secrets with keys", "How far the rotation is."),
    Mark(labels.SINCE, "annotation", "Secrets with keys", "Since when, in seconds since 1970."),
    Mark(labels.DIGEST, "annotation", "Secrets with keys, pods", "What the key file that daemons read adds up to."),
    Mark(labels.CHECKSUM, "annotation", "copies of Secrets with keys", "What the copied files add up to."),
    Mark(labels.BROUGHT, "annotation", "copies of Secrets with keys", "`true` where a person had brought the keys."),
    Mark(labels.TOKEN, "annotation", "Secrets with tokens of users", "Whose token it is, until when, and which version of the key signed it."),
    Mark(labels.UNHEALTHY, "annotation", "Nodes", "The failed check for which a worker has left the Node."),
    Mark(labels.FINALIZER, "finalizer", "NodeSet, SlurmCluster, the anchor", "A deletion waits until no job is left."),
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
    yield "You may write these; the operator reads them."
    yield ""
    yield from _table([each for each in MARKS if each.is_yours])
    yield ""
    yield "## The operator's"
    yield ""
    yield "Read them, select by them, and leave them as they are: what is changed is put back or misleads the operator."
    yield ""
    yield from _table([each for each in MARKS if not each.is_yours])


def _table(marks: list[Mark]) -> Iterator[str]:
    yield "| key | what | on | meaning |"
    yield "|---|---|---|---|"
    for each in marks:
        yield f"| `{each.key}` | {each.kind} | {each.on} | {each.says} |"
