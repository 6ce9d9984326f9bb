"""Writes the fault of a node into the comments of its jobs; the jobs are listed once per fault."""

from collections.abc import Mapping

from soperator.policy import drain_reasons
from soperator.policy.workers import job_comment
from soperator.policy.workers.types import WorkerSnapshot
from soperator.reconcile.cache.per_object import Slot, per_object
from soperator.reconcile.nodeset.actions import Workers
from soperator.reconcile.nodeset.decision import listed_after
from soperator.slurmrest.client import SlurmError

#: By a NodeSet: the last comment of each of its nodes.
_WRITTEN: Slot[str, Mapping[str, str]] = per_object("comments written into jobs")


async def write_comments(workers: Workers, seen: WorkerSnapshot) -> str:
    """Write the comments; return what Slurm refused. A new operator writes again, but a sentence that a comment already has is not added twice."""
    known, key = workers.operator.memory(_WRITTEN), workers.obj.metadata.uid
    wanted = job_comment.messages_by_node(seen)
    fresh = {name: says for name, says in wanted.items() if known.get(key, {}).get(name) != says}
    if fresh and workers.client is not None:
        try:
            nodes = seen.nodes or {}
            drained = [name for name in fresh if name in nodes and drain_reasons.is_of_check(nodes[name])]
            # A job may have started just before its node was drained, so the list has to be newer than the drain.
            since = await listed_after(workers.client, nodes, drained)
            for found in await workers.client.jobs(since):
                # What others wrote into the comment since then stays.
                job = await workers.client.job(found.number) if found.nodes & fresh.keys() else None
                if job is None:
                    continue
                text = job_comment.commented(job.comment, (fresh[name] for name in sorted(job.nodes & fresh.keys())))
                if text != job.comment:
                    await workers.client.comment(job.number, text)
        except SlurmError as error:
            return str(error)
    known[key] = wanted
    return ""
