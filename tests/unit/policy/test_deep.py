"""The policy over deep checks, in generated histories in which the operator dies at every step."""

from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soperator.checks.evaluate import Verdict
from soperator.policy.healthcheck import single_node
from soperator.policy.healthcheck import status_codec as status_codec
from soperator.policy.healthcheck.invariants import violation
from soperator.policy.healthcheck.single_node import PATIENCE
from soperator.policy.healthcheck.types import (
    Cancel,
    CheckHistory,
    CheckPolicy,
    CheckTarget,
    RedrainNode,
    ResumeNode,
    Run,
    RunResult,
    Submit,
)
from soperator.policy.maintenance_window import latest
from soperator.slurm.node import SlurmNode
from tests.examples import examples

NAMES = tuple(f"w-{index}" for index in range(5))
REASON = "soperator: check disk: slow"
WISH = CheckPolicy("disk", most=2, retest=30.0, confirm=2, passes=2)


def node(name, *states, reason="", busy_at=0.0):
    return SlurmNode(name, frozenset(states or ("IDLE",)), reason=reason, last_busy=busy_at)


@dataclass
class Jobs:
    """Slurm: its nodes and the jobs of the check. What is bad fails; users take idle nodes and displace the check."""

    nodes: dict = field(default_factory=lambda: {name: node(name) for name in NAMES})
    jobs: dict = field(default_factory=dict)
    now: float = 1000.0
    bad: set = field(default_factory=set)
    started: list = field(default_factory=list)
    count: int = 0

    def submit(self, name, retest):
        self.count += 1
        self.jobs[self.count] = [name, "waits", retest]
        return self.count

    def step(self):
        """Jobs that can begin do."""
        for number, job in self.jobs.items():
            held = self.nodes[job[0]]
            if job[1] == "waits" and not held.is_busy and not held.is_draining:
                job[1] = "runs"
                self.started.append((job[0], self.now, job[2]))
                self.nodes[job[0]] = replace(held, states=frozenset({"ALLOCATED"}))
                assert number

    def end(self, number, how):
        job = self.jobs[number]
        held = self.nodes[job[0]]
        job[1] = how
        self.nodes[job[0]] = replace(held, states=held.states - {"ALLOCATED"} | {"IDLE"}, last_busy=self.now)

    def drain(self, name, reason):
        self.nodes[name] = replace(self.nodes[name], states=self.nodes[name].states | {"DRAIN"}, reason=reason)

    def resume(self, name):
        self.nodes[name] = replace(self.nodes[name], states=self.nodes[name].states - {"DRAIN"}, reason="")


@dataclass
class Operator:
    """Passes over these jobs, as the control makes them; `dies` stops one after so many acts, before the book is written."""

    slurm: Jobs
    status: dict = field(default_factory=dict)
    learned: bool = False

    def targets(self):
        return [CheckTarget(name, 0.0, True, each) for name, each in self.slurm.nodes.items()]

    def history(self):
        found = single_node.begin(status_codec.read(WISH.name, self.status), WISH, self.targets(), self.slurm.now)
        if self.learned:
            return found
        more = [
            Run(number, job[0], self.slurm.now, job[2])
            for number, job in self.slurm.jobs.items()
            if number > found.highest_job
        ]
        return replace(found, runs=(*found.runs, *more))

    def ended(self, run):
        how = self.slurm.jobs[run.job][1]
        verdicts = {
            "pass": Verdict("pass"),
            "fail": Verdict("fail", "slow"),
            "broken": Verdict("broken", "?"),
            "gone": None,
        }
        return RunResult(run, self.slurm.now, verdicts[how])

    def turn(self, dies=99):
        slurm, history = self.slurm, self.history()
        over = [self.ended(run) for run in history.runs if self.slurm.jobs[run.job][1] not in ("waits", "runs")]
        waits = frozenset(run.job for run in history.runs if slurm.jobs[run.job][1] == "waits")
        after, closes = single_node.fold(history, WISH, over, slurm.nodes)
        plan = single_node.decide(after, WISH, self.targets(), slurm.now, waits)
        assert violation(after, WISH, self.targets(), plan.actions) == ""
        begun = []
        for number, act in enumerate([*closes, *plan.actions]):
            if number >= dies:
                self.learned = False
                return
            match act:
                case RedrainNode(name, why):
                    slurm.drain(name, why)
                case ResumeNode(name):
                    assert slurm.nodes[name].is_drained
                    slurm.resume(name)
                case Cancel(run):
                    slurm.jobs[run.job][1] = "gone"
                case Submit(name, retest):
                    assert slurm.nodes[name].is_drained if retest else not slurm.nodes[name].is_draining
                    begun.append(Run(slurm.submit(name, retest), name, slurm.now, retest))
        self.status, self.learned = status_codec.write(replace(after, runs=(*after.runs, *begun))), True


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["pass", "wait", "end", "user", "leave", "break", "mend", "drain"]),
        st.integers(0, 4),
        st.integers(0, 4),
    ),
    max_size=60,
)


def happen(slurm, operator, event, index, dies):
    name = NAMES[index]
    running = [number for number, job in slurm.jobs.items() if job[1] == "runs" and job[0] == name]
    match event:
        case "pass":
            operator.turn(dies)
        case "wait":
            slurm.now += 40.0
        case "end" if running:
            slurm.end(running[0], "fail" if name in slurm.bad else "pass")
        case "user" if not slurm.nodes[name].is_draining and not [each for each in running if slurm.jobs[each][2]]:
            for number in running:
                slurm.end(number, "gone")
            slurm.nodes[name] = replace(slurm.nodes[name], states=frozenset({"ALLOCATED"}))
        case "leave" if not running and slurm.nodes[name].is_busy:
            slurm.nodes[name] = replace(
                slurm.nodes[name], states=slurm.nodes[name].states - {"ALLOCATED"} | {"IDLE"}, last_busy=slurm.now
            )
        case "break":
            slurm.bad.add(name)
        case "mend":
            slurm.bad.discard(name)
        case "drain":
            case = status_codec.read(WISH.name, operator.status).failures.get(name)
            if (
                case
                and case.check_state.state == "failing"
                and not slurm.nodes[name].is_draining
                and status_codec.read(WISH.name, operator.status).run_of(name) is None
            ):
                slurm.drain(name, REASON)
    slurm.step()


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(EVENTS)
def test_whatever_happens_no_two_run_on_a_node_and_no_more_than_wished(events):
    """Also where the operator dies between two acts, and begins again with what it had written and what Slurm has."""
    slurm = Jobs()
    operator = Operator(slurm)
    for event, index, dies in events:
        happen(slurm, operator, event, index, dies if dies < 2 else 99)
        alive = [job for job in slurm.jobs.values() if job[1] in ("waits", "runs")]
        assert len({job[0] for job in alive}) == len(alive)
        assert len(alive) <= WISH.most


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(EVENTS, st.sets(st.sampled_from(NAMES), max_size=2))
def test_when_all_is_quiet_every_bad_node_fails_and_every_good_one_passed(events, bad):
    """After any history, runs that end and time alone bring each node to where it belongs."""
    slurm = Jobs()
    operator = Operator(slurm)
    for event, index, dies in events:
        happen(slurm, operator, event, index, dies if dies < 2 else 99)
    slurm.bad = set(bad)
    for _ in range(40):
        slurm.now += 40.0
        for index in range(5):
            for event in ("end", "leave", "drain"):
                happen(slurm, operator, event, index, 99)
        operator.turn()
        history = status_codec.read(WISH.name, operator.status)
        for name in NAMES:
            if slurm.nodes[name].is_draining and name not in history.failures and history.run_of(name) is None:
                slurm.resume(name)  # policy.health
    history = status_codec.read(WISH.name, operator.status)
    failing = {name for name, each in history.failures.items() if each.check_state.state in ("failing", "recovering")}
    known = {name for name in bad if history.last_runs.get(name) is not None and name in failing}
    assert failing <= bad
    assert all(slurm.nodes[name].is_draining for name in known if history.run_of(name) is None)
    assert set(history.last_runs) == set(NAMES)


def test_a_job_whose_node_somebody_took_is_taken_back():
    """It waited for a minute in a queue in which users go first."""
    run = Run(7, "w-0", 1000.0)
    busy = [CheckTarget("w-0", 0.0, True, node("w-0", "ALLOCATED"))]
    early = single_node.decide(CheckHistory(runs=(run,)), WISH, busy, 1000.0 + PATIENCE, frozenset({7}))
    late = single_node.decide(CheckHistory(runs=(run,)), WISH, busy, 1001.0 + PATIENCE, frozenset({7}))
    assert (early.actions, late.actions) == ((), (Cancel(run),))


def test_a_check_that_fails_on_very_many_nodes_stops():
    """The status stays small, and a person is told."""
    targets = [CheckTarget(f"w-{index}", 0.0, True, node(f"w-{index}")) for index in range(1000)]
    wish, history, now = replace(WISH, most=1000, confirm=1), CheckHistory(), 1000.0
    for _ in range(5):
        plan = single_node.decide(history, wish, targets, now)
        runs = tuple(Run(number, each.node, now) for number, each in enumerate(plan.actions, 1))
        over = [RunResult(each, now, Verdict("fail", "slow")) for each in runs]
        history, _ = single_node.fold(replace(history, runs=runs), wish, over, {})
        now += 60.0
    assert len(history.failures) == single_node.MOST
    assert "find out whether the check is wrong" in single_node.decide(history, wish, targets, now).message


def test_what_makes_a_node_due():
    """Its pod is newer than its run; the schedule has come round; it was away; it has long been idle; each only where it is asked for."""

    def begins(wish, target, history=None, now=100_000.0):
        return (
            Submit("w-0")
            in single_node.decide(history or CheckHistory(last_runs={"w-0": 50_000.0}), wish, [target], now).actions
        )

    here = CheckTarget("w-0", 0.0, True, node("w-0"))
    none = replace(WISH, after_creation=False)
    assert not begins(WISH, here)
    assert begins(WISH, replace(here, born=60_000.0))
    assert not begins(none, replace(here, born=60_000.0))
    assert begins(replace(none, schedule="0 0 * * *"), here)
    assert not begins(replace(none, schedule="0 0 * * *", since=90_000.0), here)
    assert not begins(replace(none, schedule="0 0 * * *"), here, CheckHistory(last_runs={"w-0": 86_400.0}))
    assert begins(replace(none, idle=(600.0, 3600.0)), here)
    assert not begins(replace(none, idle=(600.0, 86_400.0)), here)
    away = CheckTarget("w-0", 0.0, True, node("w-0", "IDLE", "DRAIN", reason="by hand"))
    owed = single_node.begin(
        CheckHistory(last_runs={"w-0": 50_000.0}), replace(none, after_repair=True), [away], 99_000.0
    )
    assert not begins(replace(none, after_repair=True), away, owed)
    assert begins(replace(none, after_repair=True), here, owed)
    assert not begins(WISH, CheckTarget("w-0", 0.0, True, node("w-0", busy_at=99_995.0)), CheckHistory())
    assert not begins(WISH, CheckTarget("w-0", 0.0, True, node("w-0", "IDLE", "RESERVED")), CheckHistory())


def test_the_last_moment_of_a_schedule():
    """In UTC, later than when the check was made, and not later than now."""
    day = 86_400.0
    assert latest("30 1 * * *", 10 * day, 0.0) == 9 * day + 5400
    assert latest("30 1 * * *", 10 * day + 5400, 0.0) == 10 * day + 5400
    assert latest("30 1 * * *", 10 * day, 9.9 * day) is None
    assert latest("0 0 31 2 *", 800 * day, 0.0) is None


@given(st.dictionaries(st.sampled_from([f"a-{i}" for i in range(40)] + ["b-007", "c"]), st.integers(0, 3).map(float)))
def test_a_book_is_read_as_it_was_written(ran):
    """Nodes of one second share a host list."""
    assert status_codec.read("", status_codec.write(CheckHistory(last_runs=ran))).last_runs == ran


def test_the_times_of_many_nodes_become_few_and_none_later():
    """Five thousand nodes, each in a second of its own, are no more groups than the schema has."""
    ran = {f"w-{index}": 1000.0 + 7 * index for index in range(5000)}
    reported = status_codec.write(CheckHistory(last_runs=ran))["lastRuns"]
    back = status_codec.read("", {"lastRuns": reported}).last_runs
    assert len(reported) == 256
    assert back.keys() == ran.keys()
    assert all(back[name] <= at for name, at in ran.items())
