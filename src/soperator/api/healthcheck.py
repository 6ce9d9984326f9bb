"""The kind HealthCheck: a deep check of the nodes of one SlurmCluster, which runs on each node as a Slurm job.

A restarted operator continues from its results, which a ConfigMap stores and its status shows (docs/decisions/0120). So they have an upper bound
that suffices for five thousand nodes (docs/decisions/0055).
"""

import re
from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import DNS_LABEL, DecimalNumber, Model
from soperator.api.common import ClusterMember, NodeSetName
from soperator.api.fields.change import SOME, Duration, Share
from soperator.api.status import Condition, Count, ObservedGeneration, Sentence
from soperator.api.validation.cel import Rule
from soperator.api.validation.schedule import SCHEDULE

#: The most nodes with a result other than a pass, and the most past failures, in a status.
MOST_NODES, MOST_ENDED = 400, 50
#: Groups of nodes with one time of their last run.
MOST_TIMES = 256
#: Readings with which others are compared.
MOST_READINGS = 128
#: The most nodes in one round, its pairs with a reading, and findings that concern no single node.
MOST_TOGETHER, MOST_PAIRS, MOST_NOTES = 256, 1024, 16

Word = Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$", max_length=63)]
Hostlist = Annotated[str, Field(max_length=131072)]
Short = Annotated[str, Field(max_length=256)]
#: A time as Kubernetes writes it, to the second.
Time = Annotated[str, Field(max_length=32, json_schema_extra={"format": "date-time"})]
#: A reading as text, because Kubernetes' conventions allow no floats.
NumberText = Annotated[str, Field(max_length=32)]


class OnIdle(Model):
    """The trigger for runs on idle nodes."""

    after: Duration = Field(default="10m", description="How long a node must have been idle.")
    min_interval: Duration = Field(default="24h", description="Minimum time since its last run.")


class When(Model):
    """The triggers that make a node due for the check; each one suffices."""

    schedule: Annotated[str, Field(pattern=rf"{SCHEDULE}|^$", max_length=256)] = Field(
        default="",
        description=(
            "Schedule on which all nodes become due, in UTC, as in a CronJob: minute, hour, day, month, weekday, or a macro such as @daily."
        ),
    )
    after_creation: bool = Field(
        default=True, description="Whether a node is due if it has not run the check since its pod was created."
    )
    after_repair: bool = Field(
        default=False,
        description="Whether a node is due after it was drained or down for any cause and is in service again.",
    )
    on_idle: OnIdle | None = Field(default=None, description="Makes a node due after it has been idle.")
    run_request: Word = Field(
        default="",
        description="A request to run the check now on all nodes. Any new value is one request, which is carried out once; a former value is not.",
    )


class HealthCheckSpec(ClusterMember):
    """A check that needs a whole node, when it runs, and its consequences."""

    node_sets: list[NodeSetName] = Field(
        default_factory=list,
        max_length=64,
        description="NodeSets whose nodes are checked. Empty: all NodeSets of the cluster.",
    )
    check: Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", max_length=63)] = Field(
        default="",
        description="Name of a shipped check, such as cpu, memory or network, from the reference of deep checks. Either check or "
        "script is set. A check of pairs or groups runs on nodes of one NodeSet that are idle at the same time.",
    )
    thresholds: dict[str, DecimalNumber] = Field(
        default_factory=dict,
        max_length=32,
        description="Thresholds of the shipped check by their names in the reference, for example memory_triad: an integer, or a decimal "
        "number in quotes, in the unit of the reference. They override those of the machine type.",
    )
    script: Annotated[str, Field(max_length=65536)] = Field(
        default="",
        description=(
            "A script that runs as root in the jail. Exit code 0: the node passes. Exit code 1 with the cause in the "
            "last line of output: it fails. Any other code: the check itself is broken, and the result is unknown."
        ),
    )
    when: When = Field(default_factory=When, description="Triggers that make a node due.")
    time_limit: Duration = Field(
        default="10m", description="Time limit of a run, in whole minutes. A longer run is broken."
    )
    failure_threshold: Annotated[int, Field(ge=1, le=10)] = Field(
        default=2,
        description="Number of failures in a row that make the check fail. The node repeats the check at once.",
    )
    success_threshold: Annotated[int, Field(ge=1, le=10)] = Field(
        default=2,
        description="Number of passes in a row that end a failure. More are needed if the node failed within an hour after it had recovered.",
    )
    max_parallel: Share = Field(
        default="10%",
        description="Maximum number of these nodes that run the check at once: a number, or a percentage (rounded down, at least "
        "1, and at least 2 if a job measures several nodes). It also limits the size of a group.",
    )
    on_failure: Literal["Report", "Drain", "DrainAndRetest", "Replace"] = Field(
        default="DrainAndRetest",
        description=(
            "Consequence of a failure. Report: it is reported. Drain: the node is drained until a person resumes it. "
            "DrainAndRetest: the node is drained, repeats the check every retryInterval, and is resumed when it passes. "
            "Replace: the node is drained, its pod moves to another Node as in spec.health.replace of the cluster, and "
            "is tested there at once. spec.health.maxUnhealthy of the cluster limits the number of drained nodes."
        ),
    )
    retry_interval: Duration = Field(default="10m", description="Time between two tests of a drained node.")
    suspend: bool = Field(default=False, description="Whether new runs are suspended.")


class RunStatus(Model):
    """One run that had not ended at Slurm's last answer."""

    job: int = Field(ge=0, description="Id of the Slurm job.")
    nodes: Hostlist = Field(description="Slurm nodes, as a host list.")
    submit_time: Time = Field(description="Time of the submission.")
    retest: bool = Field(default=False, description="Whether the run tests a drained node.")


class NodeStatus(Model):
    """A node that does not pass."""

    node: str = Field(max_length=253, description="Slurm node.")
    state: Literal["Suspect", "Failing", "Recovering", "Broken"] = Field(description="State of the check on the node.")
    since: Time = Field(description="Start of the state.")
    message: Short = Field(description="The fault.")
    unknown_reason: Short = Field(default="", description="Why the present result of a failing node is unknown.")
    failures: int = Field(
        default=0, ge=0, description="Failures in a row; for a broken check, runs in a row without a result."
    )
    passes: int = Field(default=0, ge=0, description="Passes in a row since the last failure.")
    relapses: int = Field(default=0, ge=0, description="Number of failures soon after a recovery.")
    job: int = Field(default=0, ge=0, description="Id of the last job with a valid result.")
    last_run_time: Time | None = Field(default=None, description="End of that job.")
    log: Annotated[str, Field(max_length=512)] = Field(
        default="", description="The end of the output of the failing run."
    )


class EndedStatus(Model):
    """A failure that has ended."""

    node: str = Field(max_length=253, description="Slurm node.")
    since: Time = Field(description="Start of the failure.")
    until: Time = Field(description="End of the failure.")
    message: Short = Field(description="The fault.")
    job: int = Field(default=0, ge=0, description="Id of the job that ended the failure.")
    relapses: int = Field(default=0, ge=0, description="Number of failures soon after a recovery by then.")


class LastRunStatus(Model):
    """Nodes whose last valid run was at about the same time."""

    time: Time = Field(description="Time of the run, rounded down.")
    nodes: Hostlist = Field(description="Slurm nodes, as a host list.")


class ReadingStatus(Model):
    """The last reading of a shipped check: of a node, of a part of it, or of several nodes together."""

    nodes: Hostlist = Field(description="Slurm nodes, as a host list.")
    part: Short = Field(default="", description="Part of the node, such as GPU 3.")
    model: Short = Field(default="", description="Model name of the device.")
    values: dict[str, NumberText] = Field(
        default_factory=dict, max_length=32, description="Numbers that are compared with peers."
    )


class UnreadPairStatus(Model):
    """A pair of nodes that gave no reading."""

    nodes: Hostlist = Field(description="Both nodes, as a host list.")
    count: int = Field(ge=1, description="Number of runs without a reading.")


class ComparisonStatus(Model):
    """Nodes that are being compared with each other."""

    start_time: Time = Field(description="Start of the comparison.")
    nodes: Hostlist = Field(description="Slurm nodes, as a host list.")
    whole_group: bool = Field(default=False, description="Whether one job over all of them runs first.")
    tested_node: Annotated[str, Field(max_length=253)] = Field(
        default="", description="The drained node among them, if any."
    )
    last_result_time: Time | None = Field(default=None, description="Time of the last result.")
    readings: list[ReadingStatus] = Field(
        default_factory=list, max_length=MOST_PAIRS, description="Readings of pairs so far."
    )
    unread_pairs: list[UnreadPairStatus] = Field(
        default_factory=list, max_length=MOST_PAIRS, description="Pairs that gave no reading."
    )
    message: Short = Field(default="", description="Why pairs are measured, or the message of a broken run.")


class FindingStatus(Model):
    """A finding that concerns no single node."""

    time: Time = Field(description="Time of the finding.")
    nodes: Hostlist = Field(description="Slurm nodes of the finding, as a host list.")
    message: Short = Field(description="The finding, such as a slow path between two nodes.")


class HealthCheckStatus(Model):
    """The state of a check, with everything that a restarted operator needs."""

    observed_generation: ObservedGeneration = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=32,
        description="Ready is True if the check runs; otherwise Reconciling or Stalled is True. Passing is True if no node fails the check.",
    )
    last_run_time: Time | None = Field(default=None, description="Submission of the last run with a result.")
    nodes: int = Field(default=0, ge=0, description="Nodes that are checked.")
    passing_nodes: int = Field(default=0, ge=0, description="Nodes whose last run passed.")
    failing_nodes: int = Field(default=0, ge=0, description="Nodes that fail the check.")
    summary: Count = Field(default="", description="passingNodes of nodes, for the column of kubectl get.")
    active_runs: int = Field(default=0, ge=0, description="Runs in progress.")
    last_request: Word = Field(default="", description="The last spec.when.runRequest that was carried out.")
    completed_requests: list[Word] = Field(
        default_factory=list,
        max_length=32,
        description="The last 32 completed requests, the newest last. A value in it is not carried out again.",
    )
    last_request_time: Time | None = Field(default=None, description="Time at which that request was carried out.")
    highest_job: int = Field(default=0, ge=0, description="Highest id of a job of this check.")
    due_after_repair: Hostlist = Field(
        default="", description="Nodes that were out of service, and run the check when they return."
    )
    runs: list[RunStatus] = Field(default_factory=list, max_length=10000, description="Runs that have not ended.")
    last_runs: list[LastRunStatus] = Field(
        default_factory=list, max_length=MOST_TIMES, description="Last runs of the nodes."
    )
    unhealthy_nodes: list[NodeStatus] = Field(
        default_factory=list, max_length=MOST_NODES, description="Nodes that do not pass, with the evidence."
    )
    ended_failures: list[EndedStatus] = Field(
        default_factory=list, max_length=MOST_ENDED, description="The most recent failures that have ended."
    )
    readings: list[ReadingStatus] = Field(
        default_factory=list,
        max_length=MOST_READINGS,
        description="The newest readings of some nodes, with which others are compared.",
    )
    comparison: ComparisonStatus | None = Field(
        default=None, description="Nodes that are being compared with each other."
    )
    findings: list[FindingStatus] = Field(
        default_factory=list, max_length=MOST_NOTES, description="Last findings that concern no single node."
    )
    why: Sentence = Field(default="", description="The fault or the progress. Empty without either.")


#: Names of checks are used in Slurm's reasons and in names of jobs.
NAME = DNS_LABEL


HEALTHCHECK = (
    Rule(
        cel="self.clusterRef.name == oldSelf.clusterRef.name",
        message="clusterRef cannot be changed, because the results are about its nodes: create a new HealthCheck for the other cluster",
        field="clusterRef",
    ),
    Rule(
        cel="(self.?script.orValue('') == '') != (self.?check.orValue('') == '')",
        message="exactly one of check and script must be set: set check to the name of a shipped check, or set script",
        holds=lambda spec: bool(spec.script) != bool(spec.check),
    ),
    Rule(
        cel="self.?script.orValue('') == '' || self.?script.orValue('').startsWith('#!/')",
        message="script must begin with the line that names its interpreter: write for example #!/bin/sh",
        holds=lambda spec: not spec.script or spec.script.startswith("#!/"),
        field="script",
    ),
    Rule(
        cel=f"string(self.maxParallel).matches('{SOME}')",
        message="maxParallel must be a number of at least 1, or a percentage such as 10%: with none the check would never run",
        holds=lambda spec: re.search(SOME, spec.max_parallel) is not None,
        field="max_parallel",
    ),
)
