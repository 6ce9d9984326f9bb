"""The policy over nodes that sleep, case by case and against a Slurm and a Kubernetes that are interrupted anywhere."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from soperator.policy.drain_reasons import SCALE_IN
from soperator.policy.workers import on_demand, power_states
from soperator.policy.workers.types import (
    Create,
    Delete,
    DrainNode,
    OnDemand,
    SetPodCondition,
    UpdateNodes,
    Verb,
    WorkerPod,
    WorkerSnapshot,
)
from soperator.slurm.node import Shape, SlurmNode
from tests.examples import examples
from tests.unit.policy.bedroom import RESUME, Bedroom

NOW = 1e6
WISH = OnDemand(least=0, most=2, idle=60, resume=RESUME, backoff=120)
SHAPE = Shape(1, 512, frozenset({"w"}))


def pod(index, template="new", phase="Running", **more):
    said = {"ready_since": NOW - 600.0, "machine": "m0", "born": NOW - 600.0} | more
    return WorkerPod(index, template, phase, said.pop("deleting", False), said.pop("ready", True), **said)


def node(index, *states, reason="", **more):
    return SlurmNode(f"w-{index}", frozenset(states), reason, **more)


def asleep(index, *states, **more):
    return node(index, *(states or ("IDLE",)), "CLOUD", "POWERED_DOWN", **more)


def decide(pods, nodes, ending="", **wish):
    known = None if nodes is None else {each.name: each for each in nodes}
    known_pods = {each.index: each for each in pods}
    seen = WorkerSnapshot("w", 0, "new", known_pods, known, now=NOW, ending=ending, on_demand=replace(WISH, **wish))
    return on_demand.decide(seen)


def said(plan):
    """The actions in short."""
    return [
        (each.verb.name, *each.indexes) if isinstance(each, UpdateNodes) else (type(each).__name__, each.index)
        for each in plan.actions
        if not isinstance(each, SetPodCondition)
    ]


class TestDecide:
    """One situation, one answer."""

    def test_nodes_that_slurm_does_not_know_are_made_in_one_request(self):
        """However many there are to be, they are made known, asleep, and have no pod."""
        assert said(decide([], [], most=1000)) == [("RECORD", *range(1000))]

    def test_a_node_that_sleeps_costs_nothing(self):
        """A record is all there is of it."""
        plan = decide([], [asleep(0), asleep(1)])
        assert (said(plan), plan.said, plan.again) == ([], "", None)

    def test_a_node_that_slurm_wakes_gets_its_pod(self):
        """Exactly those that Slurm asked for."""
        assert said(decide([], [node(0, "ALLOCATED", "POWERING_UP"), asleep(1)])) == [("Create", 0)]

    def test_a_node_that_is_told_to_wake_by_hand_gets_its_pod(self):
        """`scontrol power up` shows as POWER_UP before Slurm acts on it."""
        assert said(decide([], [asleep(0, "IDLE", "POWER_UP"), asleep(1)])) == [("Create", 0)]

    def test_a_waking_node_with_a_pod_is_waited_for(self):
        """And it is said for what it waits."""
        waiting = pod(0, phase="Pending", ready=False, born=NOW - 5, machine="", trouble="Unschedulable: no machine")
        plan = decide([waiting], [node(0, "ALLOCATED", "POWERING_UP"), asleep(1)])
        assert (said(plan), plan.said) == ([], "waking: w-0 (Unschedulable: no machine)")
        assert plan.again == RESUME - 5 + 0.1

    def test_a_node_that_idled_long_is_told_to_sleep_and_keeps_its_pod_until_it_does(self):
        """The pod goes when Slurm says that the node goes, for only Slurm knows of the job that came meanwhile."""
        idle = node(0, "IDLE", last_busy=NOW - 60)
        assert said(decide([pod(0)], [idle, asleep(1)])) == [("SLEEP", 0)]
        assert said(decide([pod(0)], [replace(idle, last_busy=NOW - 59), asleep(1)])) == []
        assert said(decide([pod(0)], [node(0, "IDLE", "POWERING_DOWN"), asleep(1)])) == [("Delete", 0)]
        assert said(decide([pod(0)], [asleep(0), asleep(1)])) == [("Delete", 0)]

    def test_a_node_with_a_job_is_never_told_to_sleep(self):
        """However long ago it was idle."""
        for state in ("ALLOCATED", "MIXED", "COMPLETING"):
            assert said(decide([pod(0)], [node(0, state), asleep(1)])) == []

    def test_a_drained_node_stays_awake(self):
        """Its sleep would take the drain away."""
        drained = node(0, "IDLE", "DRAIN", reason="bad disk", reason_by="root")
        assert said(decide([pod(0)], [drained, asleep(1)])) == []

    def test_so_many_as_are_wanted_stay_awake(self):
        """And where fewer are, the lowest sleeper is told to wake, once."""
        idle = [node(0, "IDLE"), node(1, "IDLE", last_busy=NOW - 70)]
        assert said(decide([pod(0), pod(1)], idle, least=1)) == [("SLEEP", 0)]
        assert said(decide([], [asleep(0), asleep(1)], least=1)) == [("WAKE", 0)]
        assert said(decide([], [asleep(0, "IDLE", "POWER_UP"), asleep(1)], least=1)) == [("Create", 0)]

    def test_no_answer_from_slurm_makes_and_takes_no_pod(self):
        """What is not known is busy."""
        plan = decide([pod(0), pod(1, "old")], None)
        assert (said(plan), plan.said) == ([], "rollout: 0 of 2 are new, it waits for Slurm's answer")

    def test_where_no_machine_is_had_all_that_sleep_are_denied_too(self):
        """Slurm then gives the jobs to other nodes, or says why they wait, in one request."""
        late = pod(0, phase="Pending", ready=False, machine="", born=NOW - RESUME, trouble="Unschedulable: no machine")
        plan = decide([late], [node(0, "ALLOCATED", "POWERING_UP"), asleep(1)])
        assert said(plan) == [("DENY", 0, 1)]
        assert plan.actions[0].why == "soperator: no capacity: Unschedulable: no machine"

    def test_a_node_that_does_not_register_is_denied_alone(self):
        """Its machine is there, so others may fare better."""
        late = pod(0, ready=False, born=NOW - RESUME)
        assert said(decide([late], [node(0, "ALLOCATED", "POWERING_UP"), asleep(1)])) == [("DENY", 0)]

    def test_a_denied_node_goes_to_sleep_and_is_tried_again_later(self):
        """Its pod goes; after the back-off Slurm may use it again."""
        denied = {"reason": f"{power_states.DENIED}no machine", "reason_at": NOW - 119}
        waiting = pod(0, phase="Pending", ready=False)
        assert said(decide([waiting], [node(0, "DOWN", "POWERING_UP", **denied), asleep(1)])) == [("SLEEP", 0), ("Delete", 0)]  # fmt: skip
        plan = decide([], [asleep(0, "DOWN", **denied), asleep(1)])
        assert (said(plan), plan.again) == ([], 1.1)
        assert said(decide([], [asleep(0, "DOWN", **denied | {"reason_at": NOW - 120}), asleep(1)])) == [("ALLOW", 0)]

    def test_what_slurmctld_gave_up_itself_is_tried_again_too(self):
        """It does so where no operator was there."""
        given_up = asleep(0, "DOWN", reason="ResumeTimeout reached", reason_at=NOW - 120, reason_by="slurm")
        assert said(decide([], [given_up, asleep(1)])) == [("ALLOW", 0)]

    def test_a_sleeper_of_whom_slurm_awaits_a_response_is_put_to_sleep_again(self):
        """As one that a person resumed; not while it is to be drained or has a job, and it is woken after that."""
        assert said(decide([], [asleep(0, "IDLE", "NOT_RESPONDING"), asleep(1)])) == [("SLEEP", 0)]
        assert said(decide([], [asleep(0, "IDLE", "NOT_RESPONDING"), asleep(1)], least=1)) == [
            ("SLEEP", 0),
            ("WAKE", 1),
        ]
        for state in ("DRAIN", "ALLOCATED"):
            assert (
                said(decide([], [asleep(0, "NOT_RESPONDING", state, reason="disk", reason_by="eve"), asleep(1)])) == []
            )

    def test_what_a_person_took_out_is_left(self):
        """DOWN by an administrator is no matter of time."""
        assert said(decide([], [asleep(0, "DOWN", reason="bad disk", reason_by="root"), asleep(1)])) == []

    def test_a_slurmd_that_was_there_before_slurm_asked_is_made_anew(self):
        """Slurm waits for one that boots after its request."""
        stale = node(0, "ALLOCATED", "POWERING_UP", "NOT_RESPONDING")
        assert said(decide([pod(0, ready_since=NOW - 21)], [stale, asleep(1)])) == [("Delete", 0)]
        assert said(decide([pod(0, ready_since=NOW - 19)], [stale, asleep(1)])) == []

    def test_a_pod_that_is_lost_under_a_job_comes_back(self):
        """Its slurmd tells Slurm that the job is gone; without a job the node goes to sleep."""
        assert said(decide([], [node(0, "ALLOCATED"), asleep(1)])) == [("Create", 0)]
        assert said(decide([], [node(0, "IDLE"), asleep(1)])) == [("SLEEP", 0)]
        assert said(decide([], [node(0, "DOWN", reason="Not responding"), asleep(1)])) == [("SLEEP", 0)]
        assert said(decide([], [asleep(0, "DOWN", reason="Not responding"), asleep(1)])) == [("ALLOW", 0)]

    def test_another_size_makes_the_records_of_sleepers_anew(self):
        """A node that is awake keeps its own until the rollout has it."""
        other, same = replace(SHAPE, cpus=2), SHAPE
        nodes = [asleep(0, shape=other), node(1, "ALLOCATED", shape=other)]
        assert said(decide([pod(1)], nodes, shape=same)) == [("ERASE", 0)]
        assert said(decide([], [asleep(0, shape=same), asleep(1, shape=same)], shape=same)) == []

    def test_a_new_template_drains_who_is_awake_and_nobody_else(self):
        """Its record is then made anew, asleep."""
        nodes = [asleep(0), node(1, "IDLE", last_busy=NOW)]
        assert said(decide([pod(1, "old")], nodes)) == [("DrainNode", 1)]
        drained = node(1, "IDLE", "DRAIN", reason="soperator: new pod template")
        assert said(decide([pod(1, "old")], [asleep(0), drained])) == [("Delete", 1)]
        assert said(decide([], [asleep(0), drained])) == [("ERASE", 1)]

    def test_fewer_nodes_are_wanted(self):
        """Sleepers above max are forgotten at once; who is awake is drained first, and who wakes for a job may do it."""
        assert said(decide([], [asleep(0), asleep(1)], most=1)) == [("ERASE", 1)]
        plan = decide([pod(1)], [asleep(0), node(1, "ALLOCATED")], most=1)
        assert [each for each in plan.actions if isinstance(each, DrainNode)] == [DrainNode(1, SCALE_IN)]
        assert said(decide([], [asleep(0), node(1, "ALLOCATED", "POWERING_UP")], most=1)) == [("Create", 1)]

    def test_a_nodeset_that_is_deleted_forgets_its_sleepers_and_drains_the_others(self):
        """No record is made, nothing is woken."""
        plan = decide([pod(1)], [asleep(0), node(1, "ALLOCATED")], ending="soperator: the end", least=2)
        assert said(plan) == [("ERASE", 0), ("DrainNode", 1)]

    def test_a_nodeset_that_is_deleted_takes_the_records_along_that_a_person_drained(self):
        """As those of other workers: the drain of a record that nobody can use any more would keep it for ever."""
        drained = asleep(0, "IDLE", "DRAIN", reason="the fan is loud", reason_by="root")
        assert said(decide([], [drained], most=0)) == []
        assert said(decide([], [drained], ending="soperator: the end")) == [("ERASE", 0)]


STEPS = st.one_of(
    st.tuples(st.just("operate"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["submit", "finish", "cancel", "run", "vanish", "kill", "power_up", "power_down"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["pass_time"]), st.sampled_from([1, 5, 21, 70, 130])),
    st.tuples(st.sampled_from(["full", "room"]), st.just(0)),
)  # fmt: skip


@settings(max_examples=examples(30))
@given(st.integers(0, 2), st.lists(STEPS, max_size=40))
def test_interrupted_anywhere_no_job_is_lost_and_all_go_to_sleep_in_the_end(least, steps):
    """Whatever happens in between: no pod goes under a job, nothing is woken twice, and in the end the jobs have run and all sleep again."""
    room = Bedroom(replace(WISH, least=least, most=4))
    for what, number in steps:
        getattr(room, what)(number)
    room.settle()
    assert room.waiting == 0
    assert room.lost == set()
    assert len(room.pods) == least
    assert sum(power_states.phase_of(each) is power_states.Phase.ASLEEP for each in room.nodes.values()) == 4 - least


def test_a_job_that_is_cancelled_while_its_node_wakes_leaves_no_pod_behind():
    """The node comes up, idles, and goes to sleep."""
    room = Bedroom(replace(WISH, most=4))
    room.settle()
    room.submit(1)
    room.pass_time(1)
    room.operate(1000)
    assert list(room.pods) == [0]
    room.cancel(0)
    room.settle()
    assert not room.pods


def test_an_operator_that_was_away_catches_up():
    """Slurm woke nodes and put some to sleep meanwhile: who is to be awake gets a pod, whoever sleeps loses it."""
    room = Bedroom(replace(WISH, most=4))
    room.settle()
    for _ in range(3):
        room.submit(1)
    room.pass_time(1)
    room.pass_time(RESUME)
    room.operate(1000)
    assert sorted(room.pods) == [0, 1, 2]
    assert all(isinstance(each, Create | Delete | UpdateNodes) for each in room.taken)
    assert not [each for each in room.taken if isinstance(each, UpdateNodes) and each.verb is Verb.WAKE]
