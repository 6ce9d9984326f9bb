"""The fields for slurmrestd in the spec of a SlurmCluster: the operator's own, and a separate one for users, whose load must not block the
operator.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from soperator.api.base import DNS_NAME, Model, Opaque, Problem
from soperator.api.common import POD_TEMPLATE, Resources, Scheduling
from soperator.api.fields.change import Duration, seconds
from soperator.api.fields.service import RestService
from soperator.api.validation.cel import Rule

#: Users who may do everything in Slurm: a token for them is not stored in a Secret, nor created by accident.
ADMINISTRATORS = ("root", "slurm")
#: Names that useradd and directories accept, and no others: the name is used in a token, and in a command.
USER = r"^[A-Za-z_][A-Za-z0-9_.@-]*$"
#: The bounds of a renewed token's life, in seconds: short enough to limit the damage of a leak, long enough for a renewal in time.
_SHORTEST, _LONGEST = 600, 7 * 86400


class RestTls(Model):
    """TLS, which nginx in front of slurmrestd terminates."""

    secret_name: Annotated[str, Field(pattern=DNS_NAME, max_length=253)] = Field(
        default="",
        description=(
            "Name of a Secret of type kubernetes.io/tls, as cert-manager writes it; a new certificate takes effect "
            "without an interruption. Empty: plain HTTP, for an ingress in front of it."
        ),
    )


class KeptToken(Model):
    """A user's token in a Secret, which the operator renews."""

    user: Annotated[str, Field(pattern=USER, min_length=1, max_length=64)] = Field(
        description="User of the token: a user of the jail or of the directory, but not an administrator of Slurm."
    )
    secret_name: Annotated[str, Field(pattern=DNS_NAME, min_length=1, max_length=253)] = Field(
        description="Name of the Secret, with the entries token and user. The operator deletes the token when this entry is removed from the list."
    )
    lifetime: Duration = Field(
        default="1h", description="Lifetime of a token, from 10m to 168h. It is renewed after half of this time."
    )


class RestUsers(Model):
    """slurmrestd for users, separate from the operator's."""

    replicas: Annotated[int, Field(ge=1, le=20)] = Field(default=2, description="Number of pods.")
    service: RestService = Field(default_factory=RestService, description="How users reach it.")
    tls: RestTls = Field(default_factory=RestTls, description="TLS.")
    allow_from: list[Opaque] = Field(
        default_factory=list,
        max_length=16,
        description=(
            "Clients that may connect, as peers of a Kubernetes NetworkPolicy. Empty: every pod, and with a service.type "
            "other than ClusterIP every address. The cluster's own pods always may."
        ),
    )
    max_lifetime: Duration = Field(
        default="168h", description="Maximum lifetime of a user's token, including those of `scontrol token`."
    )
    tokens: list[KeptToken] = Field(
        default_factory=list, max_length=64, description="Tokens in Secrets, for programs that run in this namespace."
    )
    resources: Resources = Field(
        default_factory=Resources, description="Requests and limits of slurmrestd in each pod."
    )
    scheduling: Scheduling = Field(default_factory=Scheduling, description="Where the pods may run.")
    pod_template: Opaque = Field(default_factory=dict, description=POD_TEMPLATE)


class RestSpec(Model):
    """The slurmrestd with which the operator observes and drains Slurm nodes."""

    replicas: Annotated[int, Field(ge=1, le=10)] = Field(default=1, description="Number of slurmrestd pods.")
    resources: Resources = Field(default_factory=Resources, description="Requests and limits of slurmrestd.")
    scheduling: Scheduling = Field(default_factory=Scheduling, description="Where slurmrestd may run.")
    pod_template: Opaque = Field(default_factory=dict, description=POD_TEMPLATE)
    users: RestUsers | None = Field(
        default=None, description="A slurmrestd for users; it runs if this is set. {}: all defaults."
    )

    @property
    def users_or_default(self) -> RestUsers:
        """The slurmrestd for users; all defaults if the spec has none."""
        return self.users or RestUsers()


REST_USERS = (
    Rule(
        cel="self.service.type != 'NodePort' || (has(self.tls.secretName) && self.tls.secretName != '')",
        message="tokens would cross the network unencrypted: set tls.secretName, or choose another service.type",
        holds=lambda users: users.service.type != "NodePort" or bool(users.tls.secret_name),
        field="service",
    ),
)


def rest_problems(users: RestUsers) -> Iterator[Problem]:
    """Yield the problems of the tokens that a schema cannot express."""
    path, longest = "spec.rest.users", seconds(users.max_lifetime)
    if not _SHORTEST <= longest <= _LONGEST:
        yield Problem(f"{path}.maxLifetime", users.max_lifetime, "set a time from 10m to 168h")
    seen: set[str] = set()
    for number, each in enumerate(users.tokens):
        here = f"{path}.tokens[{number}]"
        if each.secret_name in seen:
            yield Problem(f"{here}.secretName", each.secret_name, "another entry has this Secret: name another Secret")
        seen.add(each.secret_name)
        if each.user in ADMINISTRATORS:
            remedy = "this user has all rights in Slurm: name a user with only the rights that the program needs"
            yield Problem(f"{here}.user", each.user, remedy)
        if not _SHORTEST <= seconds(each.lifetime) <= longest:
            yield Problem(
                f"{here}.lifetime", each.lifetime, f"set a time from 10m to {users.max_lifetime}, which is maxLifetime"
            )
