"""Host lists and jobs as slurmrestd tells them."""

import pytest

from soperator.slurm.hostlist import expand
from soperator.slurm.job import NEVER, read_jobs


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
    first, second = read_jobs(raw)
    assert (first.number, first.nodes, first.ends, first.may_requeue) == (1, {"w-0", "w-1"}, 99, True)
    assert (second.ends, second.may_requeue) == (NEVER, False)
