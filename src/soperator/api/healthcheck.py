"""The kind HealthCheck: a deep check of the nodes of one SlurmCluster, which runs on each of them as a Slurm job.

Its results are only in its status: a restarted operator continues from there. So the status has an upper bound that suffices for five thousand nodes
(docs/decisions/0055).
"""

import re
from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import DNS_LABEL, Model
from soperator.api.common import ClusterMember, NodeSetName
from soperator.api.fields.change import SOME, Duration, Share
from soperator.api.status import Condition, ObservedGeneration, Sentence
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
Seconds = Annotated[int, Field(ge=0)]


class OnIdle(Model):
    """Runs on idle nodes."""

    after: Duration = Field(default="10m", description="How long a node has been idle.")
    min_interval: Duration = Field(default="1d", description="How long ago its last run was at least.")


class When(Model):
    """What makes a node due for the check. Each of these is enough."""

    schedule: Annotated[str, Field(pattern=rf"{SCHEDULE}|^$", max_length=256)] = Field(
        default="",
        description="All nodes, as a CronJob's schedule in UTC: minute, hour, day, month, weekday, or @daily and its like.",
    )
    after_creation: bool = Field(default=True, description="A node that has not run it since its pod was created.")
    after_repair: bool = Field(
        default=False, description="A node that was drained or down for any cause, and is in service again."
    )
    on_idle: OnIdle | None = Field(default=None, description="A node that has been idle for a while.")
    run_request: Word = Field(
        default="",
        description="A request to run it now on all nodes. Any word that was not there before is one request; it is carried out once.",
    )


class HealthCheckSpec(ClusterMember):
    """A check that needs a whole node, when it runs, and its consequences."""

    node_sets: list[NodeSetName] = Field(
        default_factory=list,
        max_length=64,
        description="NodeSets whose nodes are checked; none means all of the cluster's.",
    )
    check: Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", max_length=63)] = Field(
        default="",
        description="A shipped check, such as cpu, memory or network; the reference of deep checks has them. Either it or script is given. One "
        "that measures pairs or groups takes nodes of one NodeSet that are idle together.",
    )
    thresholds: dict[str, float] = Field(
        default_factory=dict,
        max_length=32,
        description="Thresholds of the shipped check by their names in the reference, for example memory_triad; they go before those of the machine "
        "type.",
    )
    script: Annotated[str, Field(max_length=65536)] = Field(
        default="",
        description=(
            "A script that runs as root in the jail. Exit code 0: the node passes. Exit code 1 and a last line that says why: it fails. "
            "Anything else: the check itself is broken, and nothing is known."
        ),
    )
    when: When = Field(default_factory=When, description="What makes a node due.")
    time_limit: Duration = Field(
        default="10m", description="How long a run may last, in whole minutes. One that lasts longer is broken."
    )
    failure_threshold: Annotated[int, Field(ge=1, le=10)] = Field(
        default=2, description="The number of failures in a row that make a failure; the node runs it again at once."
    )
    success_threshold: Annotated[int, Field(ge=1, le=10)] = Field(
        default=2,
        description="The number of passes in a row that end a failure; more, where the node failed within an hour after it had recovered.",
    )
    max_parallel: Share = Field(
        default="10%",
        description="How many of these nodes run it at once: a number, or a percentage (rounded down, at least 1, and at least 2 where a job "
        "measures several). It is also how large a group is at most.",
    )
    on_failure: Literal["Report", "Drain", "DrainAndRetest", "Replace"] = Field(
        default="DrainAndRetest",
        description=(
            "What follows a failure. Report: it is reported. Drain: the node is drained until somebody resumes it. DrainAndRetest: it is drained, "
            "runs the check again every retryInterval while it is drained, and is resumed when it passes. Replace: it is drained, and its pod moves "
            "to another Node, as spec.health.replace of the cluster has it, where it is tested at once. spec.health.maxUnhealthy of the cluster "
            "bounds how many are out."
        ),
    )
    retry_interval: Duration = Field(default="10m", description="How long after a run a drained node is tested again.")
    suspend: bool = Field(default=False, description="Whether no new run begins.")


class RunStatus(Model):
    """One run that, by the last answer, has not ended."""

    job: int = Field(ge=0, description="Number of the Slurm job.")
    node: Hostlist = Field(description="Slurm node, or several of them as a host list.")
    at: Seconds = Field(description="When it was submitted, in seconds since 1970.")
    retest: bool = Field(default=False, description="Whether the node is drained and is tested again.")


class NodeStatus(Model):
    """A node that does not pass."""

    node: str = Field(max_length=253, description="Slurm node.")
    state: Literal["suspect", "failing", "recovering", "broken"] = Field(description="How the check stands.")
    since: Seconds = Field(description="Since when, in seconds since 1970.")
    says: Short = Field(description="What is wrong.")
    broken: Short = Field(default="", description="Why nothing is known of a node that fails.")
    fails: int = Field(
        default=0, ge=0, description="Failures in a row; of a broken check, runs in a row that gave no answer."
    )
    passes: int = Field(default=0, ge=0, description="Passes in a row since.")
    relapses: int = Field(default=0, ge=0, description="How often it failed soon after it had recovered.")
    job: int = Field(default=0, ge=0, description="The last job that counted.")
    at: Seconds = Field(default=0, description="When that ended, in seconds since 1970.")
    log: Annotated[str, Field(max_length=512)] = Field(
        default="", description="The end of what the failing run printed."
    )


class EndedStatus(Model):
    """A failure that is over."""

    node: str = Field(max_length=253, description="Slurm node.")
    since: Seconds = Field(description="From when, in seconds since 1970.")
    until: Seconds = Field(description="Until when.")
    says: Short = Field(description="What was wrong.")
    job: int = Field(default=0, ge=0, description="The job that ended it.")
    relapses: int = Field(default=0, ge=0, description="How often it had failed again by then.")


class RanStatus(Model):
    """Nodes whose last valid run was at about the same time."""

    at: Seconds = Field(description="When, in seconds since 1970; never later than it was.")
    nodes: Hostlist = Field(description="Slurm nodes, as a host list.")


class ReadingStatus(Model):
    """The last reading of a shipped check: of a node, of a part of it, or of several nodes together."""

    node: Hostlist = Field(description="Slurm node, or several of them as a host list.")
    part: Short = Field(default="", description="The part of it, such as GPU 3.")
    model: Short = Field(default="", description="How the device calls itself.")
    values: dict[str, float] = Field(
        default_factory=dict, max_length=32, description="The numbers that are compared with peers."
    )


class BrokenStatus(Model):
    """Two nodes that gave no reading."""

    nodes: Hostlist = Field(description="Both nodes, as a host list.")
    times: int = Field(ge=1, description="How often.")


class RoundStatus(Model):
    """Nodes that are just being compared with each other."""

    at: Seconds = Field(description="When it began, in seconds since 1970.")
    nodes: Hostlist = Field(description="Slurm nodes, as a host list.")
    whole: bool = Field(default=False, description="Whether one job of all of them comes first.")
    tested: Annotated[str, Field(max_length=253)] = Field(default="", description="The one of them that is drained.")
    moved: Seconds = Field(default=0, description="When something was heard last.")
    readings: list[ReadingStatus] = Field(
        default_factory=list, max_length=MOST_PAIRS, description="What was read of pairs so far."
    )
    broken: list[BrokenStatus] = Field(
        default_factory=list, max_length=MOST_PAIRS, description="Pairs that gave no reading."
    )
    says: Short = Field(default="", description="Why pairs are measured, or the message of a broken run.")


class NoteStatus(Model):
    """A finding that concerns no single node."""

    at: Seconds = Field(description="When, in seconds since 1970.")
    nodes: Hostlist = Field(description="Slurm nodes that it is about, as a host list.")
    says: Short = Field(description="The finding, such as a slow path between two nodes.")


class HealthCheckStatus(Model):
    """The state of a check, with everything that a restarted operator needs."""

    observed_generation: ObservedGeneration = 0
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=32,
        description="Ready: whether it runs; Reconciling or Stalled while it does not. Passing: whether no node fails it.",
    )
    last: Annotated[str, Field(max_length=64)] = Field(default="", description="When a run ended last.")
    nodes_passed: Annotated[str, Field(max_length=32)] = Field(
        default="", description="Nodes whose last run passed, of all."
    )
    failing: int = Field(default=0, ge=0, description="Nodes that fail it.")
    active: int = Field(default=0, ge=0, description="Runs that go on.")
    request: Word = Field(default="", description="The last request that was carried out.")
    asked: Seconds = Field(default=0, description="When that was.")
    top: int = Field(default=0, ge=0, description="The highest number of a job of this check.")
    owed: Hostlist = Field(default="", description="Nodes that were out of service, and run it when they are back.")
    runs: list[RunStatus] = Field(default_factory=list, max_length=10000, description="Runs that have not ended.")
    ran: list[RanStatus] = Field(
        default_factory=list, max_length=MOST_TIMES, description="When which node ran it last."
    )
    nodes: list[NodeStatus] = Field(
        default_factory=list, max_length=MOST_NODES, description="Nodes that do not simply pass, with the evidence."
    )
    ended: list[EndedStatus] = Field(
        default_factory=list, max_length=MOST_ENDED, description="The most recent failures that are over."
    )
    readings: list[ReadingStatus] = Field(
        default_factory=list,
        max_length=MOST_READINGS,
        description="What nodes are compared with: the newest readings of some of them.",
    )
    round: RoundStatus | None = Field(default=None, description="Nodes that are just being compared with each other.")
    notes: list[NoteStatus] = Field(
        default_factory=list, max_length=MOST_NOTES, description="The last findings that concern no single node."
    )
    why: Sentence = Field(default="", description="What is wrong, or what is being done; empty when nothing is.")


#: Names of checks are used in Slurm's reasons and in names of jobs.
NAME = DNS_LABEL


HEALTHCHECK = (
    Rule(
        cel="self.clusterRef.name == oldSelf.clusterRef.name",
        message="cluster cannot be changed, because the results are about its nodes: create a new HealthCheck for the other cluster",
        field="clusterRef",
    ),
    Rule(
        cel="(self.?script.orValue('') == '') != (self.?check.orValue('') == '')",
        message="what is to run must be said once: give check, the name of a shipped one, or script, one of your own",
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
