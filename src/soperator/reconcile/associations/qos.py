"""Converts a SlurmQOS to a `Tenant`: the QOS that the shared reconciler keeps in Slurm's database."""

from collections.abc import Sequence
from dataclasses import replace

from soperator.api.associations import SlurmQOSSpec
from soperator.api.base import Problem
from soperator.kube.views import Custom
from soperator.policy.associations import qos
from soperator.policy.associations.accounts import mark, shared_mark
from soperator.policy.associations.from_spec import qos as wanted_qos
from soperator.policy.validation import tenant_problems
from soperator.reconcile.associations.reconciler import Tenant
from soperator.reconcile.cache.decode import read_qos


def tenant(obj: Custom) -> Tenant | Sequence[Problem]:
    """Return the tenant, or the problems of the object."""
    spec, meta = read_qos(obj), obj.metadata
    if not isinstance(spec, SlurmQOSSpec):
        return spec
    if problems := tenant_problems(meta.name, spec):
        return problems
    wanted = wanted_qos(spec, meta.name, shared_mark(spec.cluster, meta.namespace, meta.name))
    wanted = replace(wanted, former=mark(meta.namespace, meta.name))
    return Tenant(
        name=wanted.name,
        cluster=(meta.namespace, spec.cluster),
        deletes=spec.deletion_policy == "Delete",
        applied={"": frozenset(wanted.fields)} if wanted.fields else {},
        squeue=["-q", wanted.name],
        plan=lambda database, applied, _: qos.plan(wanted, database, applied.get("", frozenset())),
        undo=lambda database, jobs: qos.undo(wanted, database, jobs),
        tell=lambda _: {"qos": wanted.name},
        shared=wanted.name,
    )
