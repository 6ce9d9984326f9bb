"""Connects SlurmAccounts and SlurmQOS to the operator: their informers, queues and reconcilers."""

from collections.abc import Callable

from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.views import Custom
from soperator.reconcile.associations.account import Accounts
from soperator.reconcile.associations.qos import tenant
from soperator.reconcile.associations.reconciler import TenancyControl
from soperator.reconcile.associations.sacctmgr_client import SacctmgrClient
from soperator.reconcile.cache.decode import named
from soperator.reconcile.cache.informers import CLUSTER, Stores
from soperator.reconcile.context import Operator
from soperator.runtime.cache.informer import Informer, InformerSource
from soperator.runtime.cache.store import Changed, Store, key_of
from soperator.runtime.workqueue import Queue

MISSING = (
    "upgrade the chart soperator-crds, which has its definition; until then everything else works, and accounts are "
    "managed only with sacctmgr"
)


def make_controls(operator: Operator) -> tuple[TenancyControl, TenancyControl]:
    """Return the reconcilers of SlurmAccounts and of SlurmQOS, which share their reads of each database."""
    ledger, stores = SacctmgrClient(operator.pod_exec), operator.stores
    return (
        TenancyControl(operator, ledger, kinds.SLURMACCOUNT, stores.accounts, Accounts(operator)),
        TenancyControl(operator, ledger, kinds.SLURMQOS, stores.qos, tenant),
    )


def make_reflectors(
    api: Api, stores: Stores, namespace: str | None, accounts: Queue, qos: Queue
) -> list[Informer[Custom]]:
    """Return the informers that fill the stores of both kinds and queue their passes."""
    found = []
    for kind, store, queue in ((kinds.SLURMACCOUNT, stores.accounts, accounts), (kinds.SLURMQOS, stores.qos, qos)):
        each = Informer(api, InformerSource(kind, Custom, namespace, missing=MISSING), store)
        each.feed(queue, lambda obj: [key_of(obj)])
        each.listen(_wake_others(store, queue))
        found.append(each)
    return found


def _wake_others(store: Store[Custom], queue: Queue) -> Callable[[Changed[Custom]], None]:
    """Wakes the other objects of a cluster when one is created or deleted, because two may claim one name, and one may be the parent of another."""

    def wake(change: Changed[Custom]) -> None:
        if change.old is None or change.new is None:
            for obj in filter(None, (change.old, change.new)):
                for other in store.by(CLUSTER, (obj.metadata.namespace, named(obj))):
                    queue.add(key_of(other))

    return wake
