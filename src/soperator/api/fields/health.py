"""Health checks, as the spec of a SlurmCluster has them."""

import re
from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import Model, Opaque
from soperator.api.common import NodeSetName
from soperator.api.fields.change import Duration, Share
from soperator.api.validation.cel import Rule

CheckName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
#: Empty, or a name with a domain. Types without a domain are Kubernetes' own: NetworkUnavailable, for one, keeps all pods off a Node.
_CONDITION = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
)
_OF_KUBERNETES = r"(^|[.])(kubernetes|k8s)[.]io/"
OnFailure = Literal["Report", "Drain", "Replace"]


class CustomCheck(Model):
    """A site's own quick check: a command, a script, or a probe with the rules that fail it. One of `run`, `script` and `probe` is set."""

    name: CheckName = Field(description="Its name; no shipped check has it.")
    description: str = Field(default="", max_length=500, description="Why it is there, for people.")
    run: list[Annotated[str, Field(max_length=1024)]] = Field(
        default_factory=list,
        max_length=64,
        description="A program in slurmd's container, by its path, and its arguments. Exit code 0 passes. Exit code 1 with a sentence on standard "
        "output fails, and the sentence is the reason. Every other code means that the check itself is broken. The jail is at /mnt/jail/root.",
    )
    script: str = Field(default="", max_length=16384, description="The same as a script for /bin/sh.")
    probe: str = Field(
        default="",
        max_length=63,
        description="What to measure, as the shipped checks do: filesystem, memory, processes and others.",
    )
    parameters: Opaque = Field(default_factory=dict, description="What the probe needs, such as paths.")
    fail_when: list[Opaque] = Field(
        default_factory=list,
        max_length=32,
        description="When a reading of the probe fails: entries with when (value, operator, threshold) and message, the sentence.",
    )
    on_failure: OnFailure = Field(default="Drain", description="What follows: see health.onFailure.")
    failure_threshold: Annotated[int, Field(ge=1, le=100)] = Field(
        default=2, description="The number of failures in a row after which it counts as failing."
    )
    success_threshold: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=3, description="The number of passes in a row after which it counts as well again."
    )
    timeout: Annotated[str, Field(pattern=r"^[1-6]s$")] = Field(
        default="3s",
        description="How long it may take; then it is killed with all that it started, and counts as broken.",
    )
    min_interval: Duration = Field(default="0s", description="How often at most; 0s means in each interval.")
    node_sets: list[NodeSetName] = Field(
        default_factory=list, max_length=64, description="NodeSets whose nodes run it; empty means all."
    )


class ReplaceSpec(Model):
    """What happens to a machine on which a check with onFailure Replace keeps failing."""

    after: Duration = Field(
        default="10m",
        description="How long the node must have been out, its check failing and no job on it, before its pod moves.",
    )
    condition: Annotated[str, Field(pattern=_CONDITION, max_length=316)] = Field(
        default="",
        description="Type of a condition that the Kubernetes Node then gets, with status True, for programs or people that repair or "
        "replace machines: a name "
        "behind your own domain, such as example.com/Bad, for those without one and those of kubernetes.io and k8s.io are Kubernetes'. The Node is "
        "cordoned in any case, and the annotation slurm.soperator.io/unhealthy has the evidence. The chart's replaceMachines must be true.",
    )


class HealthSpec(Model):
    """Quick checks that every worker runs beside its jobs."""

    mode: Literal["Off", "Report", "Drain"] = Field(
        default="Off",
        description=(
            "Off: none run. Report: they run, and what they find is reported. Drain: a node that fails one takes no more jobs until it passes again; "
            "jobs that run go on. Changing it from or to Off rolls the workers."
        ),
    )
    interval: Annotated[str, Field(pattern=r"^([1-9][0-9]{1,2}s|[1-9][0-9]?m)$")] = Field(
        default="60s", description="How often they run, from 10s to 99m."
    )
    prolog_epilog: bool = Field(
        default=False,
        description=(
            "Whether the checks marked for it on their page also run before each job starts on a node and after it has ended "
            "(Prolog and Epilog); a job "
            "waits for the former. With Drain a batch job goes back into the queue, once, when one of them has just failed on the node where "
            "it would begin."
        ),
    )
    max_unhealthy: Share = Field(
        default="10%",
        description="How many nodes of each NodeSet may be out through checks at once, as a number or a share of its replicas, at least 1 unless it "
        "is 0. When more fail, the others stay in service, and an event says so.",
    )
    max_unhealthy_of_cluster: Share = Field(
        default="20%",
        description="How many nodes of the whole cluster may be out through checks at once, beside maxUnhealthy, as a number or a share of the nodes "
        "that Slurm knows, at least 1 unless it is 0: it bounds what a bad check does to many small NodeSets.",
    )
    disabled_checks: list[CheckName] = Field(
        default_factory=list, max_length=64, description="Checks that are left out, by name."
    )
    thresholds: dict[str, dict[str, float]] = Field(
        default_factory=dict,
        max_length=64,
        description="Other thresholds than the shipped ones: check, value, number. The reference of checks has the values that each "
        "compares with one.",
    )
    thresholds_by_machine_type: dict[str, dict[str, float]] = Field(
        default_factory=dict,
        max_length=64,
        description="Other thresholds by machine type than the shipped ones, or of further types: a part of the name by which the device "
        "calls itself, threshold, number.",
    )
    on_failure: dict[str, OnFailure] = Field(
        default_factory=dict,
        max_length=64,
        description="What happens when a check fails, if it is to differ from the check's own setting. Report: it is reported. Drain: the node "
        "takes no more jobs until the check passes again. Replace: it is drained, and what replace says follows if it stays so.",
    )
    replace: ReplaceSpec = Field(default_factory=ReplaceSpec, description="What replaces a bad machine.")
    custom_checks: list[CustomCheck] = Field(default_factory=list, max_length=32, description="Checks of one's own.")


REPLACE = (
    Rule(
        cel=f"!has(self.condition) || !self.condition.matches('{_OF_KUBERNETES}')",
        message="condition must not be one of Kubernetes' own, which other programs act upon for all pods of the Node: write a name behind your own "
        "domain, such as example.com/Bad",
        holds=lambda replace: re.search(_OF_KUBERNETES, replace.condition) is None,
        field="condition",
    ),
)
