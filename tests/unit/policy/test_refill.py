"""The policy over the jail's filling, case by case and against a simulated cluster that is interrupted anywhere."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soperator.policy.cluster.jail_refill import (
    OVERWRITE,
    JailSnapshot,
    JailStep,
    PopulateJob,
    decide,
    drain_reason,
    held,
)
from soperator.policy.workers.types import Delete, WorkerPod
from soperator.policy.workers.types import WorkerSnapshot as Workers
from soperator.slurm.node import SlurmNode
from tests.examples import examples

QUIET = JailSnapshot("", False, PopulateJob(is_complete=True), False, True, False, 1, {}, {})


def node(*states, reason="", name="w-0"):
    return {name: SlurmNode(name, frozenset(states), reason)}


def worker(name="w-0"):
    return {name: WorkerPod(0, "t", "Running", False, True)}


class TestDecide:
    """One situation, one answer."""

    def test_a_filled_jail_needs_nothing(self):
        """Without a request nothing is done, drained or closed."""
        assert decide(QUIET) == JailStep()

    def test_an_empty_claim_is_filled_before_anybody_logs_in(self):
        """The Job is made at once; login and workers wait for it."""
        first = replace(QUIET, job=None, was_up=False, login_pods=0, nodes=None)
        assert decide(first) == JailStep("make", login=False, hold=True)
        assert decide(replace(first, job=PopulateJob())) == JailStep(login=False, hold=True)

    def test_a_job_that_is_looked_for_again_disturbs_nobody(self):
        """If somebody deletes the Job of a cluster that is up, it is made again beside login and workers."""
        assert decide(replace(QUIET, job=None)) == JailStep("make")

    def test_gaps_are_filled_while_everything_runs(self):
        """A request of mode Missing replaces the Job and nothing else."""
        asked = replace(QUIET, request="a", nodes=node("ALLOCATED"), workers=worker())
        assert decide(asked) == JailStep("drop", why="its former Job is being deleted")
        assert decide(replace(asked, job=None)) == JailStep("make")
        assert decide(replace(asked, job=None, has_live_pods=True)).job == "keep"
        assert decide(replace(asked, job=PopulateJob("a"))) == JailStep()

    def test_an_overwrite_first_drains(self):
        """The node with a job is drained, login stays, and the sentence names what is waited for."""
        asked = replace(QUIET, request="a", overwrites=True, nodes=node("ALLOCATED"), workers=worker())
        step = decide(asked)
        assert (step.job, step.login, step.hold, step.drain) == ("keep", True, True, ("w-0",))
        assert step.why == "request a, to fill it again, waits for the jobs on w-0"

    @pytest.mark.parametrize("was_up", [True, False])
    def test_an_overwrite_touches_nothing_while_another_cluster_is_in_the_jail(self, was_up):
        """What had been drained takes jobs again, and who had no login gets none."""
        nodes = node("IDLE", "DRAIN", reason=OVERWRITE)
        asked = replace(QUIET, request="a", overwrites=True, nodes=nodes, was_up=was_up, others="the pods of other")
        why = "request a, to fill it again, waits for the pods of other"
        assert decide(asked) == JailStep(login=was_up, hold=not was_up, resume=("w-0",), why=why)
        assert decide(replace(asked, job=None)).job == "keep"

    @pytest.mark.parametrize(
        ("nodes", "words"),
        [
            (None, "an answer from Slurm"),
            (node("IDLE", "COMPLETING", "DRAIN"), "the jobs on w-0"),
            (node("ALLOCATED", "DRAIN"), "the jobs on w-0"),
            (node("IDLE"), "w-0 to be drained"),
            ({}, "Slurm to know w-0"),
        ],
    )
    def test_whatever_is_not_known_to_be_at_rest_is_waited_for(self, nodes, words):
        """Silence, unknown nodes and jobs that end all count as busy."""
        step = decide(replace(QUIET, request="a", overwrites=True, nodes=nodes, workers=worker()))
        assert step.job == "keep"
        assert step.why.endswith(f"waits for {words}")

    def test_then_it_closes_login_and_only_then_fills(self):
        """With all nodes drained login goes; with no login pod left the Job is made."""
        rest = replace(
            QUIET, request="a", overwrites=True, nodes=node("IDLE", "DRAIN", reason=OVERWRITE), workers=worker()
        )
        assert decide(rest) == JailStep(
            login=False, hold=True, why="request a, to fill it again, waits for the login pods to end"
        )
        closed = replace(rest, login_pods=0, is_login_closed=True)
        assert decide(closed).job == "drop"
        assert decide(replace(closed, job=None)) == JailStep("make", login=False, hold=True)

    def test_when_it_is_done_our_drains_are_taken_back_and_no_others(self):
        """A node that an administrator drained stays drained."""
        nodes = node("IDLE", "DRAIN", reason=OVERWRITE) | node("IDLE", "DRAIN", reason="bad disk", name="w-1")
        done = replace(QUIET, request="a", overwrites=True, job=PopulateJob("a", True, True, True), nodes=nodes)
        assert decide(done) == JailStep(resume=("w-0",))

    def test_a_reason_in_its_own_words_that_a_person_gave_is_not_signed_as_its_own(self):
        """A node that a person set DOWN is drained too; signed by SlurmUser in these words, that drain would be lifted afterwards."""
        down = SlurmNode("w-0", frozenset({"DOWN"}), OVERWRITE, reason_by="root")
        assert drain_reason(down) == "the jail is to be filled again"
        assert drain_reason(replace(down, reason="bad disk")) == "bad disk"

    def test_a_withdrawn_request_that_is_under_way_is_finished_first(self):
        """The claim may be half-way: login stays closed until the Job has completed."""
        step = decide(replace(QUIET, job=PopulateJob("a", overwrites=True), login_pods=0, is_login_closed=True))
        assert (step.job, step.login, step.hold) == ("keep", False, True)
        assert step.why == "request a is carried out; the present request, none, follows it"

    def test_a_half_way_jail_stays_closed_when_its_job_is_deleted_too(self):
        """With the Job and the request gone only the closed login and our drains tell: the next Job runs before anybody else."""
        lost = replace(QUIET, job=None, login_pods=0, is_login_closed=True)
        drained = replace(QUIET, job=None, nodes=node("IDLE", "DRAIN", reason=OVERWRITE))
        for seen in (lost, drained):
            assert decide(seen) == JailStep("make", login=False, hold=True)
            step = decide(replace(seen, job=PopulateJob()))
            assert (step.job, step.login, step.hold, step.resume) == ("keep", False, True, ())

    def test_a_withdrawn_request_that_has_only_drained_is_undone(self):
        """Nothing was made yet, so the nodes take jobs again."""
        assert decide(replace(QUIET, nodes=node("IDLE", "DRAIN", reason=OVERWRITE))) == JailStep(resume=("w-0",))

    def test_a_corrected_overwrite_is_made_anew_with_everything_still_closed(self):
        """A Job that failed for its spec is replaced when the spec is another one."""
        failed = replace(
            QUIET, request="a", overwrites=True, job=PopulateJob("a", True, is_current=False), login_pods=0
        )
        assert decide(failed) == JailStep("drop", login=False, hold=True, why="its former Job is being deleted")

    def test_while_the_jail_is_replaced_only_pods_that_have_not_started_go(self):
        """None may start on a jail that is half-way; those that run are held, whatever is wanted."""
        pods = [
            WorkerPod(0, "old", "Running", False, True),
            WorkerPod(1, "new", "Pending", False, False),
            WorkerPod(2, "new", "Pending", True, False),
        ]
        seen = Workers("w", 0, "new", {each.index: each for each in pods}, node("IDLE"))
        assert held(seen) == [Delete(1, "the jail is being replaced, and the pod's containers do not run")]


@dataclass
class World:
    """A claim, Slurm, login and the Job; jobs start wherever Slurm would start them."""

    request: str = ""
    overwrites: bool = True
    done: str = ""
    job: PopulateJob | None = None
    live: bool = False
    replicas: int = 1
    login_pods: int = 1
    halfway: bool = False
    nodes: dict[str, SlurmNode] = field(default_factory=lambda: node("ALLOCATED") | node("IDLE", name="w-1"))

    def look(self, answered):
        request = "" if self.request == self.done else self.request
        return JailSnapshot(
            request,
            self.overwrites and bool(request),
            self.job,
            self.live,
            True,
            self.replicas == 0,
            max(self.login_pods, self.replicas),
            dict(self.nodes) if answered else None,
            {name: WorkerPod(0, "t", "Running", False, True) for name in self.nodes},
        )

    def take(self, step, count):
        """Carry out so many of a step's parts, in the order of a pass."""
        if self.job and self.job.is_complete and self.job.request:
            self.done = self.job.request
        acts = [lambda name=name: self.drain(name) for name in step.drain]
        acts += [lambda: setattr(self, "replicas", 1 if step.login else 0)]
        acts += [lambda: self.change(step.job)]
        acts += [lambda name=name: self.resume(name) for name in step.resume]
        for act in acts[:count]:
            act()

    def drain(self, name):
        self.nodes[name] = replace(self.nodes[name], states=self.nodes[name].states | {"DRAIN"}, reason=OVERWRITE)

    def resume(self, name):
        assert not self.halfway
        self.nodes[name] = replace(self.nodes[name], states=self.nodes[name].states - {"DRAIN"}, reason="")

    def change(self, what):
        if what == "drop":
            self.job = None
        if what == "make":
            assert self.job is None
            assert not self.live
            request = "" if self.request == self.done else self.request
            self.job, self.live = PopulateJob(request, self.overwrites and bool(request)), True

    def job_works(self, _):
        """The pod of the Job begins: an overwrite moves homes about."""
        if self.live and self.job and self.job.overwrites:
            assert not any("ALLOCATED" in each.states for each in self.nodes.values()), (
                "a job runs on a jail that is replaced"
            )
            assert self.login_pods == 0, "somebody is logged in to a jail that is replaced"
            self.halfway = True

    def job_ends(self, ends):
        """It completes, or its pod dies, or somebody deletes it."""
        if self.job and ends == 0:
            self.job, self.live, self.halfway = replace(self.job, is_complete=True), False, False
        elif ends == 1:
            self.live = False
        elif self.job and ends == 2:
            self.job = None
        else:
            self.live = False

    def login_follows(self, _):
        assert not (self.halfway and self.replicas), "login opens on a jail that is half-way"
        self.login_pods = self.replicas

    def starts(self, index):
        at = self.nodes[f"w-{index % 2}"]
        if not at.is_draining:
            self.nodes[at.name] = replace(at, states=frozenset({"ALLOCATED"}))

    def ends(self, index):
        at = self.nodes[f"w-{index % 2}"]
        self.nodes[at.name] = replace(at, states=at.states - {"ALLOCATED"} | {"IDLE"})


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.just(9)),
        st.tuples(st.just("pass"), st.just(9)),
        st.tuples(st.sampled_from(["pass", "blind"]), st.integers(0, 6)),
        st.tuples(st.just("ask"), st.sampled_from(["a", "a", "b", ""])),
        st.tuples(st.just("mode"), st.sampled_from([True, True, False])),
        st.tuples(st.sampled_from(["job_works", "login_follows", "starts", "ends"]), st.integers(0, 1)),
        st.tuples(st.sampled_from(["login_follows", "job_works"]), st.just(0)),
        st.tuples(st.just("job_ends"), st.integers(0, 2)),
    ),
    min_size=5,
    max_size=50,
)


@settings(max_examples=examples(300), deadline=None)
@given(STEPS)
def test_nobody_works_in_a_jail_that_is_replaced_and_it_converges(steps):
    """A pass may be cut off after any action, Slurm may be silent, the Job may die: no job and no session meets a half-way jail, and all resumes."""
    world = World()
    for step, value in steps:
        match step:
            case "pass" | "blind":
                world.take(decide(world.look(step == "pass")), value)
            case "ask":
                world.request = value
            case "mode":
                world.overwrites = value
            case _:
                getattr(world, step)(value)
    for turn in range(40):
        world.take(decide(world.look(True)), 99)
        world.job_works(0)
        world.login_follows(0)
        if turn > 5:
            world.ends(0)
            world.ends(1)
        world.job_ends(0)
    assert world.job is not None
    assert world.job.is_complete
    assert world.request in ("", world.done, world.job.request)
    assert (world.login_pods, world.replicas) == (1, 1)
    assert not any(each.is_draining for each in world.nodes.values())
