"""The slurmrestd that the bench of the exporter plays."""

import json

from local.bench.exporter.standin import SIZE, pieces, record


def test_an_answer_is_one_that_slurmrestd_could_have_given():
    """As many records as asked for, each with a name of its own, and what stands beside the list."""
    for what, name in (("jobs", "job_id"), ("nodes", "name")):
        said = json.loads(b"".join(pieces(what, 30)))
        assert len({each[name] for each in said[what]}) == 30
        assert said["last_update"]["number"] > 0
    users = {each["user_name"] for each in json.loads(b"".join(pieces("jobs", 30)))["jobs"]}
    assert len(users) == 30


def test_no_job_at_all_is_an_answer_too():
    """An empty list."""
    assert json.loads(b"".join(pieces("jobs", 0)))["jobs"] == []


def test_a_record_is_as_long_as_a_real_one():
    """What is read is what it costs."""
    for what, size in SIZE.items():
        assert size <= len(record(what)) < size * 1.05
