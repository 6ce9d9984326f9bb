"""Backups are made when they are due, one at a time, and their result is in the status."""

import asyncio
import json

import pytest

from soperator.api.base import GROUP
from soperator.kube import kinds
from soperator.policy.backup.schedule import RETRY
from tests.world.harness import NS, Town, operating, until

JOB = "demo-backup-nightly"
SPEC = {
    "clusterRef": {"name": "demo"},
    "repository": {"claimName": "backups", "password": {"secretName": "restic"}},
}
STORE = {
    "endpoint": "https://s3.example.com",
    "bucket": "backups",
    "credentialsSecretName": "none",
    "ca": {"secretName": "none"},
}
REPORT = {
    "snapshot": "01234567",
    "size": 2_000_000,
    "added": 1025,
    "seconds": 3.7,
    "nextJobId": 42,
    "contents": ["state"],
    "repository": "folder restic of claim backups",
    "repositoryId": 8 * "0123abcd",
}


def seed(town, kind, name, **more):
    meta = {"name": name, "namespace": NS}
    town.fake.world.seed({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **more})


@pytest.fixture
async def town():
    """An operator over a cluster that runs, with a claim and a Secret for backups."""
    made = Town()
    seed(made, kinds.PVC, "backups", spec={})
    seed(made, kinds.SECRET, "restic", data={"password": "c2VjcmV0"})
    async with operating(made):
        cluster = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
        await made.up(cluster, {"worker": {"clusterRef": {"name": "demo"}}})
        yield made


def ready(town):
    found = town.status(kinds.SLURMBACKUP, "nightly").get("conditions", ())
    return next(((each["status"], each["reason"]) for each in found if each["type"] == "Ready"), None)


def job(town):
    return town.find(kinds.JOB, JOB)


def ends(town, message, code=0):
    """What the kubelet and the Job controller do when the backup's pod ends with this message."""
    made = job(town)
    template = made["spec"]["template"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": JOB, "uid": made["metadata"]["uid"]}
    name = f"{JOB}-{made['metadata']['uid']}"
    meta = {"name": name, "namespace": NS, "labels": template["metadata"]["labels"], "ownerReferences": [owner]}
    end = {"name": "backup", "state": {"terminated": {"exitCode": code, "message": message}}}
    status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [end]}
    town.fake.world.seed(
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}, "status": status}
    )
    done = {"type": "Failed" if code else "Complete", "status": "True", "message": "it has failed"}
    town.fake.world.change(kinds.JOB, (NS, JOB), {"status": {"conditions": [done]}}, sub="status")


async def after(town, seconds):
    """Let the time of day go on by these seconds, and the operator look."""
    town.later += seconds
    note = {"metadata": {"labels": {"later": str(int(town.later))}}}
    town.fake.world.change(kinds.SLURMBACKUP, (NS, "nightly"), note)
    await town.settle()


async def test_a_backup_on_request_is_made_once(town):
    """The Job has the cluster's objects and Secrets, and the status what came of it; afterwards nothing is written."""
    town.apply(kinds.SLURMBACKUP, "nightly", SPEC)
    await until(lambda: ready(town) == ("True", "OnRequest"))
    assert job(town) is None
    town.apply(kinds.SLURMBACKUP, "nightly", SPEC | {"runRequest": "first"})
    await until(lambda: job(town))
    await until(lambda: ready(town) == ("False", "BackingUp"))
    objects = json.loads(town.find(kinds.CONFIGMAP, JOB)["data"]["objects.json"])
    found = {(each["kind"], each["metadata"]["name"]) for each in objects}
    assert found == {("SlurmCluster", "demo"), ("NodeSet", "worker"), ("SlurmBackup", "nightly")}
    ends(town, json.dumps(REPORT))
    await until(lambda: ready(town) == ("True", "BackedUp"))
    status = town.status(kinds.SLURMBACKUP, "nightly")
    last = status["lastBackup"]
    assert (status["request"], last["snapshot"], last["size"], last["added"]) == ("first", "01234567", "2Mi", "2Ki")
    assert (last["seconds"], last["nextJobId"], status.get("why", "")) == (4, 42, "")
    await until(lambda: job(town) is None)
    await town.settle()
    writes = len(town.fake.writes())
    await asyncio.sleep(60)
    assert (len(town.fake.writes()), job(town)) == (writes, None), "its pod would hold the claims"


async def test_a_schedule_makes_one_backup_after_the_other(town):
    """The first at once, the next at its time and not before, and never two at once."""
    town.apply(kinds.SLURMBACKUP, "nightly", SPEC | {"schedule": "@hourly"})
    first = (await until(lambda: job(town)))["metadata"]["uid"]
    await after(town, 7300)
    assert job(town)["metadata"]["uid"] == first, "two backups at once"
    ends(town, json.dumps(REPORT))
    await until(lambda: job(town) and job(town)["metadata"]["uid"] != first)
    await until(lambda: ready(town) == ("True", "BackingUp"))
    ends(town, json.dumps(REPORT | {"snapshot": "89abcdef"}))
    await until(lambda: town.status(kinds.SLURMBACKUP, "nightly")["lastBackup"]["snapshot"] == "89abcdef")
    await until(lambda: job(town) is None)
    await after(town, 1)
    assert job(town) is None
    await after(town, 3600)
    await until(lambda: job(town))


async def test_a_failed_backup_is_told_and_repeated(town):
    """The last good one stays in the status, the message is the container's, and a scheduled backup is tried again."""
    town.apply(kinds.SLURMBACKUP, "nightly", SPEC | {"schedule": "0 0 1 1 *"})
    await until(lambda: job(town))
    ends(town, json.dumps(REPORT))
    await until(lambda: ready(town) == ("True", "BackedUp"))
    await after(town, 10)
    town.apply(kinds.SLURMBACKUP, "nightly", SPEC | {"schedule": "0 0 1 1 *", "runRequest": "again"})
    await until(lambda: job(town) and not job(town).get("status", {}).get("conditions"))
    ends(town, "soperator: WrongPassword: The password in the Secret is not that of the repository.", 65)
    await until(lambda: ready(town) == ("False", "WrongPassword"))
    status, uid = town.status(kinds.SLURMBACKUP, "nightly"), job(town)["metadata"]["uid"]
    assert status["why"].startswith("The password in the Secret is not that")
    assert (status["lastBackup"]["snapshot"], status["request"]) == ("01234567", "again")
    assert any(each["type"] == "Stalled" for each in status["conditions"])
    await after(town, RETRY / 2)
    assert job(town)["metadata"]["uid"] == uid
    await after(town, RETRY / 2)
    await until(lambda: job(town) and job(town)["metadata"]["uid"] != uid)


async def test_a_suspended_one_makes_none(town):
    """Neither by its schedule nor by request."""
    town.apply(kinds.SLURMBACKUP, "nightly", SPEC | {"schedule": "@hourly", "runRequest": "now", "suspend": True})
    await until(lambda: ready(town) == ("True", "Suspended"))
    await after(town, 7200)
    assert job(town) is None


@pytest.mark.parametrize(
    ("repository", "words"),
    [
        ({"claimName": "none"}, "no PersistentVolumeClaim in the namespace has this name"),
        ({"claimName": "demo-jail"}, "it is the claim of the cluster's jail"),
        ({"claimName": "demo-state"}, "it is the claim of the cluster's state"),
        ({"claimName": "other-jail"}, "it is the claim of SlurmCluster other's jail"),
        ({"claimName": "scratch"}, "it is the claim of the cluster's volumes"),
        ({"password": {"secretName": "none"}}, "no Secret in the namespace has this name"),
        ({"s3": STORE}, "set exactly one of claimName and s3"),
        ({"claimName": ""}, "set exactly one of claimName and s3"),
        ({"claimName": "", "s3": STORE}, "create it with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (
            {"claimName": "", "s3": STORE | {"credentialsSecretName": "restic"}},
            "create it with the certificates in the entry ca.crt",
        ),
    ],
)
async def test_a_repository_that_cannot_be_safe_is_refused(town, repository, words):
    """A claim that users reach or that is lost with the state holds no backups; what is missing is named."""
    seed(town, kinds.PVC, "scratch", spec={})
    town.apply(kinds.SLURMCLUSTER, "other", {"jail": {"claim": {"name": "other-jail"}}})
    volumes = {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "scratch"}}]}
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}} | volumes)
    await town.settle()
    spec = SPEC | {"repository": SPEC["repository"] | repository, "runRequest": "now"}
    town.apply(kinds.SLURMBACKUP, "nightly", spec)
    await until(lambda: ready(town) == ("False", "InvalidSpec"))
    assert words in town.says(kinds.SLURMBACKUP, "nightly")
    assert job(town) is None


async def test_a_backup_waits_for_slurmctld(town):
    """Without a slurmctld that is ready there is no Job that nobody could schedule."""
    pod = town.find(kinds.POD, "demo-controller-0")
    not_ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    town.fake.world.change(kinds.POD, (NS, pod["metadata"]["name"]), {"status": not_ready}, sub="status")
    town.apply(kinds.SLURMBACKUP, "nightly", SPEC | {"runRequest": "now"})
    await until(lambda: ready(town) == ("False", "Waiting"))
    await town.settle()
    assert job(town) is None
    town.pods_run()
    await until(lambda: job(town))


async def test_a_lost_status_costs_nothing_while_the_job_is_there(town):
    """An operator that finds only the Job reports what it did, and makes no second backup."""
    town.apply(kinds.SLURMBACKUP, "nightly", SPEC | {"runRequest": "now"})
    uid = (await until(lambda: job(town)))["metadata"]["uid"]
    await until(lambda: ready(town) == ("False", "BackingUp"))
    town.operator.status.forget(town.find(kinds.SLURMBACKUP, "nightly")["metadata"]["uid"])
    town.fake.world.change(
        kinds.SLURMBACKUP, (NS, "nightly"), {"status": {"request": "", "attempted": 0}}, sub="status"
    )
    await town.settle()
    assert job(town)["metadata"]["uid"] == uid
    ends(town, json.dumps(REPORT))
    await until(lambda: town.status(kinds.SLURMBACKUP, "nightly").get("request") == "now")


async def test_the_pod_is_of_the_cluster_and_its_job_is_not(town):
    """The database's NetworkPolicy knows the pod by its labels; the cluster's pass, which deletes what it did not render, leaves the Job."""
    town.apply(kinds.SLURMBACKUP, "nightly", SPEC | {"runRequest": "now"})
    made = await until(lambda: job(town))
    assert f"{GROUP}/cluster" not in made["metadata"]["labels"]
    assert made["spec"]["template"]["metadata"]["labels"][f"{GROUP}/role"] == "backup"
    town.apply(kinds.SLURMCLUSTER, "demo", town.find(kinds.SLURMCLUSTER, "demo")["spec"] | {"login": {"replicas": 2}})
    await town.settle()
    assert job(town)["metadata"]["uid"] == made["metadata"]["uid"]


async def test_a_failed_job_does_not_outlive_its_cluster(town):
    """Its pod would keep the claim of the state from being deleted, and a restoration waits for that."""
    town.apply(kinds.SLURMBACKUP, "nightly", SPEC | {"runRequest": "now"})
    await until(lambda: job(town))
    ends(town, "soperator: it is full", 65)
    await until(lambda: ready(town) == ("False", "BackupFailed"))
    await town.settle()
    assert job(town)
    await town.operator.api.delete(kinds.SLURMCLUSTER, NS, "demo")
    await until(lambda: job(town) is None)


@pytest.mark.parametrize("kind", [kinds.JOB, kinds.CONFIGMAP])
async def test_what_another_has_made_under_the_name_stays(town, kind):
    """Names of two SlurmBackups may add up to one. It is named, and nobody is asked twice a second."""
    seed(town, kind, JOB, spec={})
    town.apply(kinds.SLURMBACKUP, "nightly", SPEC | {"runRequest": "now"})
    await until(lambda: "is not this SlurmBackup's" in town.says(kinds.SLURMBACKUP, "nightly"))
    requests = len(town.fake.requests)
    await asyncio.sleep(60)
    assert len(town.fake.requests) < requests + 30
    assert "ownerReferences" not in town.find(kind, JOB)["metadata"]


def expected(town):
    """The id of the repository that the Job expects."""
    (container,) = job(town)["spec"]["template"]["spec"]["containers"]
    return next((each["value"] for each in container["env"] if each["name"] == "SOPERATOR_REPOSITORY_ID"), None)


async def test_a_repository_with_backups_has_to_be_there_again(town):
    """The status says which one it was; the first backup, and the first in another place, accept any."""

    async def next_one(request, **more):
        spec = SPEC | {"runRequest": request, "repository": SPEC["repository"] | more}
        town.apply(kinds.SLURMBACKUP, "nightly", spec)
        await until(lambda: job(town) and job(town)["metadata"]["annotations"][f"{GROUP}/request"] == request)
        return expected(town)

    assert await next_one("first") is None
    ends(town, json.dumps(REPORT))
    await until(lambda: job(town) is None)
    assert await next_one("second") == REPORT["repositoryId"]
    ends(town, "soperator: RepositoryMissing: The repository is gone, which had backups.", 65)
    await until(lambda: ready(town) == ("False", "RepositoryMissing"))
    assert town.status(kinds.SLURMBACKUP, "nightly")["why"] == "The repository is gone, which had backups."
    assert await next_one("third") == REPORT["repositoryId"], "a failure does not make it forgotten"
    ends(town, "soperator: it has no reason", 1)
    await until(lambda: ready(town) == ("False", "BackupFailed"))
    assert await next_one("fourth", path="other") is None
