"""A SlurmAccount as a tenant of Slurm's database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soperator.api.base import Problem
from soperator.api.tenancy import SlurmAccountSpec
from soperator.control.operator import Operator
from soperator.control.read import field, named, read_account
from soperator.control.tenancy import Tenant
from soperator.decide.admission import tenant_problems
from soperator.decide.tenancy import Account, mark, plan, undo
from soperator.decide.wishes import account
from soperator.kube.views import Custom
from soperator.slurm.sacctmgr import Database


@dataclass(frozen=True)
class Accounts:
    """Reads SlurmAccounts beside those of the same cluster."""

    operator: Operator

    def __call__(self, obj: Custom) -> Tenant | Sequence[Problem]:
        """The tenant, or what is wrong with the object."""
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
            deletes=spec.deletion == "Delete",
            applied=wanted.applied,
            squeue=["-A", wanted.name],
            plan=lambda database, applied, jobs: plan(wanted, database, self._above(key), applied, jobs),
            undo=lambda database, jobs: undo(wanted, database, jobs),
            tell=lambda database: _told(wanted, database, self.operator.status.mine(obj)),
        )

    def _above(self, cluster: tuple[str, str]) -> Mapping[str, str]:
        """The wanted parent of each account of the cluster whose object says one."""
        found = [each for each in self.operator.stores.accounts.by("cluster", cluster) if named(each) == cluster[1]]
        said = {(field(each, "name") or each.metadata.name): field(each, "parent") for each in found}
        return {name: parent for name, parent in said.items() if parent}


def _told(wanted: Account, database: Database | None, status: Mapping[str, Any]) -> dict[str, Any]:
    if database is None:
        return {"account": wanted.name, "users": status.get("users", "")}
    there = {each.user for each in database.associations if each.account == wanted.name and not each.partition}
    return {"account": wanted.name, "users": f"{len(there & wanted.users.keys())}/{len(wanted.users)}"}
