"""Users get a slurmrestd, and tokens in Secrets that are kept fresh, never wider than asked for, and removed."""

import base64
import json

import pytest

from soperator.kube import kinds
from soperator.kube.exec import Result
from tests.world.harness import NS, Town, operating, until

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
WORKERS = {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}}
CI = {"user": "ci", "secretName": "ci-token", "lifetime": "1h"}
NOTE = "slurm.soperator.io/token"
KNOWN = {"ci": 1000, "toor": 0}


class Jail:
    """What getent prints beside slurmctld."""

    async def execute(self, _api, target, command):
        """A user's number, or nothing for one whom nobody knows."""
        assert target.container == "slurmctld"
        return Result(0, f"{KNOWN[command[-1]]}\n" if command[-1] in KNOWN else "", "")


@pytest.fixture
async def town():
    """A cluster that is up, and a time of day that a test moves."""
    made = Town()
    async with operating(made, execute=Jail().execute) as town:
        await town.up(CLUSTER, WORKERS)
        yield town


def wants(town, *tokens, **users):
    """Ask for a slurmrestd for users with these tokens."""
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"rest": {"users": {"tokens": tokens, **users}}})


def token(town, name="ci-token"):
    """The claims of the token in a Secret; none where there is none."""
    found = town.find(kinds.SECRET, name)
    if found is None or not found["data"].get("token"):
        return None
    claims = base64.b64decode(found["data"]["token"]).decode().split(".")[1]
    return json.loads(base64.urlsafe_b64decode(claims + "=="))


def note(town):
    """What stands on the Secret of its token."""
    return json.loads(town.find(kinds.SECRET, "ci-token")["metadata"]["annotations"][NOTE])


def served(town):
    """Status, reason and message of the condition RestServed."""
    found = town.status(kinds.SLURMCLUSTER, "demo").get("conditions", ())
    return next(
        ((each["status"], each["reason"], each["message"]) for each in found if each["type"] == "RestServed"), None
    )


async def test_the_pods_come_when_slurmctld_bounds_tokens_and_go_with_their_switch(town):
    """The configuration is tried and taken over first; the condition says what is waited for, and goes with the pods."""
    assert served(town) is None
    wants(town)
    await until(lambda: served(town))
    assert served(town)[:2] == ("False", "NotReady")
    assert "when slurmctld limits the lifetime of their tokens" in served(town)[2]
    assert town.find(kinds.DEPLOYMENT, "demo-rest-users") is None
    town.trial_ends()
    await until(lambda: town.find(kinds.DEPLOYMENT, "demo-rest-users"))
    town.apply(kinds.SLURMCLUSTER, "demo", {"rest": {"users": None}})
    await until(lambda: town.find(kinds.DEPLOYMENT, "demo-rest-users") is None)
    await until(lambda: served(town) is None)


async def test_a_token_is_made_and_goes_with_its_entry(town):
    """It is the user's, as long as asked for; the Secret has none when its entry is gone, and one again when it is back."""
    wants(town, CI)
    found = await until(lambda: token(town))
    assert (found["sun"], found["exp"] - found["iat"]) == ("ci", 3600)
    wants(town)
    await until(lambda: token(town) is None)
    assert town.find(kinds.SECRET, "ci-token")["data"]["user"] == ""
    assert town.find(kinds.SECRET, "demo-jwt-key")
    wants(town, CI)
    await until(lambda: token(town))


async def test_a_token_is_made_anew_when_half_of_it_is_over_and_when_the_key_changes(town):
    """Not before; and at once for a new key, for what the former has signed is no token any more."""
    wants(town, CI)
    await until(lambda: token(town))
    ends, signed = note(town)["ends"], town.find(kinds.SECRET, "ci-token")["data"]["token"]
    await town.settle()
    assert town.find(kinds.SECRET, "ci-token")["data"]["token"] == signed
    older = {NOTE: json.dumps(note(town) | {"ends": ends - 1801})}
    town.fake.world.change(kinds.SECRET, (NS, "ci-token"), {"metadata": {"annotations": older}})
    await until(lambda: note(town)["ends"] >= ends)
    signed = town.find(kinds.SECRET, "ci-token")["data"]["token"]
    users = {"tokens": [CI]}
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"rest": {"users": users}, "auth": {"rotateRequest": "x"}})
    await until(lambda: town.find(kinds.SECRET, "ci-token")["data"]["token"] != signed)


async def test_a_secret_of_somebody_else_is_never_touched(town):
    """It stays when the entry comes and when it goes, and the condition names it."""
    mine = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "ci-token", "namespace": NS},
        "data": {"a": "Yg=="},
    }
    town.fake.world.seed(mine)
    wants(town, CI)
    await bounded(town)
    await until(lambda: served(town) and served(town)[1] == "TokensNotKept")
    assert "Secret ci-token does not belong to the operator" in served(town)[2]
    wants(town)
    await until(lambda: served(town)[1] == "Served")
    assert town.find(kinds.SECRET, "ci-token")["data"] == {"a": "Yg=="}


async def test_nobody_and_root_under_another_name_get_no_token(town):
    """The condition says who and why, and the others get theirs."""
    wants(town, CI, {"user": "ghost", "secretName": "ghost-token"}, {"user": "toor", "secretName": "toor-token"})
    await bounded(town)
    await until(lambda: served(town) and served(town)[1] == "TokensNotKept" and token(town))
    assert "slurmctld does not know user ghost" in served(town)[2]
    assert "user toor is an administrator of Slurm" in served(town)[2]
    assert [town.find(kinds.SECRET, each) for each in ("ghost-token", "toor-token")] == [None, None]


async def test_a_certificate_that_is_missing_or_none_is_told(town):
    """By the name of its Secret, and taken back when it is there."""
    wants(town, tls={"secretName": "rest-tls"})
    await bounded(town)
    await until(lambda: served(town) and served(town)[1] == "Certificate")
    assert served(town)[2] == "Secret rest-tls does not exist: create it, with the type kubernetes.io/tls"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "rest-tls", "namespace": NS},
        "data": {"tls.key": "Yg=="},
    }
    town.fake.world.seed(secret)
    await town.settle()
    await until(lambda: "the certificate in Secret rest-tls: it lacks tls.crt" in served(town)[2])


async def bounded(town):
    """Let slurmctld take over the configuration, and the pods of the users' slurmrestd run."""
    await until(lambda: any(each.startswith("demo-trial-") for each in town.names(kinds.POD)))
    town.trial_ends()
    found = await until(lambda: town.find(kinds.DEPLOYMENT, "demo-rest-users"))
    town.restart("controller")
    town.slurmctld_starts()
    template = found["spec"]["template"]
    for number in range(2):
        meta = template["metadata"] | {"name": f"demo-rest-users-{number}", "namespace": NS}
        town.fake.world.seed({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}})
    town.pods_run()
    await town.settle()
