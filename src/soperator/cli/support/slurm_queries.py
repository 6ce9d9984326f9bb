"""Asks Slurm for jobs and nodes, by squeue and sinfo beside slurmctld, so that neither a token nor a port is needed.

A name of a job is its user's text and may contain line breaks. So each record begins with a random mark, and no name can pretend to be another
record. The counts are made in the pod, because a queue may have 100,000 jobs. Formats: squeue(1) and sinfo(1) of 24.11.
"""

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from soperator.reconcile.io.slurm_exec import PodExec
    from soperator.render.parts.model import Cluster

_BIN = "/opt/soperator/bin"
_SEPARATOR = "\x1f"
_DRAIN_FIELDS = ("%N", "%u", "%H", "%T", "%E")
_PART = "--"
#: The most lines of jobs that are read; the queue itself has no limit.
MOST_JOBS = 5000

_COUNTS = rf"""jobs=$(timeout 10 {_BIN}/squeue --noheader --array --format=%T) || exit
nodes=$(timeout 10 {_BIN}/sinfo --noheader --list-reasons --format="$1") || exit
echo "$jobs" | sort | uniq -c
echo {_PART}
echo "$nodes"
"""
_JOB_FIELDS = ("%i", "%u", "%P", "%T", "%M", "%l", "%D", "%R", "%j")
_JOBS = rf"""jobs=$(timeout 20 {_BIN}/squeue --noheader --sort=-t,-p,i --format="$1") || exit
echo "$jobs" | grep -c "${{1%%%*}}" || :
echo "$jobs" | head -n {MOST_JOBS}
"""
_NODE_FIELDS = ("%N", "%T", "%C", "%m", "%e", "%O", "%G", "%E")
_NODES = rf"""exec timeout 20 {_BIN}/sinfo --noheader --Node --format="$1"
"""


@dataclass(frozen=True)
class DrainedNodes:
    """Nodes that are out of service for one reason: a host list, who set the reason and when, the state, and the reason."""

    nodes: str
    by: str
    since: str
    state: str
    reason: str


@dataclass(frozen=True)
class QueueSummary:
    """The number of jobs by state, and the nodes that are out of service."""

    jobs: dict[str, int]
    drained: list[DrainedNodes]


@dataclass(frozen=True)
class JobLine:
    """One job of the queue in squeue's words; `nodes` is a count, `where` the nodes of a running job or the reason of a pending one."""

    job: str
    user: str
    partition: str
    state: str
    time: str
    limit: str
    nodes: str
    where: str
    name: str


@dataclass(frozen=True)
class NodeLine:
    """One node in sinfo's words: CPUs as allocated/idle/other/total, memory and free memory in MiB, the load, GRES and the reason."""

    node: str
    state: str
    cpus: str
    memory: str
    free: str
    load: str
    gres: str
    reason: str


async def read_summary(inside: "PodExec", cluster: "Cluster") -> QueueSummary:
    """Return the numbers of jobs and the nodes out of service; raises SlurmError."""
    form, mark = _format(_DRAIN_FIELDS)
    text = await inside.beside_slurmctld(cluster, "squeue and sinfo", _COUNTS, (form,))
    jobs, _, nodes = text.partition(f"{_PART}\n")
    counts = {
        state: int(count) for count, state in (each.split() for each in jobs.splitlines() if len(each.split()) == 2)
    }
    return QueueSummary(counts, [DrainedNodes(*row) for row in _records(nodes, mark, len(_DRAIN_FIELDS))])


async def read_jobs(inside: "PodExec", cluster: "Cluster") -> tuple[list[JobLine], int]:
    """Return the jobs of the queue, running ones first, at most MOST_JOBS, and how many there are; raises SlurmError."""
    form, mark = _format(_JOB_FIELDS)
    count, _, rest = (await inside.beside_slurmctld(cluster, "squeue", _JOBS, (form,))).partition("\n")
    found = [JobLine(*row) for row in _records(rest, mark, len(_JOB_FIELDS))]
    return found, int(count) if count.isdecimal() else len(found)


async def read_nodes(inside: "PodExec", cluster: "Cluster") -> list[NodeLine]:
    """Return the nodes, each once although it may be in several partitions; raises SlurmError."""
    form, mark = _format(_NODE_FIELDS)
    text = await inside.beside_slurmctld(cluster, "sinfo", _NODES, (form,))
    found = {row[0]: NodeLine(*row) for row in _records(text, mark, len(_NODE_FIELDS))}
    return [found[name] for name in sorted(found, key=_natural)]


def as_dicts(rows: "Sequence[JobLine] | Sequence[NodeLine] | Sequence[DrainedNodes]") -> list[dict[str, str]]:
    """Return the rows for JSON and YAML."""
    return [asdict(each) for each in rows]


def _format(fields: Sequence[str]) -> tuple[str, str]:
    """Return the format for squeue or sinfo, and the mark with which each record begins."""
    mark = secrets.token_hex(8)
    return mark + _SEPARATOR.join(fields), mark


def _records(text: str, mark: str, width: int) -> list[list[str]]:
    """Return the fields of each record; the last one may contain anything."""
    rows = (each.removesuffix("\n").split(_SEPARATOR, width - 1) for each in text.split(mark)[1:])
    return [row for row in rows if len(row) == width]


def _natural(name: str) -> tuple[str, int, str]:
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0), name
