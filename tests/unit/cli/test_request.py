"""`soperator request` writes one new word into the field of a request, and nothing else."""

import pytest
from typer.testing import CliRunner

from soperator.api.backup import SlurmBackupSpec
from soperator.api.healthcheck import HealthCheckSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.cli.__main__ import app
from soperator.cli.request import REQUESTS, chosen, send
from soperator.cli.support.errors import CliError
from soperator.kube import kinds
from tests.unit.fake_api import FakeApi
from tests.unit.model_fields import has

AT = ("slurm", "demo")


def seeded(kind=kinds.SLURMCLUSTER, **spec):
    """An API server with one object named demo."""
    fake = FakeApi()
    meta = {"name": "demo", "namespace": "slurm"}
    fake.world.seed({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec})
    return fake


def spec_of(fake, kind=kinds.SLURMCLUSTER):
    return fake.world.find(kind, *AT)["spec"]


@pytest.mark.parametrize("what", REQUESTS)
def test_each_request_is_a_field_of_its_kind(what):
    """So that none outlives a change of a name."""
    wish = REQUESTS[what]
    models = {"HealthCheck": HealthCheckSpec, "SlurmBackup": SlurmBackupSpec, "SlurmCluster": SlurmClusterSpec}
    model = models[wish.kind]
    for each in (wish.path, *((*wish.path[:-1], key) for key in wish.beside)):
        assert has(model, list(each))


@pytest.mark.parametrize(
    ("what", "spec"),
    [
        ("keys", {"auth": {"type": "munge", "rotateRequest": "new"}}),
        ("repair-jail", {"auth": {"type": "munge"}, "jail": {"refill": {"mode": "Missing", "request": "new"}}}),
        ("replace-jail", {"auth": {"type": "munge"}, "jail": {"refill": {"mode": "Overwrite", "request": "new"}}}),
        ("upgrade", {"auth": {"type": "munge"}, "upgrade": {"request": "new"}}),
    ],
)
async def test_a_request_is_written_beside_what_the_spec_says(what, spec):
    """Nothing else of the spec changes."""
    fake = seeded(auth={"type": "munge"})
    await send(fake.api(), REQUESTS[what], AT, "new")
    assert spec_of(fake) == spec


async def test_a_check_is_requested_of_a_healthcheck():
    """By the field that its schedule stands beside."""
    fake = seeded(kinds.HEALTHCHECK, clusterRef={"name": "demo"}, when={"schedule": "@daily"})
    await send(fake.api(), REQUESTS["check"], AT, "new")
    assert spec_of(fake, kinds.HEALTHCHECK)["when"] == {"schedule": "@daily", "runRequest": "new"}


async def test_what_cannot_be_requested_says_why():
    """An object that is not there is not created, and the word of the last request is no new one."""
    with pytest.raises(CliError, match="SlurmCluster demo: there is none in namespace slurm"):
        await send(FakeApi().api(), REQUESTS["keys"], AT, "new")
    fake = seeded(auth={"rotateRequest": "old"})
    with pytest.raises(CliError, match="old is the last request already: give another value"):
        await send(fake.api(), REQUESTS["keys"], AT, "old")
    assert fake.writes() == []


@pytest.mark.parametrize(
    ("what", "kind", "completed"),
    [
        ("replace-jail", kinds.SLURMCLUSTER, {"refill": ["old", "last"]}),
        ("keys", kinds.SLURMCLUSTER, {"keys": ["old", "last"]}),
        ("upgrade", kinds.SLURMCLUSTER, {"upgrade": ["old", "last"]}),
        ("check", kinds.HEALTHCHECK, ["old", "last"]),
        ("backup", kinds.SLURMBACKUP, ["old", "last"]),
    ],
)
async def test_a_former_value_is_refused(what, kind, completed):
    """Because the operator would not carry it out."""
    fake = seeded(kind)
    fake.world.change(kind, AT, {"status": {"completedRequests": completed}}, sub="status")
    before = fake.writes()
    with pytest.raises(CliError, match="old was carried out before and is not carried out again: give another value"):
        await send(fake.api(), REQUESTS[what], AT, "old")
    assert fake.writes() == before
    await send(fake.api(), REQUESTS[what], AT, "new")


def test_what_ends_jobs_wants_a_yes():
    """And a misspelt request lists those there are."""
    with pytest.raises(CliError, match=r"drains all workers.*--yes"):
        chosen("replace-jail", yes=False)
    assert chosen("replace-jail", yes=True).beside == {"mode": "Overwrite"}
    done = CliRunner().invoke(app, ["request", "key", "demo"])
    assert done.exit_code == 1
    assert "use one of keys, repair-jail, replace-jail, upgrade, check" in done.output
