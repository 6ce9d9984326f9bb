"""Writing what is wrong with a node into the comments of the jobs that it has; the queue is asked for once for each trouble."""

from soperator.control.workers import Workers
from soperator.decide import hint
from soperator.decide.workers import Seen
from soperator.slurmrest.client import SlurmError


async def tell(workers: Workers, seen: Seen) -> str:
    """Write them; return what Slurm refused. An operator that is new writes again, and a sentence that is there already stays there once."""
    known, key = workers.operator.hinted, (workers.nodeset.namespace, workers.nodeset.name)
    wanted = hint.hints(seen)
    fresh = {name: says for name, says in wanted.items() if known.get(key, {}).get(name) != says}
    if fresh and workers.client is not None:
        try:
            for job in await workers.client.jobs():
                text = hint.commented(job.comment, (fresh[name] for name in sorted(job.nodes & fresh.keys())))
                if text != job.comment:
                    await workers.client.comment(job.number, text)
        except SlurmError as error:
            return str(error)
    known[key] = wanted
    return ""
