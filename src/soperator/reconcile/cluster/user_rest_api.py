"""Reconciles slurmrestd for users: its tokens, and the condition RestServed. No other condition depends on it."""

from dataclasses import dataclass

from soperator.kube import kinds
from soperator.kube.errors import NotFound
from soperator.kube.objects import Secret
from soperator.policy.cluster import certificate
from soperator.reconcile import pod_status
from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.context import Operator
from soperator.reconcile.keys import user_tokens
from soperator.render.cluster.user_rest_api import ROLE
from soperator.render.parts import names
from soperator.render.parts.model import Cluster
from soperator.runtime.cache.store import Key
from soperator.runtime.status import ReportedCondition

#: The uid and version of the certificate's Secret, and what was read of it.
_CERTIFICATE: Slot[Key, tuple[str, certificate.Certificate]] = per_cluster("the certificate of users' REST")
#: Seconds until a certificate is checked again, because it expires.
_EVERY = 3600.0


@dataclass(frozen=True)
class UserRestStatus:
    """The state of slurmrestd for users: a reason, a message if there is a fault, and the seconds until the next check.

    Without a reason it is off.
    """

    reason: str = ""
    why: str = ""
    again: float = 0.0


async def settle(operator: Operator, cluster: Cluster) -> UserRestStatus:
    """Renew the tokens, and return the state."""
    said = cluster.spec.rest.users
    kept = await user_tokens.keep(operator, cluster)
    if said is None:
        return UserRestStatus()
    secret = said.tls.secret_name
    bad = await _fault(operator, cluster, secret) if secret else ""
    again = min(kept.again or _EVERY, _EVERY)
    role = pod_status.role(operator.stores.role_pods(cluster.key, ROLE), said.replicas, operator.stores.nodes)
    if bad:
        return UserRestStatus("Certificate", bad, again)
    if not operator.stores.children[kinds.DEPLOYMENT].get(cluster.namespace, names.rest_users(cluster.name)):
        return UserRestStatus(
            "NotReady",
            "users' slurmrestd starts when slurmctld limits the lifetime of their tokens: see ConfigApplied",
            again,
        )
    if not role.ready:
        return UserRestStatus("NotReady", f"users' slurmrestd: {role.trouble}", again)
    if kept.why:
        return UserRestStatus("TokensNotKept", kept.why, again)
    if role.is_short:
        return UserRestStatus("Degraded", f"users' slurmrestd: {role} pods are ready: {role.trouble}", again)
    return UserRestStatus("Served", "", again)


async def _fault(operator: Operator, cluster: Cluster, name: str) -> str:
    """Return the fault of the certificate in a Secret; empty if it is valid.

    The content is read once per resourceVersion, and only its times stay in memory.
    """
    meta = operator.stores.children[kinds.SECRET].get(cluster.namespace, name)
    if meta is None:
        return f"Secret {name} does not exist: create it, with the type kubernetes.io/tls"
    version = f"{meta.metadata.uid}/{meta.metadata.resource_version}"
    known = operator.memory(_CERTIFICATE).get(cluster.key)
    if known is None or known[0] != version:
        try:
            found = await operator.api.get(kinds.SECRET, Secret, cluster.namespace, name)
        except NotFound:
            return f"Secret {name} does not exist: create it, with the type kubernetes.io/tls"
        known = operator.memory(_CERTIFICATE)[cluster.key] = (version, certificate.read(found.data))
    return certificate.fault(name, known[1], operator.wall())


def condition(look: UserRestStatus) -> list[ReportedCondition]:
    """Return the condition RestServed; none if slurmrestd for users is off."""
    if not look.reason:
        return []
    return [ReportedCondition("RestServed", "False" if look.why else "True", look.reason, look.why)]
