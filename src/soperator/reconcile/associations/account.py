"""Converts a SlurmAccount to a `Tenant`: the account that the shared reconciler keeps in Slurm's database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soperator.api.associations import SlurmAccountSpec
from soperator.api.base import Problem
from soperator.kube.views import Custom
from soperator.policy.associations.accounts import (
    Account,
    mark,
    plan,
    undo,
)
from soperator.policy.associations.from_spec import account
from soperator.policy.validation import tenant_problems
from soperator.reconcile.associations.reconciler import Tenant
from soperator.reconcile.cache.decode import field, named, read_account
from soperator.reconcile.context import Operator
from soperator.slurm.sacctmgr import AssociationTable


@dataclass(frozen=True)
class Accounts:
    """Reads a SlurmAccount together with the other accounts of its cluster, because their parents refer to each other."""

    operator: Operator

    def __call__(self, obj: Custom) -> Tenant | Sequence[Problem]:
        """Return the tenant, or the problems of the object."""
        spec, meta = read_account(obj), obj.metadata
        if not isinstance(spec, SlurmAccountSpec):
            return spec
        if problems := tenant_problems(meta.name, spec):
            return problems
        wanted = account(spec, meta.name, mark(meta.namespace, meta.name))
        key = (meta.namespace, spec.cluster)
        return Tenant(
            name=wanted.name,
            cluster=key,
            deletes=spec.deletion_policy == "Delete",
            applied=wanted.applied,
            squeue=["-A", wanted.name],
            plan=lambda database, applied, jobs: plan(wanted, database, self._above(key), applied, jobs),
            undo=lambda database, jobs: undo(wanted, database, jobs),
            tell=lambda database: _status_fields(wanted, database, self.operator.status.mine(obj)),
        )

    def _above(self, cluster: tuple[str, str]) -> Mapping[str, str]:
        """Return the desired parent of each account of the cluster, by the account's name; only for accounts whose object names a parent."""
        found = [each for each in self.operator.stores.accounts.by("cluster", cluster) if named(each) == cluster[1]]
        said = {(field(each, "name") or each.metadata.name): field(each, "parent") for each in found}
        return {name: parent for name, parent in said.items() if parent}


def _status_fields(wanted: Account, database: AssociationTable | None, status: Mapping[str, Any]) -> dict[str, Any]:
    if database is None:
        return {"account": wanted.name, "users": status.get("users", "")}
    there = {each.user for each in database.associations if each.account == wanted.name and not each.partition}
    return {"account": wanted.name, "users": f"{len(there & wanted.users.keys())}/{len(wanted.users)}"}
