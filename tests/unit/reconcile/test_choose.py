"""Before anything is done to a node Slurm is asked anew: about that node alone, or about all."""

from dataclasses import replace

from soperator.policy import drain_reasons
from soperator.policy.drain_reasons import SCALE_IN
from soperator.policy.workers.types import (
    AnnotatePod,
    ChangePolicy,
    Create,
    Delete,
    DrainNode,
    EndJobs,
    KubeNode,
    SignalJobs,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.reconcile.nodeset.decision import choose
from soperator.slurm.job import SlurmJob
from soperator.slurm.node import SlurmNode
from soperator.slurmrest.client import SlurmError


def node(index, *states, reason=""):
    return SlurmNode(f"w-{index}", frozenset(states), reason)


def seen(*nodes, wanted=0):
    pods = {index: WorkerPod(index, "new", "Running", False, True) for index in range(len(nodes))}
    return WorkerSnapshot("w", wanted, "new", pods, {each.name: each for each in nodes})


class Slurm:
    """What Slurm says by now; `asked` is what it was asked, `running` its list of jobs, `by_now` jobs as they are now."""

    def __init__(self, *nodes):
        self.now, self.asked = {each.name: each for each in nodes}, []
        self.running, self.jobs_refused, self.by_now, self.time = [], "", None, 0.0

    async def clock(self, _node):
        return self.time

    async def only(self, names):
        self.asked.append(sorted(names))
        if missing := set(names) - self.now.keys():
            raise SlurmError(f"Invalid node name specified: {missing}")
        return {name: self.now[name] for name in names}

    async def nodes(self):
        self.asked.append("all")
        return self.now

    async def jobs(self, _since=0.0):
        self.asked.append("jobs")
        if self.jobs_refused:
            raise SlurmError(self.jobs_refused)
        return self.running

    async def job(self, number):
        self.asked.append(number)
        by_now = {each.number: each for each in self.running} if self.by_now is None else self.by_now
        return by_now.get(number)


DRAINED = ("IDLE", "DRAIN")


async def test_a_node_is_asked_for_alone_before_its_pod_is_deleted():
    """The others need not be written down for it."""
    slurm = Slurm(node(0, *DRAINED, reason=SCALE_IN), node(1, "IDLE"))
    plan, failed = await choose(seen(*slurm.now.values(), wanted=1), slurm)
    assert [type(each) for each in plan.actions] == [Delete]
    assert (slurm.asked, failed) == ([["w-0"], "jobs"], "")


async def test_a_node_that_took_a_job_meanwhile_keeps_its_pod():
    """What was seen at the last poll is no reason for a deletion."""
    before = seen(node(0, *DRAINED, reason=SCALE_IN))
    slurm = Slurm(node(0, "ALLOCATED", "DRAIN", reason=SCALE_IN))
    plan, _ = await choose(before, slurm)
    assert plan.actions == ()


async def test_all_are_asked_for_when_the_answer_leads_to_another_node():
    """A resumed node is no surplus any more, and nothing is done to the one that is, before Slurm is asked about it too."""
    before = seen(node(0, "IDLE"), node(1, *DRAINED, reason=SCALE_IN), wanted=1)
    slurm = Slurm(node(0, *DRAINED, reason=SCALE_IN), node(1, "ALLOCATED"))
    plan, _ = await choose(before, slurm)
    assert "all" in slurm.asked
    assert [each.index for each in plan.actions if isinstance(each, Delete)] == [0]
    assert not any(isinstance(each, DrainNode) for each in plan.actions)


async def test_all_are_asked_for_when_slurm_does_not_know_one():
    """Its record went meanwhile: that is no failure."""
    before = seen(node(0, *DRAINED, reason=SCALE_IN))
    slurm = Slurm()
    _, failed = await choose(before, slurm)
    assert (slurm.asked, failed) == ([["w-0"], "all"], "")


async def test_many_are_asked_for_at_once():
    """One answer about all is less than hundreds about one each."""
    slurm = Slurm(*(node(index, "IDLE") for index in range(20)))
    plan, _ = await choose(seen(*slurm.now.values()), slurm)
    assert slurm.asked == ["all"]
    assert len(plan.actions) == 20


async def test_without_an_answer_nothing_is_done():
    """And the status says why."""

    class Silent(Slurm):
        async def nodes(self):
            raise SlurmError("connection refused")

    plan, failed = await choose(seen(node(0, *DRAINED, reason=SCALE_IN)), Silent())
    assert plan.actions == ()
    assert "connection refused" in failed


BUSY = ("ALLOCATED",)


async def test_a_busy_node_is_drained_though_the_jobs_cannot_be_listed():
    """Of whom is drained first the jobs tell, but a drain ends none: without their list it must not stay out."""
    slurm = Slurm(node(0, *BUSY), node(1, *BUSY))
    slurm.jobs_refused = "the list of jobs has not arrived yet"
    plan, said = await choose(seen(*slurm.now.values(), wanted=1), slurm)
    assert [each.index for each in plan.actions if isinstance(each, DrainNode)] == [1]
    assert "the list of jobs is missing" in said
    assert plan.again is not None
    assert plan.again <= 5.0


async def test_the_node_whose_jobs_end_first_is_drained_where_the_jobs_are_known():
    """The order is the one thing that the list is for."""
    slurm = Slurm(node(0, *BUSY), node(1, *BUSY))
    slurm.running = [SlurmJob(7, frozenset({"w-0"}), 50.0), SlurmJob(8, frozenset({"w-1"}), 90.0)]
    plan, said = await choose(seen(*slurm.now.values(), wanted=1), slurm)
    assert [each.index for each in plan.actions if isinstance(each, DrainNode)] == [0]
    assert said == ""


def pressed(end=""):
    """A worker whose drain has come to its end, as `on_failure` says."""
    draining = node(0, "ALLOCATED", "DRAIN", reason=f"{SCALE_IN}{end}")
    policy = ChangePolicy(drain_timeout=60.0, warning_period=0.0, on_timeout="Cancel", warning_signal="USR1")
    return WorkerSnapshot(
        "w", 0, "new", {0: WorkerPod(0, "new", "Running", False, True)}, {"w-0": draining}, policy=policy, now=1e9
    )


OVER = "; its jobs end at 1999-01-01T00:00:00+00:00"


async def test_a_job_that_went_elsewhere_since_the_list_was_made_is_not_ended():
    """It was requeued and runs on another node by now, under the same number; only what holds this node ends."""
    before = pressed(OVER)
    slurm = Slurm(*before.nodes.values())
    slurm.running = [SlurmJob(number, frozenset({"w-0"})) for number in (7, 8, 9)]
    slurm.by_now = {7: SlurmJob(7, frozenset({"w-5"})), 9: SlurmJob(9, frozenset({"w-0"}))}
    plan, _ = await choose(before, slurm)
    assert [job.number for each in plan.actions if isinstance(each, EndJobs) for job in each.jobs] == [9]


async def test_nobody_is_warned_or_ended_while_the_jobs_are_not_known():
    """A warning that reaches no job would start their time nevertheless."""
    for end in ("", OVER):
        before = pressed(end)
        slurm = Slurm(*before.nodes.values())
        slurm.jobs_refused = "the list of jobs has not arrived yet"
        plan, said = await choose(before, slurm)
        assert not [each for each in plan.actions if isinstance(each, SignalJobs | EndJobs)]
        assert "no job is warned or ended" in said


SUSPENDED = SlurmJob(7, frozenset({"w-0"}))


async def test_a_node_with_a_suspended_job_keeps_its_pod():
    """Slurm calls the node drained, and the job's processes are stopped in its memory: only the list of jobs tells."""
    slurm = Slurm(node(0, *DRAINED, reason=SCALE_IN))
    slurm.running = [SUSPENDED]
    plan, _ = await choose(seen(*slurm.now.values()), slurm)
    assert not any(isinstance(each, Delete) for each in plan.actions)
    assert "job 7" in plan.said
    assert plan.again is not None, "no state of the node tells when the job is cancelled"


async def test_a_node_that_is_drained_keeps_its_pod_while_its_jobs_cannot_be_listed():
    """No answer means busy."""
    slurm = Slurm(node(0, *DRAINED, reason=SCALE_IN))
    slurm.jobs_refused = "no answer within 10 s"
    plan, failed = await choose(seen(*slurm.now.values()), slurm)
    assert not any(isinstance(each, Delete) for each in plan.actions)
    assert "no answer within 10 s" in failed


async def test_a_node_is_drained_although_the_jobs_cannot_be_listed():
    """The list says which of two busy nodes disturbs less; without it no job may start all the same."""
    slurm = Slurm(node(0, "ALLOCATED"))
    slurm.jobs_refused = "no answer within 10 s"
    plan, failed = await choose(seen(*slurm.now.values()), slurm)
    assert [type(each) for each in plan.actions] == [DrainNode]
    assert "no answer within 10 s" in failed


async def test_a_drained_worker_stays_protected_from_eviction_while_a_suspended_job_is_on_it():
    """Whoever empties the Node would end the job with the pod."""
    slurm = Slurm(node(0, *DRAINED, reason=drain_reasons.reason("Node m is cordoned")))
    slurm.running = [SUSPENDED]
    given = seen(*slurm.now.values(), wanted=1)
    machine = KubeNode("m", leaving="Node m is cordoned")
    given = replace(given, pods={0: replace(given.pods[0], machine="m")}, machines={"m": machine})
    plan, _ = await choose(given, slurm)
    assert all(each.protected for each in plan.actions if isinstance(each, AnnotatePod))


async def test_without_a_client_an_older_answer_deletes_and_drains_nothing():
    """The client is dropped when the key was rotated; the last answer still counts for some seconds, and no pod goes by it."""
    plan, _ = await choose(seen(node(0, *DRAINED, reason=SCALE_IN), node(1, "IDLE")), None)
    assert not any(isinstance(each, Delete | DrainNode) for each in plan.actions)


async def test_a_pod_that_the_cache_calls_pending_is_drained_where_slurm_hears_its_node():
    """The cache may trail by as long as a watch is silent; a slurmd that answers has begun, and may have a job."""
    slurm = Slurm(node(0, "ALLOCATED"))
    given = seen(*slurm.now.values())
    given = replace(given, pods={0: replace(given.pods[0], phase="Pending", ready=False)})
    plan, _ = await choose(given, slurm)
    assert [type(each) for each in plan.actions] == [DrainNode]


async def test_a_pod_that_never_began_goes_at_once_whatever_is_left_of_its_name():
    """A record that says DOWN, or that the node is being woken, is no slurmd."""
    for states in (("DOWN", "NOT_RESPONDING"), ("IDLE", "POWERING_UP")):
        slurm = Slurm(node(0, *states))
        given = seen(*slurm.now.values())
        given = replace(given, pods={0: replace(given.pods[0], phase="Pending", ready=False)})
        plan, _ = await choose(given, slurm)
        assert [type(each) for each in plan.actions] == [Delete]


async def test_a_job_that_has_ended_since_the_list_was_made_holds_no_worker():
    """The node is drained by now, and the list of some seconds ago still has the job: it is asked for alone."""
    slurm = Slurm(node(0, *DRAINED, reason=SCALE_IN))
    slurm.running, slurm.by_now = [SUSPENDED], {}
    plan, _ = await choose(seen(*slurm.now.values()), slurm)
    assert [type(each) for each in plan.actions] == [Delete]


def test_a_node_of_somebody_else_is_not_taken_for_one_of_ours():
    """w-007 is no w-7."""
    assert seen(SlurmNode("w-007", frozenset({"IDLE"}))).without_pod == []


async def test_a_pod_is_not_made_before_the_former_record_of_its_node_is_removed():
    """slurmrestd failed just then, as while it is replaced: with its former record the node would keep the features that it had."""

    class Silent(Slurm):
        async def only(self, names):
            raise SlurmError("slurmrestd: GET nodes/: ReadError")

        async def nodes(self):
            raise SlurmError("slurmrestd: GET nodes/: ReadError")

    before = WorkerSnapshot("w", 2, "a", {}, {"w-0": node(0, "DOWN")})
    plan, failed = await choose(before, Silent())
    assert [each.index for each in plan.actions if isinstance(each, Create)] == [1]
    assert "ReadError" in failed
    plan, failed = await choose(before, Slurm(node(0, "DOWN")))
    assert [each.index for each in plan.actions if isinstance(each, Create)] == [0, 1]
    assert failed == ""


async def test_a_job_that_began_just_before_the_drain_is_warned():
    """A list that was made before the drain lacks it: it would end without a warning."""

    class Cached(Slurm):
        async def jobs(self, since=float("-inf")):
            return [] if since == float("-inf") else self.running

    before = pressed()
    slurm = Cached(*before.nodes.values())
    slurm.running = [SlurmJob(7, frozenset({"w-0"}))]
    plan, _ = await choose(before, slurm)
    assert [job.number for each in plan.actions if isinstance(each, SignalJobs) for job in each.jobs] == [7]
