"""The fields for health checks in the spec of a SlurmCluster, so that a site can add, tune and disable checks without a new image."""

import re
from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import DecimalNumber, Model, Opaque
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

    name: CheckName = Field(description="Name of the check. It must differ from all shipped checks.")
    description: str = Field(default="", max_length=500, description="Purpose of the check, for people.")
    run: list[Annotated[str, Field(max_length=1024)]] = Field(
        default_factory=list,
        max_length=64,
        description="Path of a program in slurmd's container, and its arguments. Exit code 0: the node passes. Exit code 1 with "
        "a sentence on standard output: it fails, with the sentence as the reason. Any other code: the check itself "
        "is broken. The jail is at /mnt/jail/root.",
    )
    script: str = Field(default="", max_length=16384, description="A script for /bin/sh, with the exit codes of run.")
    probe: str = Field(
        default="",
        max_length=63,
        description="A probe of the shipped checks, such as filesystem, memory or processes.",
    )
    parameters: Opaque = Field(default_factory=dict, description="Parameters of the probe, such as paths.")
    fail_when: list[Opaque] = Field(
        default_factory=list,
        max_length=32,
        description="Rules that fail a reading of the probe. Each has when (value, operator, threshold) and message (the reason). "
        "A threshold is an integer, or a decimal number in quotes.",
    )
    on_failure: OnFailure = Field(default="Drain", description="What follows: see health.onFailure.")
    failure_threshold: Annotated[int, Field(ge=1, le=100)] = Field(
        default=2, description="Number of failures in a row after which the check is failing."
    )
    success_threshold: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=3, description="Number of passes in a row after which the check has recovered."
    )
    timeout: Annotated[str, Field(pattern=r"^[1-6]s$")] = Field(
        default="3s",
        description="Timeout of a run. Then the check and its child processes are killed, and it counts as broken.",
    )
    min_interval: Duration = Field(default="0s", description="Minimum time between two runs. 0s: in each interval.")
    node_sets: list[NodeSetName] = Field(
        default_factory=list, max_length=64, description="NodeSets whose nodes run the check. Empty: all."
    )


class ReplaceSpec(Model):
    """The consequences for a machine on which a check with onFailure Replace keeps failing."""

    after: Duration = Field(
        default="10m",
        description="How long the node must be drained, with a failing check and no job, before its pod moves to another machine.",
    )
    condition: Annotated[str, Field(pattern=_CONDITION, max_length=316)] = Field(
        default="",
        description="Type of a condition that the Kubernetes Node then gets, with status True, for programs or people that "
        "repair or replace machines. Use a name with your own domain, such as example.com/Bad, because names without "
        "a domain and those of kubernetes.io and k8s.io belong to Kubernetes. In any case the operator cordons the "
        "Node and writes the evidence to the annotation slurm.soperator.io/unhealthy. The chart's value "
        "replaceMachines must be true.",
    )


class CheckThresholds(Model):
    """Thresholds of one shipped check, by the value that the check compares with them."""

    check: CheckName = Field(description="Name of the shipped check.")
    values: dict[str, DecimalNumber] = Field(
        max_length=32,
        description="Thresholds by value: an integer, or a decimal number in quotes, in the unit of the value.",
    )


class MachineTypeThresholds(Model):
    """Thresholds of one machine type, by name."""

    machine_type: Annotated[str, Field(min_length=1, max_length=128)] = Field(
        description="A part of the device's model name."
    )
    values: dict[str, DecimalNumber] = Field(
        max_length=64,
        description="Thresholds by name: an integer, or a decimal number in quotes, in the unit of the reference.",
    )


class HealthSpec(Model):
    """Quick checks that every worker runs beside its jobs."""

    mode: Literal["Off", "Report", "Drain"] = Field(
        default="Off",
        description=(
            "Off: no checks run. Report: failures are only reported. Drain: a node that fails a check is drained until "
            "it passes again; running jobs continue. A change from or to Off rolls the workers."
        ),
    )
    interval: Annotated[str, Field(pattern=r"^([1-9][0-9]{1,2}s|[1-9][0-9]?m)$")] = Field(
        default="60s", description="Time between two rounds of checks, from 10s to 99m."
    )
    prolog_epilog: bool = Field(
        default=False,
        description=(
            "Whether checks that are marked for it in the reference also run in Prolog and Epilog of each job on a node. "
            "A job waits for its Prolog. With Drain, a batch job is requeued once if a check has just failed on the node "
            "where it would start."
        ),
    )
    max_unhealthy: Share = Field(
        default="10%",
        description="Maximum number of nodes of each NodeSet that checks may drain at once: a number, or a percentage of its "
        "replicas (at least 1 unless 0). If more fail, the others stay in service, and an Event reports it.",
    )
    max_unhealthy_of_cluster: Share = Field(
        default="20%",
        description="Maximum number of nodes of the whole cluster that checks may drain at once, in addition to maxUnhealthy: a "
        "number, or a percentage of the nodes that Slurm knows (at least 1 unless 0). It limits the effect of a "
        "wrong check on many small NodeSets.",
    )
    disabled_checks: list[CheckName] = Field(
        default_factory=list, max_length=64, description="Names of checks that do not run."
    )
    thresholds: list[CheckThresholds] = Field(
        default_factory=list,
        max_length=64,
        description="Thresholds that replace the shipped ones, by check. The reference of checks lists the values of "
        "each check that have a threshold.",
    )
    thresholds_by_machine_type: list[MachineTypeThresholds] = Field(
        default_factory=list,
        max_length=64,
        description="Thresholds by machine type that replace or extend the shipped ones.",
    )
    on_failure: dict[str, OnFailure] = Field(
        default_factory=dict,
        max_length=64,
        description="Consequence of a failure, by check, instead of the check's own setting. Report: the failure is reported. "
        "Drain: the node is drained until the check passes again. Replace: the node is drained, and replaced as in "
        "replace if it does not recover.",
    )
    replace: ReplaceSpec = Field(default_factory=ReplaceSpec, description="How a bad machine is replaced.")
    custom_checks: list[CustomCheck] = Field(default_factory=list, max_length=32, description="Checks of one's own.")


REPLACE = (
    Rule(
        cel=f"!has(self.condition) || !self.condition.matches('{_OF_KUBERNETES}')",
        message="condition must not be one of Kubernetes' own, because other programs react to those for all pods of the "
        "Node: use a name with your own domain, such as example.com/Bad",
        holds=lambda replace: re.search(_OF_KUBERNETES, replace.condition) is None,
        field="condition",
    ),
)
