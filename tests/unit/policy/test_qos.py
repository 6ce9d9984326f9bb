"""A QOS is brought in step, and goes only where the object made it and nobody uses it."""

from dataclasses import replace

from soperator.policy.associations.qos import WantedQos, plan, undo
from tests.unit.fake_sacctmgr import FakeSacctmgr

GOLD = WantedQos(
    "gold", "soperator:slurm/gold", "For the hasty", {"Priority": "10", "Flags": "DenyOnLimit", "GrpTRES": "cpu=4"}
)


def settle(fake, wanted, applied=frozenset()):
    made = plan(wanted, fake.read(), applied)
    for words in made.commands:
        fake.run(*words)
    assert plan(wanted, fake.read(), applied).commands == ()
    return made.waits


def test_it_is_made_with_its_mark_and_kept():
    """Drift is set right, what the object does not say is left, and what it does not say any more is taken back."""
    fake = FakeSacctmgr()
    settle(fake, GOLD)
    assert fake.qos["gold"]["Description"] == "soperator:slurm/gold For the hasty"
    fake.run("modify", "qos", "where", "name=gold", "set", "Priority=7", "MaxWall=90")
    settle(fake, GOLD)
    assert (fake.qos["gold"]["Priority"], fake.qos["gold"]["MaxWall"]) == ("10", "0-01:30:00")
    settle(fake, replace(GOLD, text="", fields={}), frozenset(GOLD.fields))
    assert fake.qos["gold"] == {
        "Description": "soperator:slurm/gold",
        "Priority": "0",
        "Flags": "",
        "GrpTRES": "",
        "MaxWall": "0-01:30:00",
    }


def test_one_that_was_there_is_adopted_and_stays():
    """Without the mark: its description is the object's, where that has one."""
    fake = FakeSacctmgr()
    settle(fake, WantedQos("normal", "soperator:slurm/normal", fields={"Priority": "3"}))
    assert fake.qos["normal"] == {"Description": "Normal QOS default", "Priority": "3"}
    assert undo(WantedQos("normal", "soperator:slurm/normal"), fake.read(), {}).commands == ()


def test_it_goes_when_nobody_uses_it():
    """Accounts first, jobs then; without an answer about jobs it stays."""
    fake = FakeSacctmgr()
    settle(fake, GOLD)
    fake.run("add", "account", "name=physics", "cluster=demo", "parent=root", "QOS=normal,gold")
    assert undo(GOLD, fake.read(), None).waits == ("accounts use it: physics",)
    fake.run("delete", "account", "name=physics", "cluster=demo")
    assert undo(GOLD, fake.read(), None).asks
    assert undo(GOLD, fake.read(), {"alice": [7, 8]}).waits == ("its jobs are pending or running: 7, 8",)
    assert undo(GOLD, fake.read(), {}).commands == (("delete", "qos", "where", "name=gold"),)


def test_a_qos_whose_jobs_are_to_make_way_may_come_later():
    """All else is done."""
    fake = FakeSacctmgr()
    wanted = replace(GOLD, fields=GOLD.fields | {"Preempt": "low,normal"})
    (said,) = settle(fake, wanted)
    assert said.startswith("QOS low of preempt does not exist yet")
    fake.run("add", "qos", "name=low")
    assert settle(fake, wanted) == ()
    assert fake.qos["gold"]["Preempt"] == "low,normal"


def test_a_mark_without_the_cluster_gets_it_and_one_of_another_cluster_is_not_ours():
    """The same object in two clusters' Kubernetes: whoever made the QOS keeps it, and the other does not delete it."""
    fake = FakeSacctmgr()
    settle(fake, GOLD)
    mine = replace(GOLD, mark="soperator:one/slurm/gold", former=GOLD.mark)
    assert undo(mine, fake.read(), {}).commands == ()
    settle(fake, mine)
    assert fake.qos["gold"]["Description"] == "soperator:one/slurm/gold for the hasty"
    other = replace(GOLD, mark="soperator:two/slurm/gold", former=GOLD.mark)
    assert undo(other, fake.read(), {}).commands == ()
    assert undo(mine, fake.read(), {}).commands != ()
