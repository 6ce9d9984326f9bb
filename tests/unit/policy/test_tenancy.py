"""Accounts are brought in step whatever is there before and wherever a pass ends, and nothing of anybody else's is touched."""

from copy import deepcopy
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from soperator.policy.associations.accounts import (
    Account,
    Member,
    mark,
    plan,
    undo,
)
from tests.unit.fake_sacctmgr import FakeSacctmgr, Refused, Row

MARK = mark("slurm", "physics")
PHYSICS = Account("demo", "physics", MARK)


def settle(fake, wanted, applied=None, above=None, stops=()):
    """Plan and run until nothing is to be done; after a command whose number is in `stops` the plan is made anew. Returns the waits."""
    count = 0
    for _ in range(30):
        made = plan(wanted, fake.read(), above or {}, applied or {}, fake.of(wanted.name))
        if not made.commands:
            return made.waits
        for words in made.commands:
            fake.run(*words)
            count += 1
            if count in stops:
                break
    raise AssertionError(made.commands)


def remove(fake, wanted):
    """Undo until nothing is left to do; returns the waits."""
    for _ in range(10):
        made = undo(wanted, fake.read(), fake.of(wanted.name))
        if not made.commands:
            return made.waits
        for words in made.commands:
            fake.run(*words)
    raise AssertionError(made.commands)


def test_an_account_is_made_in_one_command_with_its_mark():
    """Whoever crashes after it has left nothing that he would not know again."""
    fake = FakeSacctmgr()
    wanted = replace(PHYSICS, fields={"GrpTRES": "cpu=4"}, texts={"Description": "All of physics"})
    (command,) = plan(wanted, fake.read(), {}, {}, None).commands
    place = ("name=physics", "cluster=demo", "parent=root", f"comment={MARK}")
    assert command == ("add", "account", *place, "Description=All of physics", "GrpTRES=cpu=4")
    assert settle(fake, wanted) == ()
    assert (fake.find("physics").comment, fake.find("physics").parent) == (MARK, "root")


def test_users_for_whom_the_same_is_to_be_done_go_together():
    """A hundred and twenty users are three commands, and a share of one of them a fourth."""
    users = {f"u{number}": Member() for number in range(120)} | {"pi": Member({"Fairshare": "9"})}
    fake = FakeSacctmgr()
    settle(fake, replace(PHYSICS, users=users))
    assert len(fake.ran) == 5
    assert len([each for each in fake.rows if each.account == "physics"]) == 122


def test_drift_is_repaired_and_what_the_object_does_not_say_is_left():
    """A limit of another kind, set by hand, stays."""
    fake, wanted = FakeSacctmgr(), replace(PHYSICS, fields={"GrpTRES": "cpu=4", "MaxWall": "90"})
    settle(fake, wanted)
    fake.run("modify", "account", "where", "name=physics", "cluster=demo", "set", "GrpTRES=cpu=9,mem=5", "GrpJobs=3")
    settle(fake, wanted)
    fields = fake.find("physics").fields
    assert (fields["GrpTRES"], fields["GrpJobs"], fields["MaxWall"]) == ("cpu=4", "3", "0-01:30:00")


def test_a_field_that_is_taken_from_the_object_is_taken_back():
    """Only where the status knows that it was set."""
    fake = FakeSacctmgr()
    full = replace(PHYSICS, fields={"GrpJobs": "3", "GrpTRES": "cpu=4"}, users={"alice": Member({"MaxJobs": "2"})})
    settle(fake, full)
    less = replace(PHYSICS, users={"alice": Member()})
    settle(fake, less)
    assert fake.find("physics").fields["GrpJobs"] == "3"
    settle(fake, less, full.applied)
    assert (fake.find("physics").fields["GrpJobs"], fake.find("physics").fields["GrpTRES"]) == ("", "")
    assert fake.find("physics", "alice").fields["MaxJobs"] == ""


def test_what_was_there_before_is_adopted_and_outlives_the_object():
    """Its users too; only those whom the object put there go."""
    fake = FakeSacctmgr()
    fake.run("add", "account", "name=physics", "cluster=demo", "parent=root")
    fake.run("add", "user", "name=bob,carol", "account=physics", "cluster=demo")
    settle(fake, replace(PHYSICS, fields={"GrpJobs": "3"}, users={"alice": Member(), "bob": Member({"MaxJobs": "1"})}))
    assert fake.find("physics", "bob").fields["MaxJobs"] == "1"
    assert remove(fake, PHYSICS) == ()
    assert {each.user for each in fake.rows if each.account == "physics"} == {"", "bob", "carol"}


def test_a_user_of_somebody_else_who_leaves_the_list_stays_without_the_objects_fields():
    """Those whom the object put there go."""
    fake, applied = FakeSacctmgr(), {"bob": frozenset({"MaxJobs"})}
    fake.run("add", "account", "name=physics", "cluster=demo", "parent=root")
    fake.run("add", "user", "name=bob", "account=physics", "cluster=demo", "MaxJobs=1")
    settle(fake, PHYSICS, applied)
    assert fake.find("physics", "bob").fields["MaxJobs"] == ""


def test_an_association_for_one_partition_is_nobody_elses_business():
    """It is made by hand, and neither changed nor taken for the user's own."""
    fake = FakeSacctmgr()
    settle(fake, PHYSICS)
    fake.run("add", "user", "name=alice", "account=physics", "cluster=demo", "partition=gpu")
    settle(fake, replace(PHYSICS, users={"alice": Member({"MaxJobs": "1"})}))
    assert fake.find("physics", "alice", "gpu").fields.get("MaxJobs", "") == ""
    assert remove(fake, PHYSICS) == ("other administrators added users to it: alice",)


def test_a_user_with_jobs_stays_until_they_have_ended():
    """And nobody is removed while nobody knows of the jobs."""
    fake = FakeSacctmgr()
    settle(fake, replace(PHYSICS, users={"alice": Member(), "bob": Member()}))
    fake.jobs[7] = ("alice", "physics")
    assert plan(PHYSICS, fake.read(), {}, {}, None) == plan(PHYSICS, fake.read(), {}, {}, None).__class__(asks=True)
    assert settle(fake, PHYSICS) == ("alice has jobs in it: 7",)
    assert not fake.find("physics", "bob")
    assert remove(fake, PHYSICS) == ("alice has jobs in it: 7", "its jobs are pending or running: 7")
    fake.jobs.clear()
    assert remove(fake, PHYSICS) == ()
    assert not fake.find("physics")


def test_an_account_with_somebody_elses_users_or_accounts_is_not_deleted():
    """Slurm would delete them with it."""
    fake = FakeSacctmgr()
    settle(fake, PHYSICS)
    fake.run("add", "user", "name=bob", "account=physics", "cluster=demo")
    fake.run("add", "account", "name=optics", "cluster=demo", "parent=physics")
    assert remove(fake, PHYSICS) == (
        "other administrators added users to it: bob",
        "accounts are below it: optics",
    )
    assert undo(PHYSICS, fake.read(), None).commands == ()


def test_a_default_account_is_left_only_for_another():
    """The object that says default: true takes the user over; the other one waits until then, and says so."""
    fake, chemistry = (
        FakeSacctmgr(),
        Account("demo", "chemistry", mark("slurm", "chemistry"), users={"alice": Member()}),
    )
    settle(fake, replace(PHYSICS, users={"alice": Member()}))
    settle(fake, chemistry)
    (said,) = settle(fake, PHYSICS)
    assert said.startswith("it is the default account of alice, who is also in chemistry: set default: true there")
    settle(fake, replace(chemistry, users={"alice": Member(default=True)}))
    assert settle(fake, PHYSICS) == ()
    assert (fake.defaults["alice"], fake.find("physics", "alice")) == ("chemistry", None)


def test_a_parent_that_is_not_there_is_waited_for():
    """Nothing is made elsewhere meanwhile."""
    fake, optics = FakeSacctmgr(), Account("demo", "optics", mark("slurm", "optics"), parent="physics")
    (said,) = settle(fake, optics)
    assert said.startswith("its parent physics is not an account of the cluster yet")
    settle(fake, PHYSICS)
    assert settle(fake, optics) == ()
    assert fake.find("optics").parent == "physics"


def test_a_circle_is_refused():
    """Slurm would turn the tree round instead; among objects that are not there yet it would be waited for ever."""
    fake, optics = FakeSacctmgr(), Account("demo", "optics", mark("slurm", "optics"), parent="physics")
    settle(fake, PHYSICS)
    settle(fake, optics)
    (said,) = settle(fake, replace(PHYSICS, parent="optics"))
    assert said == "it would be below itself: physics is below optics is below physics: choose another parent"
    (said,) = settle(
        FakeSacctmgr(), replace(PHYSICS, parent="optics"), above={"optics": "physics", "physics": "optics"}
    )
    assert said.startswith("it would be below itself")


def test_a_qos_that_is_not_there_is_waited_for():
    """All else is done."""
    fake = FakeSacctmgr()
    (said,) = settle(fake, replace(PHYSICS, fields={"QOS": "gold,normal", "GrpJobs": "2"}))
    assert (said, fake.find("physics").fields["GrpJobs"]) == (
        "QOS gold does not exist yet: create a SlurmQOS for it, or remove it",
        "2",
    )
    fake.run("add", "qos", "name=gold")
    assert settle(fake, replace(PHYSICS, fields={"QOS": "gold,normal", "GrpJobs": "2"})) == ()


USERS = st.sampled_from(["alice", "bob", "carol", "dave"])
FIELDS = st.fixed_dictionaries(
    {}, optional={"GrpJobs": st.sampled_from("123"), "GrpTRES": st.sampled_from(["cpu=4", "cpu=4,mem=7"])}
)
MEMBERS = st.dictionaries(USERS, st.builds(Member, FIELDS, st.booleans()))
WANTED = st.builds(lambda fields, users: replace(PHYSICS, fields=fields, users=users), FIELDS, MEMBERS)


@st.composite
def worlds(draw):
    """A database in which others have accounts and users, some of them in the account that is wanted."""
    fake = FakeSacctmgr()
    fake.run("add", "account", "name=chemistry", "cluster=demo", "parent=root")
    if draw(st.booleans()):
        fake.run("add", "account", "name=physics", "cluster=demo", "parent=root")
    for account in ("chemistry", "physics"):
        for user in draw(st.sets(USERS)) if fake.find(account) else ():
            fake.run("add", "user", f"name={user}", f"account={account}", "cluster=demo")
    fake.ran.clear()
    return fake


def foreign(fake):
    """What is nobody's but somebody else's: all without the mark, without the fields that the object may set."""
    rows = [deepcopy(each) for each in fake.rows if each.comment != MARK]
    return [replace_fields(each) for each in rows]


def replace_fields(row: Row) -> Row:
    row.fields = {} if row.account == "physics" else row.fields
    return row


@given(worlds(), st.lists(WANTED, min_size=1, max_size=3), st.sets(st.integers(1, 12)))
def test_it_ends_as_it_is_wanted_wherever_it_is_interrupted(fake, specs, stops):
    """Specs one after the other, stopped after any commands: the last one holds, a further pass writes nothing, and the rest is untouched."""
    before, applied = foreign(fake), {}
    for wanted in specs:
        everyone = {*applied, *wanted.applied}
        applied = {each: applied.get(each, frozenset()) | wanted.applied.get(each, frozenset()) for each in everyone}
        waits = settle(fake, wanted, applied, stops=stops)
        applied = wanted.applied
    assert foreign(fake) == before
    assert all("default account" in each for each in waits)
    there = {each.user: each for each in fake.rows if each.account == "physics"}
    assert {"", *wanted.users} <= there.keys()
    for user, fields in {"": wanted.fields, **{user: each.fields for user, each in wanted.users.items()}}.items():
        assert {name: there[user].fields[name] for name in fields} == dict(fields)
    assert plan(wanted, fake.read(), {}, wanted.applied, fake.of("physics")).commands == ()


@given(worlds(), WANTED, st.sets(USERS), st.sets(st.integers(1, 6)))
def test_a_deletion_takes_only_what_is_ours_and_no_jobs(fake, wanted, busy, stops):
    """Slurm never has to refuse it, also where it was interrupted; with the jobs gone, only somebody else's and default accounts hold it up."""
    before = foreign(fake)
    settle(fake, wanted)
    fake.jobs = {number: (user, "physics") for number, user in enumerate(busy, 1) if fake.find("physics", user)}
    try:
        waits = remove(fake, wanted)
    except Refused as error:
        raise AssertionError(fake.ran) from error
    assert all(fake.find("physics", user) for user, _ in fake.jobs.values())
    assert foreign(fake) == before
    assert bool(waits) >= bool(fake.jobs and fake.find("physics").comment == MARK)
    fake.jobs.clear()
    if not remove(fake, wanted) and fake.find("physics"):
        assert fake.find("physics").comment != MARK
