"""`soperator jobs` and `soperator top` print the queue and the nodes, whatever users write into names."""

import time

from soperator.cli.cluster.jobs import _lines as job_lines
from soperator.cli.cluster.top import _lines as top_lines
from soperator.cli.support.find_cluster import as_cluster
from soperator.cli.support.slurm_queries import MOST_JOBS, NodeLine, read_jobs, read_nodes
from soperator.kube.views import Custom, ObjectMeta
from soperator.reconcile.io.slurm_exec import PodExec
from tests.unit.cli.slurm_stub import SlurmStub
from tests.unit.fake_api import FakeApi

CLUSTER = as_cluster(Custom(metadata=ObjectMeta(name="demo", namespace="slurm")))
JOB = {
    "%i": "7",
    "%u": "eve",
    "%P": "main",
    "%T": "RUNNING",
    "%M": "1:00",
    "%l": "1:00:00",
    "%D": "1",
    "%R": "worker-0",
    "%j": "x",
}
NODE = {
    "%N": "worker-0",
    "%T": "mixed",
    "%C": "1/3/0/4",
    "%m": "1024",
    "%e": "512",
    "%O": "0.5",
    "%G": "(null)",
    "%E": "none",
}


def inside(slurm):
    return PodExec(FakeApi().api(), slurm.run)


async def test_a_name_of_a_job_is_no_other_job(tmp_path):
    """Line breaks and separators in it stay in it, and a terminal gets no control characters."""
    slurm, evil = SlurmStub(tmp_path), "x\n8\x1froot\x1fmain\x1fRUNNING\x1f0\x1f0\x1f1\x1fworker-1\x1fgood\x1b[1A"
    slurm.answers("squeue", [{**JOB, "%j": evil}])
    jobs, count = await read_jobs(inside(slurm), CLUSTER)
    assert ([each.job for each in jobs], count, jobs[0].name) == (["7"], 1, evil)
    lines = list(job_lines(jobs, 1, count))
    assert len(lines) == 2
    assert "\x1b" not in "".join(lines)


async def test_an_empty_queue_says_so(tmp_path):
    """And a filter that no job passes is another matter."""
    slurm = SlurmStub(tmp_path)
    jobs, count = await read_jobs(inside(slurm), CLUSTER)
    assert list(job_lines(jobs, len(jobs), count)) == ["The queue is empty."]
    assert list(job_lines([], 3, 3)) == ["There is no such job."]


async def test_a_long_queue_is_cut_and_says_so(tmp_path):
    """Of 12,000 jobs the first are read, in under a second of a core here; the number is that of all."""
    slurm = SlurmStub(tmp_path)
    slurm.answers("squeue", [JOB] * 12000)
    began = time.process_time()
    jobs, count = await read_jobs(inside(slurm), CLUSTER)
    lines = list(job_lines(jobs, len(jobs), count))
    assert time.process_time() - began < 1.0
    assert (len(jobs), count) == (MOST_JOBS, 12000)
    assert lines[-1] == f"Only the first {MOST_JOBS} of 12000 jobs were read: squeue on a login node lists all."


async def test_nodes_that_need_a_person_come_first(tmp_path):
    """Then the busiest; a node in two partitions is one, and one that sleeps is not broken."""
    slurm = SlurmStub(tmp_path)
    others = [
        ("worker-2", "drained", "0/0/4/4"),
        ("worker-10", "allocated", "4/0/0/4"),
        ("worker-3", "idle~", "0/4/0/4"),
    ]
    rows = [{**NODE, "%N": name, "%T": state, "%C": cpus} for name, state, cpus in others]
    slurm.answers("sinfo", [NODE, NODE, *rows, {**NODE, "%N": "worker-4", "%T": "idle*"}])
    nodes = await read_nodes(inside(slurm), CLUSTER)
    assert [each.node for each in nodes] == ["worker-0", "worker-2", "worker-3", "worker-4", "worker-10"]
    lines = list(top_lines(nodes, [], (0, 4)))
    assert [each.split()[0] for each in lines[3:]] == ["worker-4", "worker-2", "worker-10", "worker-0", "1"]
    assert lines[6].split() == ["worker-0", "mixed", "1", "4", "0.5", "1024", "512", "-", "-"]


def test_a_thousand_nodes_are_one_screen():
    """In under a second of a core."""
    nodes = [NodeLine(f"worker-{n}", "idle", "0/4/0/4", "1", "1", "0", "", "") for n in range(1000)]
    began = time.process_time()
    assert list(top_lines(nodes, [], (0, 20)))[-1] == "980 more nodes"
    assert time.process_time() - began < 1.0
