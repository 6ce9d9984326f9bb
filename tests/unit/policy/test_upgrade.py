"""The order of new images, as a pure function over what is seen."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from soperator.policy.cluster.images import (
    DesiredImages,
    ImageRecord,
    RunningImages,
    release,
    stage,
)
from soperator.policy.cluster.slurm_config import Trial

ROLES = ("slurm", "login", "munge", "agents", "jail")


def images(version):
    """An operator's images."""
    return {role: f"{role}:{version}" for role in ROLES}


@dataclass
class City:
    """A cluster whose parts follow the stage at their own pace; each step of the world is one action."""

    operator: int = 1
    said: dict = field(default_factory=dict)
    request: str = ""
    follows: bool = False
    record: ImageRecord | None = None
    slurmctld: tuple[str, bool] = ("", False)
    workers: list = field(default_factory=list)
    login: str = ""

    def look(self):
        """The stage now."""
        desired = DesiredImages(self.said, images(self.operator), self.request, self.follows)
        seen = RunningImages(
            self.slurmctld[0] if self.slurmctld[1] else "", {each: self.workers.count(each) for each in self.workers}
        )
        return stage(self.record, desired, seen)

    def settle(self):
        """Let everything catch up; return the last stage."""
        for _ in range(4 + len(self.workers)):
            found = self.look()
            self.record, self.slurmctld = found.record, (found.wanted["slurm"], True)
            self.workers = [found.record.workers["slurm"]] * len(self.workers)
            self.login = found.record.login["slurm"]
        return found


ACTIONS = st.one_of(
    st.tuples(st.just("operator"), st.integers(1, 4)),
    st.tuples(st.just("request"), st.sampled_from(["a", "b", ""])),
    st.tuples(st.just("say"), st.sampled_from(["", "own:1", "own:2"])),
    st.tuples(st.just("write"), st.booleans()),
    st.tuples(st.just("slurmctld"), st.booleans()),
    st.tuples(st.just("worker"), st.integers(0, 3)),
    st.tuples(st.just("login"), st.just(0)),
)


@given(st.lists(ACTIONS, max_size=40), st.integers(0, 4))
def test_nothing_is_newer_than_what_it_speaks_to(actions, count):
    """However the parts follow, a worker changes only to what slurmctld has run, and login only to what all workers have run."""
    city = City(workers=[""] * count)
    first = city.settle().wanted["slurm"]
    ran, all_ran = {first}, {first}
    for what, value in actions:
        match what:
            case "operator":
                city.operator = value
            case "request":
                city.request = value
            case "say":
                city.said = {"slurm": value} if value else {}
            case "write":
                city.record = city.look().record
            case "slurmctld":
                city.slurmctld = (city.look().wanted["slurm"], value)
            case "worker" if count:
                city.workers[value % count] = city.look().record.workers["slurm"]
            case "login":
                city.login = city.look().record.login["slurm"]
        ran |= {city.slurmctld[0]} if city.slurmctld[1] else set()
        assert set(city.workers) <= ran
        all_ran |= {each for each in ran if all(one == each for one in city.workers)}
        assert city.login in all_ran
    found = city.settle()
    assert {city.slurmctld[0], *city.workers, city.login} == {found.wanted["slurm"]}
    assert found.reason in ("", "Held")


@given(st.integers(2, 9))
def test_a_newer_operator_alone_changes_nothing(version):
    """All images stay, those of roles that the former operator did not know are the new one's, and the sentence names the others."""
    city = City(workers=["", ""])
    before = city.settle()
    city.operator = version
    after = city.look()
    assert (after.wanted, after.record, after.reason) == (before.wanted, before.record, "Held")
    assert "agents, jail, login, munge, slurm" in after.why


def test_a_request_is_carried_out_once():
    """After it a still newer operator is held back again; taking the word away is no request."""
    city = City(workers=[""])
    city.settle()
    city.operator, city.request = 2, "go"
    assert city.settle().wanted == images(2)
    city.operator = 3
    assert city.settle().wanted == images(2)
    city.request = ""
    assert city.settle().wanted == images(2)


def test_what_the_spec_names_goes_before_what_is_kept():
    """An image of the spec is used while it is there, and afterwards the kept one comes back."""
    city = City(workers=[""], said={"slurm": "own:1"})
    assert city.settle().wanted["slurm"] == "own:1"
    city.operator, city.said = 2, {}
    assert city.settle().wanted["slurm"] == "slurm:1"


def test_an_image_that_is_not_slurms_needs_no_order():
    """Another image of login alone is login's at once, while slurmctld does not answer."""
    city = City(workers=[""])
    city.settle()
    city.slurmctld, city.said = ("", False), {"login": "mine:1"}
    assert city.look().record.login["login"] == "mine:1"


def gated(versions=None, trials=None, placed=("slurm:1",), slurmctld="slurm:1", **more):
    """The stage of a cluster with images of 1 whose spec names slurm:2."""
    record = ImageRecord(images(1), images(1), images(1))
    running = RunningImages(slurmctld, {}, placed, versions or {}, trials or {}, may_try=True)
    return stage(record, DesiredImages({"slurm": "slurm:2"}, images(1), **more), running)


def test_slurmctld_gets_an_image_when_it_has_passed_its_trial_and_this_is_written_down():
    """First both images are tried; what a trial says is kept; only what is kept counts."""
    first = gated()
    assert (first.wanted["slurm"], first.reason, set(first.tries)) == ("slurm:1", "Trying", {"slurm:1", "slurm:2"})
    passed = {"slurm:1": Trial("passed", version="24.11.5"), "slurm:2": Trial("passed", version="26.05.5")}
    second = gated(trials=passed)
    assert (second.wanted["slurm"], dict(second.versions)) == ("slurm:1", {"slurm:1": "24.11.5", "slurm:2": "26.05.5"})
    third = gated(versions=second.versions)
    assert (third.wanted["slurm"], third.reason, third.tries) == ("slurm:2", "Controller", ())


def test_an_image_that_refuses_the_files_is_not_taken_and_its_words_are_told():
    """The trial stays, so that nobody has to ask again and again."""
    found = gated(versions={"slurm:1": "24.11.5"}, trials={"slurm:2": Trial("refused", "no such plugin")})
    assert (found.wanted["slurm"], found.reason, list(found.tries)) == ("slurm:1", "Refused", ["slurm:2"])
    assert found.why == "slurmctld keeps slurm:1, because slurm:2 refuses its configuration: no such plugin"


def test_a_trial_that_the_present_image_does_not_pass_stops_nobody():
    """What runs is no question; its version is then unknown, and a downgrade cannot be told."""
    found = gated(versions={"slurm:2": "24.11.5"}, trials={"slurm:1": Trial("refused", "why")})
    assert dict(found.versions) == {"slurm:1": "", "slurm:2": "24.11.5"}
    assert gated(versions=found.versions).wanted["slurm"] == "slurm:2"


def test_without_a_configuration_that_ran_there_is_nothing_to_try():
    """A cluster that never began gets what it asks for."""
    record = ImageRecord(images(1), images(1), images(1))
    assert stage(record, DesiredImages({"slurm": "slurm:2"}, images(1)), RunningImages()).wanted["slurm"] == "slurm:2"


@given(
    st.sampled_from(["", "24.11.5", "26.05.5", "25.11.1", "24.11.6"]),
    st.sampled_from(["", "24.11.5", "26.05.5", "25.11.1"]),
    st.sampled_from([(), ("slurm:1",)]),
    st.booleans(),
)
def test_no_slurmctld_goes_back_to_an_older_release(has, wants, placed, is_ready):
    """Whether its pod is there and ready or not; a version that is not known refuses nothing."""
    found = gated({"slurm:1": has, "slurm:2": wants}, placed=placed, slurmctld="slurm:1" if is_ready else "")
    older = bool(has and wants) and release(wants) < release(has)
    assert (found.wanted["slurm"] == "slurm:1") == older == (found.reason == "Downgrade")


def test_a_slurmctld_on_its_way_to_an_image_is_left_on_its_way():
    """Its pod has the image: that it was tried is no question any more."""
    found = gated(placed=("slurm:2",), slurmctld="")
    assert (found.wanted["slurm"], found.reason) == ("slurm:2", "Controller")


def test_an_image_older_than_what_the_workers_had_is_refused_too():
    """slurmctld itself may have an older one by then; its state was written by the newest that was recorded."""
    newest = {"slurm:1": "24.11.5", "slurm:2": "25.05.1", "slurm:3": "26.05.0"}
    record = ImageRecord(images(1), images(1) | {"slurm": "slurm:3"}, images(1))
    running = RunningImages("slurm:1", {}, ("slurm:1",), newest, {}, may_try=True)
    found = stage(record, DesiredImages({"slurm": "slurm:2"}, images(1)), running)
    assert (found.wanted["slurm"], found.reason) == ("slurm:1", "Downgrade")
    assert "which refuses the state that Slurm 26.05.0 has written" in found.why
