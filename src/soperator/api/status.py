"""The status subresources of our kinds.

Counts are integers. Where `kubectl get` shows "2/3" (ready of desired), that text is stored beside them, because a printer column cannot combine two
fields. `why` has the message that `kubectl get` shows while something is not available. Fields that the operator reads back (`config`, `refilled`,
`images`) record its actions, never the present state.
"""

from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import Model
from soperator.api.fields.upgrade import ImagesRecord, RenderedNote

Count = Annotated[str, Field(max_length=32)]
Sentence = Annotated[str, Field(max_length=32768)]

#: Type and reason of conditions that are False by the user's choice: jobs.limits Sampled, which is the default, and None; a newer operator.
CHOSEN = frozenset({("LimitsEnforced", "Sampled"), ("LimitsEnforced", "Off"), ("UpToDate", "Held")})


class Condition(Model):
    """One aspect of an object's state, as in every Kubernetes kind."""

    type: str = Field(min_length=1, max_length=316, description="Which aspect, for example Available.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(min_length=1, max_length=1024, description="One word for programs.")
    message: Sentence = Field(description="One sentence for people: what is so, and what to do about it.")
    last_transition_time: str = Field(
        description="When status changed last.", json_schema_extra={"format": "date-time"}
    )
    observed_generation: int = Field(
        default=0, ge=0, description="Generation of the spec that this condition speaks of."
    )


ObservedGeneration = Annotated[
    int,
    Field(ge=-1, description="Generation of the spec that this status speaks of; -1 before the operator's first look."),
]


class KeyVersion(Model):
    """The identity of the keys in a Secret."""

    digest: str = Field(default="", max_length=64, description="What its files add up to.")
    request: str = Field(
        default="", max_length=63, description="The last request of spec.auth.rotateRequest that changed it."
    )
    stage: str = Field(default="", max_length=16, description="How far that is; empty when it is carried out.")


class KeyRotation(Model):
    """The progress of the last rotation of a key."""

    request: str = Field(
        default="", max_length=63, description="The last request of spec.auth.rotateRequest that changed it."
    )
    stage: str = Field(default="", max_length=16, description="How far that is; empty when it is carried out.")
    next: KeyVersion | None = Field(
        default=None, description="What is about to be written, or was, if the operator ended."
    )


class RoleStatus(Model):
    """How many pods of one role there are."""

    replicas: int = Field(default=0, ge=0, description="Pods that should be there.")
    ready_replicas: int = Field(default=0, ge=0, description="Pods that are ready.")
    summary: Count = Field(default="", description="Both, as kubectl get shows them: 1/1.")


class SlurmClusterStatus(Model):
    """The state of the cluster, as the operator last observed it."""

    observed_generation: ObservedGeneration = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=32,
        description="Available first, then Ready; the others say parts. The reference page of conditions has all of them, with their reasons.",
    )
    controller: RoleStatus = Field(default_factory=RoleStatus, description="slurmctld.")
    login: RoleStatus = Field(default_factory=RoleStatus, description="Login nodes.")
    rest: RoleStatus = Field(default_factory=RoleStatus, description="The operator's slurmrestd.")
    workers: RoleStatus = Field(
        default_factory=RoleStatus,
        description="Workers of all NodeSets; ready are those that Slurm can give jobs to. Nodes that sleep do not count.",
    )
    address: str = Field(default="", max_length=1024, description="How to reach the login nodes: the ssh command.")
    config: str = Field(
        default="", max_length=64, description="Hash of the configuration that slurmctld runs with and has handed out."
    )
    refilled: str = Field(
        default="", max_length=63, description="The last request of spec.jail.refill that was carried out."
    )
    slurm: str = Field(
        default="", max_length=63, description="Version of Slurm, as the operator's slurmrestd named it last: 24.11.5."
    )
    images: ImagesRecord = Field(
        default_factory=ImagesRecord, description="Images that the cluster keeps until spec.upgrade asks for others."
    )
    rendered: RenderedNote = Field(default_factory=RenderedNote, description="What the last pass rendered.")
    keys: str = Field(
        default="", max_length=63, description="The last request of spec.auth.rotateRequest that was carried out."
    )
    key_digests: Annotated[dict[str, Annotated[str, Field(max_length=64)]], Field(max_length=8)] = Field(
        default_factory=dict,
        description="What the keys in force add up to, by the names of their Secrets, so that another one is noticed.",
    )
    key_rotations: Annotated[dict[str, KeyRotation], Field(max_length=8)] = Field(
        default_factory=dict,
        description="How far the last rotation of the keys in force is, by the names of their Secrets, so that keys from a backup are noticed.",
    )
    accounting: str = Field(
        default="",
        max_length=63,
        description="On since slurmctld uses slurmdbd, until accounting is turned off.",
    )
    why: Sentence = Field(
        default="",
        description="The first cause why the cluster is not ready, in at most 120 characters; empty when it is.",
    )


class NodeSetStatus(Model):
    """The state of the nodes, as the operator last observed it."""

    observed_generation: ObservedGeneration = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=32,
        description="Available first, then Ready; the others say parts. The reference page of conditions has all of them, with their reasons.",
    )
    replicas: int = Field(default=0, ge=0, description="Worker pods that exist.")
    ready_replicas: int = Field(default=0, ge=0, description="Workers that Slurm can give jobs to.")
    updated_replicas: int = Field(default=0, ge=0, description="Worker pods that are as the present spec says.")
    idle: int = Field(default=0, ge=0, description="Workers that are idle and take jobs.")
    allocated: int = Field(default=0, ge=0, description="Workers with a job on them, whole or in part.")
    draining: int = Field(default=0, ge=0, description="Workers that get no more jobs, for any cause.")
    down: int = Field(default=0, ge=0, description="Workers that Slurm cannot use: down, or not responding.")
    desired_replicas: int = Field(
        default=0,
        ge=0,
        description="The number of nodes that should exist: replicas, or with powerSaving those that Slurm has woken.",
    )
    asleep: int = Field(default=0, ge=0, description="Nodes that sleep until a job needs them.")
    waking: int = Field(
        default=0, ge=0, description="Nodes that Slurm has requested, and that have not registered yet."
    )
    selector: str = Field(
        default="", max_length=1024, description="Label selector of the worker pods, for autoscalers."
    )
    rendered: RenderedNote = Field(default_factory=RenderedNote, description="What the last pass rendered.")
    why: Sentence = Field(
        default="",
        description="Why the NodeSet is not available, or what is being done to its workers, in at most 120 characters; empty when nothing is.",
    )
