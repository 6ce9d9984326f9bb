"""SlurmAccounts and SlurmQOS are kept in step with a database, by an operator that is told why it cannot where it cannot."""

import asyncio

import pytest

from soperator.kube import kinds
from soperator.kube.exec import ExecFailed, Result
from soperator.reconcile.associations.sacctmgr_client import PERIOD, RETRY
from tests.unit.fake_sacctmgr import FakeSacctmgr, Refused
from tests.world.harness import NS, Town, operating, until

CLUSTER = {
    "jail": {"claim": {"name": "demo-jail"}},
    "controller": {"state": {"name": "demo-state"}},
    "accounting": {},
}
PHYSICS = {
    "clusterRef": {"name": "demo"},
    "limits": {"grpTRES": {"cpu": 4}},
    "users": [{"name": "alice"}, {"name": "bob", "limits": {"maxJobs": 2}}],
}


class Commands:
    """What is executed beside slurmctld: sacctmgr and squeue over a fake database; `down` lets nobody answer."""

    def __init__(self):
        """An empty database; `elsewhere` are associations of other clusters, as sacctmgr prints them."""
        self.elsewhere = []
        self.slurm, self.down, self.reads, self.asked = FakeSacctmgr(), False, 0, 0

    async def __call__(self, _api, target, command):
        """A command in a container."""
        assert (target.container, command[:2]) == ("slurmctld", ["sh", "-c"]), command
        if self.down:
            raise ExecFailed(f"{target} is not there")
        if "squeue" in command[2]:
            self.asked += 1
            _, _, _, _, option, name = command
            found = [
                f"{job} {user}\n"
                for job, (user, account) in self.slurm.jobs.items()
                if option == "-A" and account == name
            ]
            return Result(0, "".join(found), "")
        if command[4:6] == ["show", "assoc"]:
            return Result(0, "".join(f"{line}\n" for line in self.elsewhere), "")
        if "show" in command[2]:
            self.reads += 1
            assert command[4:] == ["demo"]
            return Result(0, self.slurm.show(), "")
        try:
            self.slurm.run(*command[4:])
        except Refused as error:
            return Result(1, f" {error}\n\n Changes Discarded\n", "")
        return Result(0, "", "")


@pytest.fixture
def commands():
    """A database."""
    return Commands()


@pytest.fixture
async def town(commands):
    """An operator over a cluster with accounting."""
    made = Town()
    cluster(made, {"accounting": "On"})
    async with operating(made, execute=commands):
        yield made


def cluster(town, status, **spec):
    meta = {"name": "demo", "namespace": NS}
    made = {
        "apiVersion": kinds.SLURMCLUSTER.api_version,
        "kind": "SlurmCluster",
        "metadata": meta,
        "spec": CLUSTER | spec,
    }
    town.fake.world.seed(made | {"status": status})


def ready(town, name="physics", kind=kinds.SLURMACCOUNT):
    found = town.status(kind, name).get("conditions", ())
    return next(((each["status"], each["reason"]) for each in found if each["type"] == "Ready"), None)


def delete(town, name, kind=kinds.SLURMACCOUNT):
    """What `kubectl delete` does to an object with a finalizer."""
    town.fake.world.change(kind, (NS, name), {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})


async def test_an_account_is_made_and_kept(town, commands):
    """With its users; what is changed by hand is set right, and who was put in by hand stays."""
    town.apply(kinds.SLURMACCOUNT, "physics", PHYSICS)
    await until(lambda: ready(town) == ("True", "InStep"))
    slurm, status = commands.slurm, town.status(kinds.SLURMACCOUNT, "physics")
    assert slurm.find("physics").fields["GrpTRES"] == "cpu=4"
    assert slurm.find("physics", "bob").fields["MaxJobs"] == "2"
    assert (status["account"], status["users"], status.get("why", "")) == ("physics", "2/2", "")
    slurm.run("modify", "account", "where", "name=physics", "set", "GrpTRES=cpu=9")
    slurm.run("add", "user", "name=carol", "account=physics", "cluster=demo")
    await until(lambda: slurm.find("physics").fields["GrpTRES"] == "cpu=4", 2 * PERIOD)
    assert slurm.find("physics", "carol")


async def test_idle_means_no_writes(town, commands):
    """The database is read now and then, once for all objects; nothing is written to it or to Kubernetes."""
    for name in ("physics", "chemistry", "optics"):
        town.apply(kinds.SLURMACCOUNT, name, PHYSICS)
    await until(lambda: all(ready(town, each) == ("True", "InStep") for each in ("physics", "chemistry", "optics")))
    writes, ran, reads = len(town.fake.writes()), len(commands.slurm.ran), commands.reads
    await asyncio.sleep(1.5 * PERIOD)
    assert (len(town.fake.writes()), len(commands.slurm.ran)) == (writes, ran)
    assert reads + 1 <= commands.reads <= reads + 2


async def test_a_limit_that_is_taken_from_the_spec_is_taken_back(town, commands):
    """The status remembers it, before it is set."""
    town.apply(kinds.SLURMACCOUNT, "physics", PHYSICS | {"limits": {"maxWall": "90"}})
    await until(lambda: ready(town) == ("True", "InStep"))
    said = town.status(kinds.SLURMACCOUNT, "physics")["applied"]
    assert said == [{"user": "", "fields": ["MaxWall"]}, {"user": "bob", "fields": ["MaxJobs"]}]
    town.apply(kinds.SLURMACCOUNT, "physics", PHYSICS | {"limits": {"maxWall": ""}})
    await until(lambda: commands.slurm.find("physics").fields["MaxWall"] == "")
    left = [{"user": "bob", "fields": ["MaxJobs"]}]
    await until(lambda: town.status(kinds.SLURMACCOUNT, "physics")["applied"] == left)


async def test_a_deletion_waits_for_jobs(town, commands):
    """With deletionPolicy: Delete; the condition names them, and afterwards object and account are gone."""
    town.apply(kinds.SLURMACCOUNT, "physics", PHYSICS | {"deletionPolicy": "Delete"})
    await until(lambda: ready(town) == ("True", "InStep"))
    commands.slurm.jobs[7] = ("alice", "physics")
    delete(town, "physics")
    await until(lambda: ready(town) == ("False", "Deleting"))
    assert "alice has jobs in it: 7" in town.says(kinds.SLURMACCOUNT, "physics")
    assert commands.slurm.find("physics", "alice")
    commands.slurm.jobs.clear()
    await until(lambda: not town.find(kinds.SLURMACCOUNT, "physics"))
    assert not commands.slurm.find("physics")


async def test_without_an_answer_nothing_is_deleted(town, commands):
    """The deletion waits and says why."""
    town.apply(kinds.SLURMACCOUNT, "physics", PHYSICS | {"deletionPolicy": "Delete"})
    await until(lambda: ready(town) == ("True", "InStep"))
    ran, commands.down = len(commands.slurm.ran), True
    delete(town, "physics")
    await until(lambda: ready(town) == ("False", "Deleting"))
    assert "is not there" in town.says(kinds.SLURMACCOUNT, "physics")
    assert len(commands.slurm.ran) == ran
    assert town.find(kinds.SLURMACCOUNT, "physics")


async def test_with_its_cluster_gone_a_deletion_waits_for_nothing(town, commands):
    """Nor with its annotation; while there is a cluster whose slurmdbd is not up, it does."""
    for name in ("physics", "optics"):
        town.apply(kinds.SLURMACCOUNT, name, PHYSICS | {"deletionPolicy": "Delete"})
        await until(lambda: ready(town, name) == ("True", "InStep"))  # noqa: B023
    commands.down = True
    note = {"slurm.soperator.io/abandon-jobs": "true"}
    town.fake.world.change(kinds.SLURMACCOUNT, (NS, "optics"), {"metadata": {"annotations": note}})
    for name in ("physics", "optics"):
        delete(town, name)
    await until(lambda: not town.find(kinds.SLURMACCOUNT, "optics"))
    await until(lambda: ready(town) == ("False", "Deleting"))
    town.fake.world.remove(kinds.SLURMCLUSTER, NS, "demo")
    await until(lambda: not town.find(kinds.SLURMACCOUNT, "physics"))
    assert commands.slurm.find("physics")


async def test_an_object_alone_goes_by_default(town, commands):
    """The account stays, and an object of the same name has it again, with what it made."""
    town.apply(kinds.SLURMACCOUNT, "physics", PHYSICS)
    await until(lambda: ready(town) == ("True", "InStep"))
    town.fake.world.remove(kinds.SLURMACCOUNT, NS, "physics")
    await town.settle()
    assert commands.slurm.find("physics", "alice")
    town.apply(kinds.SLURMACCOUNT, "physics", PHYSICS | {"users": []})
    await until(lambda: not commands.slurm.find("physics", "alice"))


async def test_the_older_of_two_objects_has_the_account(town, commands):
    """The younger one is told, and takes over when it is gone."""
    town.apply(kinds.SLURMACCOUNT, "physics", PHYSICS)
    await until(lambda: ready(town) == ("True", "InStep"))
    town.apply(kinds.SLURMACCOUNT, "q", PHYSICS | {"name": "physics", "limits": {"grpJobs": 7}})
    await until(lambda: ready(town, "q") == ("False", "Taken"))
    assert "SlurmAccount physics is older" in town.says(kinds.SLURMACCOUNT, "q")
    assert not commands.slurm.find("physics").fields.get("GrpJobs")
    town.fake.world.remove(kinds.SLURMACCOUNT, NS, "physics")
    await until(lambda: commands.slurm.find("physics").fields.get("GrpJobs") == "7")


async def test_parents_and_qos_may_come_later(town, commands):
    """Each object says what it waits for."""
    town.apply(kinds.SLURMACCOUNT, "optics", PHYSICS | {"parent": "physics", "qos": ["gold"], "defaultQOS": "gold"})
    await town.told(kinds.SLURMACCOUNT, "optics", "its parent physics is not an account of the cluster yet")
    assert "QOS gold does not exist yet" in town.says(kinds.SLURMACCOUNT, "optics")
    town.apply(kinds.SLURMACCOUNT, "physics", {"clusterRef": {"name": "demo"}})
    town.apply(
        kinds.SLURMQOS,
        "gold",
        {"clusterRef": {"name": "demo"}, "priority": 10, "limits": {"maxTRESPerUser": {"gres/gpu": 2}}},
    )
    await until(lambda: ready(town, "gold", kinds.SLURMQOS) == ("True", "InStep"))
    await until(lambda: ready(town, "optics") == ("True", "InStep"))
    assert commands.slurm.find("optics").parent == "physics"
    assert commands.slurm.qos["gold"]["MaxTRESPerUser"] == "gres/gpu=2"


async def test_what_sacctmgr_refuses_is_told(town, commands):
    """In its words, on one line, and it is not tried again at once."""
    commands.slurm.run("add", "account", "name=physics", "cluster=demo", "parent=root")
    commands.slurm._modify_account = _refuse
    town.apply(kinds.SLURMACCOUNT, "physics", PHYSICS)
    await town.told(kinds.SLURMACCOUNT, "physics", "no TRES known by type cpu")
    assert (
        town.status(kinds.SLURMACCOUNT, "physics")["why"]
        == "sacctmgr modify account: no TRES known by type cpu Changes Discarded"
    )
    ran = len(commands.slurm.ran)
    await asyncio.sleep(2 * RETRY)
    assert len(commands.slurm.ran) <= ran + 3


def _refuse(_where, _said):
    raise Refused("no TRES known by type cpu")


async def test_a_database_that_does_not_do_as_it_is_told_is_not_told_for_ever(town, commands):
    """The condition says which command had no effect."""
    commands.slurm.run("add", "account", "name=physics", "cluster=demo", "parent=root")
    commands.slurm._modify_account = lambda _where, _said: None
    town.apply(kinds.SLURMACCOUNT, "physics", PHYSICS)
    await town.told(kinds.SLURMACCOUNT, "physics", "differs although sacctmgr reported success: modify account")
    ran = len(commands.slurm.ran)
    await asyncio.sleep(2 * RETRY)
    assert len(commands.slurm.ran) <= ran + 3


async def test_bad_specs_and_clusters_without_accounting_are_told(commands):
    """Nothing is executed."""
    town = Town()
    cluster(town, {}, accounting=None)
    async with operating(town, execute=commands):
        town.apply(kinds.SLURMACCOUNT, "physics", PHYSICS)
        await town.told(kinds.SLURMACCOUNT, "physics", "SlurmCluster demo has no accounting: set spec.accounting")
        town.apply(kinds.SLURMACCOUNT, "bad", PHYSICS | {"limits": {"others": {"GrpTres": "cpu=1"}}})
        await town.told(kinds.SLURMACCOUNT, "bad", "spec.limits.others.GrpTres: cpu=1: unknown field")
        town.apply(kinds.SLURMACCOUNT, "worse", PHYSICS | {"users": [{"name": "a,b"}]})
        await until(lambda: ready(town, "worse") == ("False", "InvalidSpec"))
        assert not commands.slurm.ran
        assert not commands.reads


async def test_a_qos_that_another_cluster_uses_is_not_deleted(town, commands):
    """All clusters of a database share its QOS; jobs of the other cluster would lose theirs."""
    town.apply(kinds.SLURMQOS, "gold", {"clusterRef": {"name": "demo"}, "deletionPolicy": "Delete", "priority": 3})
    await town.settle()
    assert commands.slurm.qos["gold"]["Description"] == "soperator:demo/slurm/gold"
    commands.elsewhere = ["demo|root||normal|", "other|physics|alice|normal,gold|"]
    town.fake.world.remove(kinds.SLURMQOS, "slurm", "gold")
    await town.settle(quiet=3.0, longest=20.0)
    assert "alice in physics of cluster other" in town.says(kinds.SLURMQOS, "gold")
    assert "gold" in commands.slurm.qos
    commands.elsewhere = []
    await town.settle(quiet=8.0, longest=60.0)
    assert "gold" not in commands.slurm.qos
