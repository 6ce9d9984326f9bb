"""Connects SlurmBackups to the operator: their informer, and the Jobs that wake their passes."""

from collections.abc import Iterable, Sequence
from typing import Any

from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.views import Custom
from soperator.reconcile.cache.informers import CLUSTER, Stores
from soperator.runtime.cache.informer import Informer, InformerSource
from soperator.runtime.cache.store import Key, key_of
from soperator.runtime.workqueue import Queue

MISSING = "upgrade the chart soperator-crds, which has its definition; until then everything else works, but no backups are made"


def make_reflectors(
    api: Api, stores: Stores, namespace: str | None, queue: Queue, others: Sequence[Informer[Any]]
) -> list[Informer[Custom]]:
    """Return the informer of SlurmBackups. A change of one of its Jobs and the end of its cluster, which the `others` read, queue a pass too."""
    made = Informer(api, InformerSource(kinds.SLURMBACKUP, Custom, namespace, missing=MISSING), stores.backups)
    made.feed(queue, lambda obj: [key_of(obj)])
    for each in others:
        if each.source.kind == kinds.JOB:
            each.feed(queue, _owner)
        if each.source.kind == kinds.SLURMCLUSTER:
            each.feed(
                queue,
                lambda obj: (
                    map(key_of, stores.backups.by(CLUSTER, key_of(obj))) if obj.metadata.deletion_timestamp else ()
                ),
            )
    return [made]


def _owner(job: Any) -> Iterable[Key]:
    owners = job.metadata.owner_references
    return [(job.metadata.namespace, each.name) for each in owners if each.kind == kinds.SLURMBACKUP.kind]
