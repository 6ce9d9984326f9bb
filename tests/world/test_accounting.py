"""Accounting is switched on and off under a running cluster, and what is wrong with it is said."""

from dataclasses import replace

import pytest

from soperator.api.base import GROUP
from soperator.kube import kinds
from soperator.kube.exec import Result
from tests.golden.cases import DEFAULTS
from tests.unit.fake_world import Fault
from tests.world.harness import NS, Town, operating, until

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
WORKERS = {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}}
ON = CLUSTER | {"accounting": {}}
EXTERNAL = {"host": "db.example.com", "password": {"secretName": "db"}}


OLD, NEW = "registry.test/slurm:1", "registry.test/slurm:2"
NEWER = replace(DEFAULTS, slurm=NEW, mariadb="registry.test/mariadb:2")


class Said:
    """What `cat /tmp/said` in slurmdbd's container prints."""

    def __init__(self):
        """Nothing."""
        self.text = ""

    async def __call__(self, _api, target, command):
        """A command that nobody else answers."""
        assert (target.container, list(command)) == ("slurmdbd", ["cat", "/tmp/said"])
        return Result(0, self.text, "")


@pytest.fixture
def said():
    """What slurmdbd says."""
    return Said()


@pytest.fixture
async def town(said):
    """An operator that runs over empty fakes."""
    async with operating(Town(), execute=said) as made:
        yield made


def pod_is(town, role, container, is_ready):
    """Do what a StatefulSet's controller and a kubelet do: a pod of the present template whose container runs, ready or not."""
    name = f"demo-{role}-0"
    if town.find(kinds.POD, name):
        town.fake.world.remove(kinds.POD, NS, name)
    template = town.find(kinds.STATEFULSET, f"demo-{role}")["spec"]["template"]
    meta = template["metadata"] | {"name": name, "namespace": NS}
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}],
        "containerStatuses": [
            {"name": container, "ready": is_ready, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        ],
    }
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}}
    town.fake.world.seed(made | {"status": status})


def image(town, role):
    """The image of the daemon in the template of a role."""
    (container,) = town.find(kinds.STATEFULSET, f"demo-{role}")["spec"]["template"]["spec"]["containers"]
    return container["image"]


def up_to_date(town):
    """The reason of the condition UpToDate."""
    found = town.status(kinds.SLURMCLUSTER, "demo")["conditions"]
    return next(each["reason"] for each in found if each["type"] == "UpToDate")


def conf(town):
    return town.find(kinds.CONFIGMAP, "demo-config")["data"]["slurm.conf"]


def told(town):
    found = town.status(kinds.SLURMCLUSTER, "demo").get("conditions", ())
    return next(
        ((each["status"], each["reason"], each["message"]) for each in found if each["type"] == "AccountingReady"), None
    )


async def apply_trial(town):
    """Let the trial of a configuration pass, and slurmctld start with it."""
    await until(lambda: any(each.startswith("demo-trial-") for each in town.names(kinds.POD)))
    town.trial_ends()
    await town.settle()
    town.restart("controller")
    town.slurmctld_starts()
    await town.settle()


async def switched_on(town, spec=ON):
    """Bring a cluster up and switch accounting on under it."""
    await town.up(CLUSTER, WORKERS)
    town.apply(kinds.SLURMCLUSTER, "demo", spec)
    await town.settle()
    if "demo-database" in town.names(kinds.STATEFULSET):
        pod_is(town, "database", "mariadb", True)
    pod_is(town, "accounting", "slurmdbd", True)
    await apply_trial(town)


async def test_a_deleted_password_comes_back_and_slurmdbd_stays(town):
    """Neither slurmdbd nor its database is removed for the moment in which the Secret is not there."""
    await switched_on(town)
    before = town.find(kinds.SECRET, "demo-database-password")["data"]
    workloads = {each: town.find(kinds.STATEFULSET, each)["metadata"]["uid"] for each in town.names(kinds.STATEFULSET)}
    for name in ("demo-database-password", "demo-database-password-kept"):
        town.fake.world.remove(kinds.SECRET, NS, name)
        await town.settle()
    assert town.find(kinds.SECRET, "demo-database-password")["data"] == before
    assert {each: town.find(kinds.STATEFULSET, each)["metadata"]["uid"] for each in workloads} == workloads


async def test_slurm_conf_names_slurmdbd_when_that_has_answered(town):
    """Database and slurmdbd come first; then the lines are tried, written, and slurmctld starts anew with them."""
    await town.up(CLUSTER, WORKERS)
    before = town.find(kinds.STATEFULSET, "demo-controller")["spec"]["template"]
    town.apply(kinds.SLURMCLUSTER, "demo", ON)
    await until(lambda: told(town) and told(town)[1] == "DatabaseNotReady")
    assert told(town) == ("False", "DatabaseNotReady", "the database 0/1 ready: 1 pod is not created yet")
    pod_is(town, "database", "mariadb", True)
    pod_is(town, "accounting", "slurmdbd", False)
    await until(lambda: told(town)[1] == "SlurmdbdNotReady")
    assert "AccountingStorageType" not in conf(town)
    pod_is(town, "accounting", "slurmdbd", True)
    await apply_trial(town)
    assert "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=demo-accounting\n" in conf(town)
    after = town.find(kinds.STATEFULSET, "demo-controller")["spec"]["template"]
    key = f"{GROUP}/fixed-settings"
    assert before["metadata"]["annotations"][key] != after["metadata"]["annotations"][key]
    await until(lambda: told(town) == ("True", "Accounting", ""))
    assert town.status(kinds.SLURMCLUSTER, "demo")["accounting"] == "On"


async def test_a_slurmdbd_that_is_down_stays_named(town, said):
    """slurmctld keeps its records; its files are not touched, and the condition says what the database said."""
    await switched_on(town)
    await until(lambda: told(town)[0] == "True")
    written = conf(town)
    said.text = "error: mysql_real_connect failed: 2002 Can't connect to server on 'demo-database' (115)\n"
    pod_is(town, "accounting", "slurmdbd", False)
    await until(lambda: told(town)[0] == "False")
    await town.settle(quiet=0.5)
    status, reason, message = told(town)
    assert (status, reason) == ("False", "DatabaseDown")
    assert "Can't connect to server on 'demo-database'" in message
    assert "slurmctld keeps its records" in message
    assert conf(town) == written
    assert town.status(kinds.SLURMCLUSTER, "demo")["conditions"][0]["status"] == "True"


async def test_a_database_that_does_not_know_the_cluster_is_told_and_off_and_on_is_the_way_out(town, said):
    """slurmdbd knows from its ConfigMap that it should; switched off and on again it may add the cluster, until slurm.conf names it."""
    await town.up(CLUSTER, WORKERS)
    town.apply(kinds.SLURMCLUSTER, "demo", ON)
    await town.settle()
    assert "registered" not in town.find(kinds.CONFIGMAP, "demo-accounting")["data"]
    pod_is(town, "database", "mariadb", True)
    pod_is(town, "accounting", "slurmdbd", True)
    await apply_trial(town)
    await until(lambda: told(town)[0] == "True")
    template = town.find(kinds.STATEFULSET, "demo-accounting")["spec"]["template"]
    assert town.find(kinds.CONFIGMAP, "demo-accounting")["data"]["registered"] == "demo"
    said.text = "the database does not know the cluster demo: it is another one than before, or has lost its records\n"
    pod_is(town, "accounting", "slurmdbd", False)
    await until(lambda: told(town)[:2] == ("False", "UnknownCluster"))
    assert "remove spec.accounting" in told(town)[2]
    assert "slurmctld keeps its records" in told(town)[2]
    assert town.find(kinds.STATEFULSET, "demo-accounting")["spec"]["template"] == template
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"accounting": None})
    await until(lambda: any(each.startswith("demo-trial-") for each in town.names(kinds.POD)))
    assert town.find(kinds.CONFIGMAP, "demo-accounting")["data"]["registered"] == "demo"
    town.trial_ends()
    await until(lambda: not town.find(kinds.CONFIGMAP, "demo-accounting"))
    town.fake.world.remove(kinds.POD, NS, "demo-accounting-0")
    town.apply(kinds.SLURMCLUSTER, "demo", ON)
    await until(lambda: town.find(kinds.CONFIGMAP, "demo-accounting"))
    assert "registered" not in town.find(kinds.CONFIGMAP, "demo-accounting")["data"]


async def test_a_wrong_password_is_told_and_slurmctld_is_left_alone(town, said):
    """The reason is one word, the sentence has the database's own and what to do; slurm.conf names no slurmdbd."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": NS}, "data": {}}
    town.fake.world.seed(secret)
    await town.up(CLUSTER, WORKERS)
    said.text = "error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'10.0.0.7' (using password: YES)"
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"accounting": {"externalDatabase": EXTERNAL}})
    await town.settle()
    pod_is(town, "accounting", "slurmdbd", False)
    await until(lambda: told(town) and told(town)[1] == "WrongPassword")
    assert "correct the password in the Secret, or the user" in told(town)[2]
    assert "AccountingStorage" not in conf(town)
    assert "demo-database" not in town.names(kinds.STATEFULSET)


async def test_another_password_starts_slurmdbd_anew(town):
    """slurmdbd reads it at its start alone, so a Secret that was changed is another template."""
    town.fake.world.seed(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "db", "namespace": NS},
            "data": {"password": "YQ=="},
        }
    )
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"accounting": {"externalDatabase": EXTERNAL}})
    await town.settle()
    before = town.find(kinds.STATEFULSET, "demo-accounting")["spec"]["template"]["metadata"]["annotations"]
    town.fake.world.change(kinds.SECRET, (NS, "db"), {"data": {"password": "Yg=="}})
    await town.settle()
    after = town.find(kinds.STATEFULSET, "demo-accounting")["spec"]["template"]["metadata"]["annotations"]
    assert {key for key in after if after[key] != before[key]} == {f"{GROUP}/secrets"}


async def test_a_secret_that_is_missing_is_named_and_nothing_is_made(town):
    """The condition names the field, the Secret and the remedy."""
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"accounting": {"externalDatabase": EXTERNAL}})
    await town.told(
        kinds.SLURMCLUSTER,
        "demo",
        "spec.accounting.externalDatabase.password.secretName: db: no Secret in the namespace has this name",
    )
    assert "demo-accounting" not in town.names(kinds.STATEFULSET)


async def test_switched_off_slurmctld_forgets_slurmdbd_before_that_goes(town):
    """slurmdbd and the database stay until slurmctld runs without them; the records and the password stay for ever."""
    await switched_on(town)
    await until(lambda: told(town)[0] == "True")
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"accounting": None})
    await until(lambda: any(each.startswith("demo-trial-") for each in town.names(kinds.POD)))
    await town.settle()
    assert {"demo-accounting", "demo-database"} <= set(town.names(kinds.STATEFULSET))
    before = len(town.fake.writes())
    town.trial_ends()
    await until(lambda: town.names(kinds.STATEFULSET) == ["demo-controller", "demo-login"])
    assert "AccountingStorage" not in conf(town)
    writes = town.fake.writes()[before:]
    gone = next(number for number, each in enumerate(writes) if each == "delete statefulsets slurm/demo-accounting")
    noted = [number for number, each in enumerate(writes) if each == "patch configmaps slurm/demo-config"]
    assert len(noted) == 3, writes  # written, handed out, and said by slurmctld
    assert max(noted) < gone
    assert "demo-database" in town.names(kinds.PVC)
    assert "demo-database-password" in town.names(kinds.SECRET)
    assert told(town) is None
    assert town.status(kinds.SLURMCLUSTER, "demo").get("accounting", "") == ""


async def test_an_operator_with_other_images_leaves_slurmdbd_and_its_database_alone(said):
    """A cluster with accounting is upgraded by a request, as any."""
    town = Town()
    async with operating(town, execute=said):
        await switched_on(town)
        await until(lambda: told(town)[0] == "True")
    before = [town.find(kinds.STATEFULSET, f"demo-{each}")["spec"] for each in ("accounting", "database")]
    async with operating(town, execute=said, defaults=NEWER, renderer="2"):
        await town.settle(quiet=0.5)
        assert [town.find(kinds.STATEFULSET, f"demo-{each}")["spec"] for each in ("accounting", "database")] == before


async def test_slurmdbd_runs_a_new_image_before_slurmctld_gets_it(said):
    """slurmctld keeps its own until slurmdbd's pod is ready with the new one, and UpToDate says so."""
    town = Town()
    async with operating(town, execute=said):
        await switched_on(town)
        await until(lambda: told(town)[0] == "True")
    async with operating(town, execute=said, defaults=NEWER):
        town.apply(kinds.SLURMCLUSTER, "demo", ON | {"upgrade": {"request": "now"}})
        await until(lambda: any(each.startswith("demo-trial-") for each in town.names(kinds.POD)))
        await town.settle()
        assert (image(town, "accounting"), image(town, "controller")) == (OLD, OLD)
        town.image_trials_end({OLD: "24.11.5", NEW: "24.11.6"})
        await until(lambda: image(town, "accounting") == NEW)
        await town.settle()
        assert image(town, "controller") == OLD
        await until(lambda: up_to_date(town) == "Slurmdbd")
        pod_is(town, "accounting", "slurmdbd", False)
        await town.settle()
        assert image(town, "controller") == OLD
        pod_is(town, "accounting", "slurmdbd", True)
        await until(lambda: image(town, "controller") == NEW)


async def test_the_records_outlive_the_cluster(town):
    """The claim and the password have no owner, so that a new cluster of this name finds both."""
    town.apply(kinds.SLURMCLUSTER, "demo", ON)
    await town.settle()
    for kind, name in ((kinds.PVC, "demo-database"), (kinds.SECRET, "demo-database-password")):
        assert "ownerReferences" not in town.find(kind, name)["metadata"]
    assert town.find(kinds.STATEFULSET, "demo-database")["metadata"]["ownerReferences"]


async def test_a_settled_cluster_with_accounting_costs_no_request(town):
    """Once all is as wanted, the operator asks the API server for nothing."""
    await switched_on(town)
    await until(lambda: told(town)[0] == "True")
    await town.settle(quiet=0.5)
    before = len(town.fake.requests)
    await town.settle(quiet=0.5)
    assert town.fake.requests[before:] == []


async def test_without_mariadb_operator_its_absence_is_told(town):
    """The sentence says what to install, or which field to remove; once the kind is there the resource is applied."""
    town.fake.faults.append(Fault("patch", "mariadbs", 404, "NotFound", times=8))
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"accounting": {"mariadbOperator": {}}})
    await until(lambda: told(town) and told(town)[1] == "NoDatabase")
    assert (
        "this Kubernetes has no kind MariaDB: install mariadb-operator, or remove spec.accounting.mariadbOperator"
        in told(town)[2]
    )
    await until(lambda: town.find(kinds.MARIADB, "demo-database"))
    await until(lambda: told(town)[1] == "SlurmdbdNotReady")


async def test_a_mariadb_resource_is_asked_for_once(town):
    """It is applied without an owner, and not again while nothing changes; slurmdbd finds it by its name."""
    spec = CLUSTER | {"accounting": {"mariadbOperator": {"size": "20Gi"}}}
    town.apply(kinds.SLURMCLUSTER, "demo", spec)
    await town.settle()
    made = town.find(kinds.MARIADB, "demo-database")
    assert made["spec"]["passwordSecretKeyRef"] == {"name": "demo-database-password", "key": "password"}
    assert "ownerReferences" not in made["metadata"]
    assert "demo-database" not in town.names(kinds.STATEFULSET)
    assert "StorageHost=demo-database\n" in town.find(kinds.CONFIGMAP, "demo-accounting")["data"]["slurmdbd.conf"]
    writes = [each for each in town.fake.writes() if "mariadbs" in each]
    await town.settle(quiet=0.5)
    assert [each for each in town.fake.writes() if "mariadbs" in each] == writes
    assert len(writes) == 1
