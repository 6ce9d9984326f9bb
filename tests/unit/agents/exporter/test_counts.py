"""What is counted, of answers that a real slurmrestd 24.11 gave (answers/) and of records made up."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.agents.exporter.bounds import SeriesNames, folded, top
from soperator.agents.exporter.jobs import JobCounters, JobCounts
from soperator.agents.exporter.nodes import Nodes, is_out, outage_labels, state_of
from soperator.agents.exporter.scheduler import Scheduler, partitions, reservations
from soperator.agents.exporter.users import UserNames
from soperator.observe import cluster as names
from soperator.slurm.node import SlurmNode
from soperator.slurm.rest_records import (
    JobRecord,
    NodeRecord,
    PartitionRecord,
    ReservationRecord,
    Rpc,
    Statistics,
)

ANSWERS = Path(__file__).parent / "answers"
NOW = 1795329300.0
REPORT = '{"soperator":1,"at":1795329299,"checks":{"disk-full":{"state":"failing","since":1,"says":"full","values":{"used":97,"path":"/"}}}}'


def answer(what, type_, key=None):
    raw = msgspec.json.decode((ANSWERS / f"{what}.json").read_bytes())[key or what]
    return msgspec.convert(raw, type_, strict=False)


def values(families):
    """All samples that are not 0, by name and labels."""
    return {
        (metric.name + each.end, *each.labels): each.value
        for metric, samples in families
        for each in samples
        if each.value
    }


def counted(*records, each=True):
    nodes = Nodes(NOW, 1500.0, each)
    for record in records:
        nodes.take(record)
    return nodes


def jobs(*records, flow=None):
    counts = JobCounts(flow or JobCounters())
    for record in records:
        counts.take(record)
    return counts


def test_the_nodes_of_a_real_answer():
    """States, power, features, GPUs, shares and reasons, each from where Slurm says it."""
    nodes = counted(*answer("nodes", list[NodeRecord]))
    found = values(nodes.families())
    assert found["slurm_nodes", "mixed"] == 1
    assert found["slurm_nodes", "draining"] == 2
    assert found["slurm_nodes", "powered_down"] == 1
    assert found["slurm_nodes", "not_responding"] == 1
    assert sum(count for (name, *_), count in found.items() if name == "slurm_nodes") == 5
    assert found["slurm_nodes_out", "check", "gpu-xid"] == 1
    assert found["slurm_nodes_out", "person", 'bad "memory" line two \\ end'] == 1
    assert found["slurm_nodes_out", "slurm", "not_responding"] == 1
    assert found["slurm_feature_nodes", "nvlink", "no"] == 3
    assert found["slurm_gres", "gpu:h100", "allocated"] == 3
    assert found["slurm_gres", "gpu:h100", "idle"] == 1
    assert found["slurm_gres", "gpu:h100", "unavailable"] == 24
    assert found["slurm_partition_nodes", "main", "allocated"] == 1
    assert found["slurm_cpus", "allocated"] == 12
    assert found["slurm_cpus", "powered_down"] == 8
    assert found["slurm_node_memory_bytes", "one"] == 64000 * 2**20
    assert {each.name for each in nodes.unwell} == {"one", "gpu-0", "gpu-1", "gpu-2"}


def test_the_jobs_of_a_real_answer():
    """An array that waits is all its tasks, and users, accounts and reasons are Slurm's."""
    counts = jobs(*answer("jobs", list[JobRecord]))
    found = values(counts.families())
    assert found["slurm_jobs", "running"] == 1
    assert found["slurm_jobs", "pending"] == 24
    assert found["slurm_jobs_pending", "Priority"] == 21
    assert found["slurm_user_jobs", "alice", "pending"] == 22
    assert found["slurm_account_jobs", '$evil"acc\\nount\\\\', "pending"] == 1
    assert found["slurm_account_cpus_allocated", "ml"] == 4
    assert found["slurm_account_gpus_allocated", "ml"] == 1
    assert found["slurm_partition_oldest_pending_timestamp_seconds", "gpu"] == 1795329277
    assert [each.number for each in counts.waiting] == [5, 7, 8]


def test_what_slurmctld_says_of_itself():
    """Microseconds become seconds, and requests are counted by kind and by user."""
    found = values(Scheduler().families(answer("diag", Statistics, "statistics")))
    assert found["slurm_scheduler_cycles_total",] == 9
    assert found["slurm_scheduler_cycle_seconds_total",] == pytest.approx(0.002568)
    assert found["slurm_rpcs_total", "REQUEST_SUBMIT_BATCH_JOB"] == 10
    assert found["slurm_user_rpc_seconds_total", "alice"] == pytest.approx(0.005104)


def test_partitions_and_reservations():
    """A partition that is down starts nothing, and a reservation has its hours."""
    found = dict(partitions(answer("partitions", list[PartitionRecord])))
    assert [(each.labels, each.value) for each in found[names.PARTITION_UP]] == [
        (("cpu",), 0),
        (("gpu",), 1),
        (("main",), 1),
    ]
    said = values(reservations(answer("reservations", list[ReservationRecord])))
    assert said["slurm_reservation_nodes", "maint"] == 2
    assert (
        said["slurm_reservation_end_timestamp_seconds", "maint"]
        - said["slurm_reservation_start_timestamp_seconds", "maint"]
        == 3600
    )


def node(*states, reason="", by=""):
    return SlurmNode("w-0", frozenset(states), reason, reason_by=by)


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (("IDLE",), "idle"),
        (("IDLE", "DRAIN"), "drained"),
        (("ALLOCATED", "DRAIN"), "draining"),
        (("IDLE", "COMPLETING", "DRAIN"), "draining"),
        (("DOWN", "DRAIN", "NOT_RESPONDING"), "down"),
        (("IDLE", "CLOUD", "POWERED_DOWN"), "powered_down"),
        (("DOWN", "CLOUD", "POWERED_DOWN"), "down"),
        (("IDLE", "DRAIN", "POWERED_DOWN"), "drained"),
        (("MIXED", "POWERING_UP"), "powering_up"),
        (("IDLE", "COMPLETING"), "completing"),
        (("SOMETHING_NEW",), "unknown"),
        ((), "unknown"),
    ],
)
def test_a_node_is_in_one_state(states, state):
    """The one that says most of what it can do, and one that Slurm has not told us of yet is unknown."""
    assert state_of(node(*states)) == state
    assert state in names.NODE_STATES


@pytest.mark.parametrize(
    ("reason", "by", "found"),
    [
        ("soperator: check gpu-xid: GPU 3 fell off", "slurm", ("check", "gpu-xid")),
        (
            "soperator: new pod template; its jobs end at 2026-01-01T00:00:00Z",
            "slurm",
            ("operator", "new pod template"),
        ),
        ("Kill task failed", "slurm", ("slurm", "Kill task failed")),
        ("rack 12\nbroken", "root", ("person", "rack # broken")),
        ("", "root", ("person", "drained")),
    ],
)
def test_who_took_a_node_out_and_why(reason, by, found):
    """A check by its name, the operator by its reason, slurmctld and people by their words, in which numbers are one."""
    assert outage_labels(node("IDLE", "DRAIN", reason=reason, by=by)) == found


def test_a_node_without_power_is_not_out():
    """It comes when a job wants it."""
    assert not is_out(node("IDLE", "CLOUD", "POWERED_DOWN"))
    assert not is_out(node("IDLE", "CLOUD", "POWERING_UP"))
    assert is_out(node("IDLE", "DRAIN", "POWERED_DOWN"))
    assert is_out(node("DOWN", "CLOUD", "POWERED_DOWN"))


def test_what_a_check_has_measured_is_told_while_it_fails():
    """Numbers alone, by node, check and value; the check is counted."""
    found = values(counted(NodeRecord("w-0", state=frozenset({"IDLE"}), extra=REPORT)).families())
    assert found["slurm_node_check_value", "w-0", "disk-full", "used"] == 97
    assert found["slurm_check_nodes", "disk-full", "failing"] == 1
    assert found["slurm_health_nodes", "Failing"] == 1
    assert not [key for key in found if key[-1] == "path"]


def test_without_series_of_nodes_only_sums_are_told():
    """`each` off: nothing has the label node."""
    families = counted(NodeRecord("w-0", state=frozenset({"IDLE"}), cpus=4), each=False).families()
    assert not [metric.name for metric, samples in families if "node" in metric.labels and samples]


def job(number, state, start=0, end=0, eligible=0, user="alice"):
    return JobRecord(
        number, [state], user, partition="main,gpu", eligible_time=eligible, start_time=start, end_time=end
    )


def waits(reason, nodes, partition="burst", array=None):
    return JobRecord(
        1, ["PENDING"], partition=partition, state_reason=reason, node_count=nodes, array_task_string=array
    )


def test_nodes_are_wanted_by_jobs_that_wait_for_nodes():
    """A job over eight nodes wants eight, an array of three jobs three; who waits for something else, or runs, wants none."""
    found = values(
        jobs(
            waits("Resources", 8),
            waits("Priority", 1, array="1-3"),
            waits("ReqNodeNotAvail, UnavailableNodes:burst-0", 2),
            waits("Dependency", 100),
            JobRecord(2, ["RUNNING"], partition="quiet", node_count=5),
        ).families()
    )
    assert found["slurm_partition_pending_nodes", "burst"] == 13
    assert ("slurm_partition_pending_nodes", "quiet") not in found


def test_nodes_are_wanted_of_the_nodesets_on_which_a_job_could_run():
    """That one which its constraint names, or else each of its partitions'; one that nobody wants has a number too, for who scales by it."""
    families = counted(
        *(
            NodeRecord(f"{name}-0", state=frozenset({"ALLOCATED"}), features=[name, "big"], partitions=["main", name])
            for name in ("owl", "cat")
        ),
        NodeRecord("fox-0", state=frozenset({"IDLE"}), features=["fox"], partitions=["wood"]),
        NodeRecord("login-1", state=frozenset({"IDLE"}), features=["other"], partitions=["main"]),
    )
    assert values(families.families())["slurm_nodeset_nodes", "owl", "allocated"] == 1
    assert families.sets == {"main": {"owl", "cat"}, "owl": {"owl"}, "cat": {"cat"}, "wood": {"fox"}}
    queue = JobCounts(JobCounters(), sets=families.sets)
    queue.take(waits("Resources", 8, partition="main", array="1-2"))
    queue.take(msgspec.structs.replace(waits("Resources", 4, partition="owl,main"), features="big&owl"))
    queue.take(waits("Priority", 1, partition="cat"))
    found = next(samples for metric, samples in queue.families() if metric is names.NODESET_WANTED)
    assert {each.labels: each.value for each in found} == {("owl",): 20, ("cat",): 17, ("fox",): 0}


def test_each_beginning_and_end_is_counted_once():
    """However often jobs are read, and also where something begins in the very second of an answer."""
    flow = JobCounters()
    history = [
        (100, [job(1, "RUNNING", start=90, eligible=50)]),
        (110, [job(1, "RUNNING", start=90, eligible=50), job(2, "RUNNING", start=105, eligible=100)]),
        (110, [job(2, "RUNNING", start=105, eligible=100), job(3, "RUNNING", start=110, eligible=10)]),
        (120, [job(2, "FAILED", start=105, end=115, eligible=100), job(3, "RUNNING", start=110, eligible=10)]),
        (
            130,
            [job(2, "FAILED", start=105, end=115, eligible=100), job(3, "COMPLETED", start=110, end=120, eligible=10)],
        ),
        (
            140,
            [job(2, "FAILED", start=105, end=115, eligible=100), job(3, "COMPLETED", start=110, end=120, eligible=10)],
        ),
    ]
    for moment, records in history:
        jobs(*records, flow=flow).settle(moment)
    found = values(flow.families())
    assert found["slurm_jobs_ended_total", "failed"] == 1
    assert found["slurm_jobs_ended_total", "completed"] == 1
    assert found["slurm_job_wait_seconds_count", "main"] == 2
    assert found["slurm_job_wait_seconds_sum", "main"] == 105
    assert found["slurm_job_wait_seconds_bucket", "main", "10"] == 1
    assert found["slurm_job_wait_seconds_bucket", "main", "+Inf"] == 2


def test_a_job_that_came_and_went_between_two_answers_is_counted():
    """Slurm tells of it for some minutes more."""
    flow = JobCounters()
    jobs(flow=flow).settle(100)
    jobs(job(1, "COMPLETED", start=101, end=102, eligible=101), flow=flow).settle(110)
    found = values(flow.families())
    assert found["slurm_jobs_ended_total", "completed"] == 1
    assert found["slurm_job_wait_seconds_count", "main"] == 1


def test_ten_thousand_users_have_fifty_series_and_one():
    """Those with most jobs by name, all others together, and none is lost."""
    records = [job(number, "PENDING", user=f"u{number % 10_000}") for number in range(10_100)]
    found = values(jobs(*records).families())
    users = {key: value for key, value in found.items() if key[0] == "slurm_user_jobs"}
    assert len(users) == names.USERS + 1
    assert users["slurm_user_jobs", "u0", "pending"] == 2
    assert sum(users.values()) == 10_100


@given(
    st.dictionaries(st.tuples(st.text(max_size=3), st.sampled_from(["a", "b"])), st.integers(1, 9)), st.integers(1, 5)
)
def test_folding_loses_nothing(counts, most):
    """The sum stays, and there are no more names than asked for, beside the others."""
    kept = top({name: count for (name, _), count in counts.items()}, most)
    samples = folded(counts, kept)
    assert sum(each.value for each in samples) == sum(counts.values())
    assert len({each.labels[0] for each in samples}) <= most + 1


def test_a_counter_keeps_its_name():
    """Who came first keeps the series, so that none ever goes back."""
    settled = SeriesNames(2)
    assert settled.names_after(["b", "a"]) == {"a", "b"}
    assert settled.names_after(["c", "a"]) == {"a", "b"}


def test_no_family_has_more_series_than_its_budget():
    """Also with more names of every kind than there is room for."""
    letters = ["".join(chr(97 + int(digit)) for digit in str(number)) for number in range(700)]
    many = [
        NodeRecord(f"w-{name}", state=frozenset({"IDLE", "DRAIN"}), reason=name, reason_set_by_user="root", cpus=4, extra=REPORT,
                   gres=f"gpu:{name}:1,{name}:1,b:1", features=[name], partitions=[name])
        for name in letters
    ]  # fmt: skip
    flow = JobCounters(since=1)
    waiting = (
        JobRecord(1, ["PENDING"], each, account=each, partition=each, state_reason=each, eligible_time=5)
        for each in letters
    )
    queue = jobs(*waiting, flow=flow)
    for name in letters:
        flow.began(name, 1.0)
    rpcs = [Rpc(1, 1, each, each) for each in letters]
    diag = Statistics(rpcs_by_message_type=rpcs, rpcs_by_user=rpcs)
    found = [*counted(*many).families(), *queue.families(), *Scheduler().families(diag)]
    over = []
    for metric, samples in found:
        allowed = metric.most * (len(many) if metric.per == "node" else 1)
        if len(list(samples)) > allowed:
            over.append((metric.name, len(list(samples)), allowed))
    assert over == []


def test_a_user_whom_slurmrestd_does_not_know_has_the_name_of_the_jail(tmp_path):
    """Users are made in the jail; one who is not there either is his number, and a file that is gone changes nothing."""
    passwd = tmp_path / "passwd"
    passwd.write_text("alice:x:1000:1000::/home/alice:/bin/bash\nodd:x\nbad:x:no:1::/:/\n")
    users = UserNames(passwd)
    users.refresh()
    jobs = JobCounts(JobCounters(), users)
    for number, (said, uid) in enumerate([("", 1000), ("", 1001), ("root", 0)]):
        jobs.take(JobRecord(number, ["RUNNING"], said, uid))
    jobs.settle(1)
    found = {each.labels[0] for metric, samples in jobs.families() if metric is names.USER_JOBS for each in samples}
    assert found == {"alice", "1001", "root"}
    said = Statistics(rpcs_by_user=[Rpc(3, 9, user="", user_id=1000)])
    counted = dict(Scheduler(users).families(said))
    assert [each.labels for each in counted[names.USER_RPCS]] == [("alice",)]
    passwd.unlink()
    users.refresh()
    assert users.name(None, 1000) == "alice"
    new = tmp_path / "new"
    new.write_text("bob:x:1001:1001::/:/\n")
    new.rename(passwd)
    users.refresh()
    assert (users.name("", 1001), users.name("", 1000)) == ("bob", "1000")
