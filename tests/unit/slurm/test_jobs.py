"""Host lists and jobs as slurmrestd tells them."""

import msgspec
import pytest

from soperator.slurm.hostlist import expand
from soperator.slurm.job import NEVER, QueuedJob, read_job


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("w-0", ["w-0"]),
        ("w-[0-2,5],login-0", ["w-0", "w-1", "w-2", "w-5", "login-0"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("r[1-2]-[0,3]", ["r1-0", "r1-3", "r2-0", "r2-3"]),
    ],
)
def test_a_host_list_is_expanded_in_its_order(text, names):
    """Ranges, lists, zeros in front and several brackets."""
    assert expand(text) == names


def test_only_jobs_that_hold_nodes_are_read():
    """A waiting job has no nodes; a job without a limit never ends by itself."""
    limit, end = {"set": True, "infinite": False, "number": 60}, {"set": True, "number": 99}
    first = {"job_id": 1, "nodes": "w-[0-1]", "time_limit": limit, "end_time": end, "requeue": True, "batch_flag": True}
    raw = [
        first | {"job_state": ["RUNNING"]},
        {"job_id": 2, "job_state": ["RUNNING"], "nodes": "w-2", "time_limit": {"infinite": True}, "end_time": end},
        {"job_id": 3, "job_state": ["PENDING"], "nodes": ""},
        {"job_id": 4, "job_state": ["COMPLETED"], "nodes": "w-0"},
    ]  # fmt: skip
    found = [read_job(msgspec.convert(each, QueuedJob)) for each in raw]
    assert found[2:] == [None, None]
    first, second = found[:2]
    assert (first.number, first.nodes, first.ends, first.may_requeue) == (1, {"w-0", "w-1"}, 99, True)
    assert (second.ends, second.may_requeue) == (NEVER, False)


@pytest.mark.parametrize(
    ("requeue", "batch", "expected"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_only_a_batch_job_that_allows_it_can_be_requeued(requeue, batch, expected):
    """Slurm refuses to requeue an interactive job, whatever its flag says."""
    job = read_job(QueuedJob(1, ["RUNNING"], nodes="w-0", requeue=requeue, batch_flag=batch))
    assert job is not None
    assert job.may_requeue is expected


@pytest.mark.parametrize(
    "text",
    ["w-[0-2", "w-0]", "w-[[0]]", "w-[x]", "w-[0-99999]", "n[1]" * 10, "[" * 99999, "w" * 300, f"[{'0' * 5000}-1]"],
)
def test_what_is_no_host_list_of_a_cluster_is_refused(text):
    """What answers as slurmrestd is not trusted: a short text must not become millions of names, or take minutes to read."""
    with pytest.raises(ValueError, match="host"):
        expand(text)
