"""Numbers out of Slurm's texts."""

import pytest

from soperator.slurm.rest_records import (
    JobRecord,
    cpus,
    gpus,
    gres,
    tasks,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu:h100:8(S:0-1),shard:16", {"gpu:h100": 8, "shard": 16}),
        ("gpu:h100:3(IDX:0,2-3),gpu:a100:1(IDX:4)", {"gpu:h100": 3, "gpu:a100": 1}),
        ("gpu:2", {"gpu": 2}),
        ("nic:1K", {"nic": 1024}),
        ("", {}),
        (None, {}),
        ("(null)", {}),
    ],
)
def test_generic_resources_are_counted_by_kind_and_type(text, found):
    """The places in brackets are none of them."""
    assert gres(text) == found


@pytest.mark.parametrize(
    ("text", "count"), [("", 1), (None, 1), ("1-20", 20), ("0-9:3,30,40-41%4", 7), ("7", 1), ("1-5,...", 5)]
)
def test_the_tasks_of_an_array_that_wait_are_jobs(text, count):
    """One record stands for all of them."""
    assert tasks(JobRecord(1, array_task_string=text)) == count


@pytest.mark.parametrize(("text", "count"), [("cpu=4,mem=1G,node=1", 4), ("mem=1G,cpu=12", 12), ("", 0), ("xcpu=3", 0)])
def test_cpus_are_those_of_the_allocation(text, count):
    """A job that has none yet has none."""
    assert cpus(JobRecord(1, tres_alloc_str=text)) == count


def test_gpus_are_those_of_all_nodes():
    """Each node of a job has its own line, and other resources are no GPUs."""
    assert gpus(JobRecord(1, gres_detail=["gpu:h100:2(IDX:0-1),shard:4", "gpu:h100:1(IDX:3)"])) == 3
