"""The fields of Services for clients outside: one model for each role, with the names of Kubernetes' ServiceSpec because people know them."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import Model, Problem
from soperator.api.validation.cel import Rule, cel_same

_LABEL_VALUE = r"^([A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?)?$"
_LABEL_KEY = r"^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$"
#: Prefixes of labels and annotations by which the operator and other tools find the object again.
_OURS = ("slurm.soperator.io/", "app.kubernetes.io/")


class ExposedService(Model):
    """The Service by which clients reach a role of the cluster."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        default="ClusterIP", description="Type of the Service."
    )
    port: Annotated[int, Field(ge=1, le=65535)] = Field(description="Port of the Service.")
    node_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=0, description="Fixed NodePort; 0 lets Kubernetes choose."
    )
    annotations: dict[str, Annotated[str, Field(max_length=8192)]] = Field(
        default_factory=dict, max_length=64, description="Annotations of the Service, for a cloud's load balancer."
    )
    labels: dict[str, Annotated[str, Field(pattern=_LABEL_VALUE, max_length=63)]] = Field(
        default_factory=dict,
        max_length=64,
        description="Labels of the Service in addition to the operator's, by which address pools and DNS programs select it.",
    )
    load_balancer_source_ranges: list[str] = Field(
        default_factory=list, max_length=64, description="Client networks that the load balancer admits."
    )
    load_balancer_class: Annotated[str, Field(pattern=_LABEL_KEY, max_length=253)] | None = Field(
        default=None,
        description="Class of the load balancer. Not set: the default of Kubernetes. It cannot change while the type is LoadBalancer.",
    )
    external_traffic_policy: Literal["Cluster", "Local"] = Field(
        default="Cluster",
        description="Cluster: every Node accepts connections. Local: only Nodes with such a pod do, and the pod receives the client's address.",
    )
    session_affinity: Literal["ClientIP", "None"] = Field(
        default="None",
        description="ClientIP: a client reaches the pod of its last connection. None: it reaches any pod.",
    )
    ip_family_policy: Literal["SingleStack", "PreferDualStack", "RequireDualStack"] | None = Field(
        default=None,
        description="Whether the Service has IPv4 and IPv6 addresses. Not set: the default of Kubernetes.",
    )
    ip_families: list[Literal["IPv4", "IPv6"]] = Field(
        default_factory=list,
        max_length=2,
        description="Address families of the Service. The first cannot change. Not set: those of the Kubernetes cluster.",
    )


class LoginService(ExposedService):
    """The Service by which users reach the login nodes."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        default="NodePort", description="Type of the Service for SSH."
    )
    port: Annotated[int, Field(ge=1, le=65535)] = Field(default=22, description="Port of the Service.")
    session_affinity: Literal["ClientIP", "None"] = Field(
        default="ClientIP",
        description=(
            "ClientIP: a client reaches the login node of its last session, where its tmux and editor server run. None: it reaches any login node."
        ),
    )


class RestService(ExposedService):
    """The Service by which users reach slurmrestd."""

    port: Annotated[int, Field(ge=1, le=65535)] = Field(default=6820, description="Port of the Service.")


SERVICE = (
    Rule(
        cel="self.type != 'ClusterIP' || self.nodePort == 0",
        message="nodePort needs type NodePort or LoadBalancer: choose one of them, or remove nodePort",
        holds=lambda service: service.type != "ClusterIP" or service.node_port == 0,
        field="node_port",
    ),
    Rule(
        cel="self.type != 'ClusterIP' || self.externalTrafficPolicy != 'Local'",
        message=(
            "externalTrafficPolicy Local needs type NodePort or LoadBalancer: choose one of them, or remove externalTrafficPolicy"
        ),
        holds=lambda service: service.type != "ClusterIP" or service.external_traffic_policy != "Local",
        field="external_traffic_policy",
    ),
    Rule(
        cel="self.type == 'LoadBalancer' || size(self.?loadBalancerSourceRanges.orValue([])) == 0",
        message="loadBalancerSourceRanges needs type LoadBalancer: choose it, or remove loadBalancerSourceRanges",
        holds=lambda service: service.type == "LoadBalancer" or not service.load_balancer_source_ranges,
        field="load_balancer_source_ranges",
    ),
    Rule(
        cel="self.type == 'LoadBalancer' || !has(self.loadBalancerClass)",
        message="loadBalancerClass needs type LoadBalancer: choose it, or remove loadBalancerClass",
        holds=lambda service: service.type == "LoadBalancer" or service.load_balancer_class is None,
        field="load_balancer_class",
    ),
    Rule(
        cel=f"self.type != 'LoadBalancer' || oldSelf.type != 'LoadBalancer' || ({cel_same('loadBalancerClass')})",
        message="loadBalancerClass cannot be changed while the type is LoadBalancer, because Kubernetes forbids it: choose another type first",
        field="load_balancer_class",
    ),
    Rule(
        cel="!has(self.ipFamilies) || size(self.ipFamilies) < 2 || self.ipFamilies[0] != self.ipFamilies[1]",
        message="ipFamilies has the same family twice: remove one",
        holds=lambda service: len(set(service.ip_families)) == len(service.ip_families),
        field="ip_families",
    ),
    Rule(
        cel="!has(self.ipFamilies) || size(self.ipFamilies) < 2 || (has(self.ipFamilyPolicy) && self.ipFamilyPolicy != 'SingleStack')",
        message="ipFamilies with two families needs ipFamilyPolicy PreferDualStack or RequireDualStack: choose one, or name one family",
        holds=lambda service: len(service.ip_families) < 2 or service.ip_family_policy not in (None, "SingleStack"),
        field="ip_families",
    ),
)


def service_problems(path: str, service: ExposedService) -> Iterator[Problem]:
    """Yield the problems of labels and annotations that Kubernetes would refuse, or that belong to the operator."""
    for field, said in (("labels", service.labels), ("annotations", service.annotations)):
        for key in said:
            if key.startswith(_OURS):
                remedy = "the operator identifies the Service by labels and annotations with this prefix: choose another prefix"
                yield Problem(f"{path}.{field}", key[:80], remedy)
            elif not re.fullmatch(_LABEL_KEY, key if field == "labels" else key.lower()) or len(key) > 253 + 64:
                remedy = (
                    "write a key such as example.com/pool: letters, digits, '-', '_', '.', and before the '/' a domain"
                )
                yield Problem(f"{path}.{field}", key[:80], remedy)
