"""The status subresources of the operator's kinds.

Counts are integers. If `kubectl get` shows "2/3" (ready of desired), that text is stored too, because a printer column cannot combine two fields.
`why` has the message that `kubectl get` shows while something is not available. Fields of what the operator
remembers (`config`, `refilled`, `images`) record its actions, never the current state; it reads them from objects of their own (docs/decisions/0120).
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

    type: str = Field(min_length=1, max_length=316, description="Type of the condition, for example Available.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(min_length=1, max_length=1024, description="One word for programs.")
    message: Sentence = Field(description="The state and its remedy, as one sentence.")
    last_transition_time: str = Field(
        description="When status changed last.", json_schema_extra={"format": "date-time"}
    )
    observed_generation: int = Field(
        default=0, ge=0, description="Generation of the spec that this condition is about."
    )


ObservedGeneration = Annotated[
    int,
    Field(ge=-1, description="Generation of the spec that this status is about; -1 before the first pass."),
]


#: The values of completed requests, the newest last.
Completed = list[Annotated[str, Field(max_length=63)]]


class KeyVersion(Model):
    """The identity of the keys in a Secret."""

    digest: str = Field(default="", max_length=64, description="Hash of the Secret's files.")
    request: str = Field(
        default="", max_length=63, description="The last spec.auth.rotateRequest that changed the key."
    )
    stage: str = Field(default="", max_length=16, description="Stage of that rotation. Empty: complete.")


class KeyRotation(Model):
    """The progress of the last rotation of a key."""

    request: str = Field(
        default="", max_length=63, description="The last spec.auth.rotateRequest that changed the key."
    )
    stage: str = Field(default="", max_length=16, description="Stage of that rotation. Empty: complete.")
    next: KeyVersion | None = Field(
        default=None,
        description="Hash of the next files, stored before the operator writes them.",
    )


class CompletedRequests(Model):
    """The completed requests of a cluster, the newest last. A value in a list is not carried out again."""

    refill: Completed = Field(default_factory=list, max_length=32, description="Of spec.jail.refill.")
    keys: Completed = Field(default_factory=list, max_length=32, description="Of spec.auth.rotateRequest.")
    upgrade: Completed = Field(default_factory=list, max_length=32, description="Of spec.upgrade.")


class RoleStatus(Model):
    """The numbers of pods of one role."""

    replicas: int = Field(default=0, ge=0, description="Desired pods.")
    ready_replicas: int = Field(default=0, ge=0, description="Pods that are ready.")
    summary: Count = Field(default="", description="Ready and desired pods as text for kubectl get, such as 1/1.")


class SlurmClusterStatus(Model):
    """The observed state of a cluster."""

    observed_generation: ObservedGeneration = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=32,
        description="Conditions: Available first, then Ready, then those of parts. The reference page of conditions lists all, with their reasons.",
    )
    controller: RoleStatus = Field(default_factory=RoleStatus, description="slurmctld.")
    login: RoleStatus = Field(default_factory=RoleStatus, description="Login nodes.")
    rest: RoleStatus = Field(default_factory=RoleStatus, description="The operator's slurmrestd.")
    workers: RoleStatus = Field(
        default_factory=RoleStatus,
        description="Workers of all NodeSets. Ready workers are those that Slurm can start jobs on. Sleeping nodes do not count.",
    )
    address: str = Field(default="", max_length=1024, description="The ssh command that reaches the login nodes.")
    config: str = Field(
        default="",
        max_length=64,
        description="Hash of the configuration that slurmctld runs with and has sent to all daemons.",
    )
    refilled: str = Field(default="", max_length=63, description="The last completed request of spec.jail.refill.")
    completed_requests: CompletedRequests = Field(
        default_factory=CompletedRequests,
        description="The last 32 completed requests of each kind. A value in a list is not carried out again.",
    )
    slurm: str = Field(
        default="", max_length=63, description="Version of Slurm that slurmrestd reported last, such as 24.11.5."
    )
    images: ImagesRecord = Field(
        default_factory=ImagesRecord, description="Images that the cluster keeps until spec.upgrade requests others."
    )
    rendered: RenderedNote = Field(default_factory=RenderedNote, description="Record of the last rendering.")
    keys: str = Field(default="", max_length=63, description="The last completed spec.auth.rotateRequest.")
    key_digests: Annotated[dict[str, Annotated[str, Field(max_length=64)]], Field(max_length=8)] = Field(
        default_factory=dict,
        description="Hashes of the keys in force, by the names of their Secrets, so that the operator detects a foreign key.",
    )
    key_rotations: Annotated[dict[str, KeyRotation], Field(max_length=8)] = Field(
        default_factory=dict,
        description=(
            "Stage of the last rotation of the keys in force, by the names of their Secrets, so that the operator detects keys from a backup."
        ),
    )
    accounting: str = Field(
        default="",
        max_length=63,
        description="On from the time when slurmctld uses slurmdbd until accounting is turned off.",
    )
    why: Sentence = Field(
        default="",
        description="Why the cluster is not ready, in at most 120 characters. Empty if it is.",
    )


class NodeSetStatus(Model):
    """The observed state of a NodeSet's nodes."""

    observed_generation: ObservedGeneration = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=32,
        description="Conditions: Available first, then Ready, then those of parts. The reference page of conditions lists all, with their reasons.",
    )
    replicas: int = Field(default=0, ge=0, description="Worker pods that exist.")
    ready_replicas: int = Field(default=0, ge=0, description="Workers that Slurm can start jobs on.")
    updated_replicas: int = Field(default=0, ge=0, description="Worker pods that match the current spec.")
    idle: int = Field(default=0, ge=0, description="Workers that are idle and accept jobs.")
    allocated: int = Field(default=0, ge=0, description="Workers with a job, fully or partly allocated.")
    draining: int = Field(default=0, ge=0, description="Workers that are drained or draining, for any cause.")
    down: int = Field(default=0, ge=0, description="Workers that are down or not responding.")
    desired_replicas: int = Field(
        default=0,
        ge=0,
        description="The number of nodes that should exist: replicas, or with powerSaving those that Slurm has woken.",
    )
    asleep: int = Field(default=0, ge=0, description="Nodes that sleep until a job needs them.")
    waking: int = Field(default=0, ge=0, description="Nodes that Slurm has requested and that have not registered yet.")
    selector: str = Field(
        default="", max_length=1024, description="Label selector of the worker pods, for autoscalers."
    )
    rendered: RenderedNote = Field(default_factory=RenderedNote, description="Record of the last rendering.")
    why: Sentence = Field(
        default="",
        description=(
            "Why the NodeSet is not available, or the progress of its workers, in at most 120 characters. Empty without either."
        ),
    )
