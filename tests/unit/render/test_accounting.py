"""slurmdbd and its database: who has the password, how large buffers are, who reaches what."""

from dataclasses import replace

import pytest

from soperator.api.common import Resources
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster import database, database_connection
from soperator.render.cluster.keys import render_secret, wanted_files
from soperator.render.cluster.network import render_network
from soperator.render.cluster.objects import after_start, render_accounted
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import accounting, slurm_conf
from tests.golden.cases import DEFAULTS, EMBEDDED, EXTERNAL, MARIADB

WAYS = {"embedded": EMBEDDED, "external": EXTERNAL, "mariadb-operator": MARIADB}
each_way = pytest.mark.parametrize("way", WAYS)


def cluster(spec):
    """A cluster of this spec, whose slurm.conf names slurmdbd."""
    return after_start(Cluster("slurm", "demo", "1", SlurmClusterSpec.model_validate(spec)))


def named(objects, kind, name):
    """The object of this kind and name."""
    return next(each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))


@each_way
def test_the_password_is_in_its_secret_alone(way):
    """No ConfigMap, no argument and no variable holds it; two containers at most mount it."""
    made = cluster(WAYS[way][0])
    objects = render_accounted(made, DEFAULTS)
    slurmdbd = named(objects, "StatefulSet", "demo-accounting")["spec"]["template"]["spec"]
    assert "StoragePass" not in str(objects)
    secret = database_connection.storage(made).password
    (volume,) = [each for each in slurmdbd["volumes"] if each["name"] == "database"]
    first = volume["projected"]["sources"][0]["secret"]
    assert first == {"name": secret.secret_name, "items": [{"key": secret.key, "path": "password"}]}
    for container in [*slurmdbd["initContainers"], *slurmdbd["containers"]]:
        mounts = {each["name"] for each in container["volumeMounts"]}
        assert ("database" in mounts) == (container["name"] == "slurmdbd")


@each_way
def test_all_ways_are_one_for_slurmctld(way):
    """Its lines name slurmdbd's Service, wherever the database is."""
    assert accounting.settings(cluster(WAYS[way][0]))["AccountingStorageHost"] == "demo-accounting"
    assert "AccountingStorageType=accounting_storage/slurmdbd" in slurm_conf.slurm_conf(cluster(WAYS[way][0]))


def test_without_accounting_nothing_is_made_and_nothing_said():
    """The lines are there only once slurmdbd has answered."""
    off = Cluster("slurm", "demo", "1", SlurmClusterSpec())
    assert render_accounted(off, DEFAULTS) == []
    waiting = Cluster("slurm", "demo", "1", SlurmClusterSpec.model_validate(EMBEDDED[0]))
    assert "Accounting" not in slurm_conf.slurm_conf(off) + slurm_conf.slurm_conf(waiting)


@each_way
def test_that_slurm_conf_names_slurmdbd_is_told_to_a_pod_that_runs(way):
    """The key is there or not, and the template of the pod is the same, so that no pod is made anew for it."""
    on = cluster(WAYS[way][0])
    waiting = replace(on, accounted=False)
    configs = [
        named(render_accounted(each, DEFAULTS), "ConfigMap", "demo-accounting")["data"] for each in (on, waiting)
    ]
    assert [each.pop("registered", None) for each in configs] == ["demo", None]
    assert configs[0] == configs[1]
    sets = [named(render_accounted(each, DEFAULTS), "StatefulSet", "demo-accounting") for each in (on, waiting)]
    assert sets[0] == sets[1]


def test_the_password_is_made_unless_the_database_is_elsewhere():
    """It outlives the cluster, as the records do."""
    assert "demo-database-password" not in wanted_files(cluster(EXTERNAL[0]))
    for spec in (EMBEDDED, MARIADB):
        made = cluster(spec[0])
        assert wanted_files(made)["demo-database-password"] == ("password",)
        assert "ownerReferences" not in render_secret(made, "demo-database-password", {"password": b"x"})["metadata"]


@pytest.mark.parametrize(
    ("resources", "mib"),
    [
        ({}, 512),
        ({"requests": {"memory": "4Gi"}}, 2048),
        ({"requests": {"memory": "4Gi"}, "limits": {"memory": "8Gi"}}, 4096),
        ({"limits": {"memory": "16Mi"}}, 16),
    ],
)
def test_buffers_take_half_of_the_memory(resources, mib):
    """Of the limit, else of the request, else of a gibibyte; and never less than MariaDB needs to start."""
    assert database.buffers(Resources.model_validate(resources)) == mib


def test_users_jobs_do_not_reach_the_database():
    """The policy for all pods of the cluster leaves it out, and its own lets in slurmdbd and backups, and the operator to the volume."""
    made = cluster(EMBEDDED[0])
    inside = named(render_network(made), "NetworkPolicy", "demo-inside")["spec"]["podSelector"]["matchExpressions"]
    assert inside == [{"key": "slurm.soperator.io/role", "operator": "NotIn", "values": ["database", "rest"]}]
    rule, watch = named(render_accounted(made, DEFAULTS), "NetworkPolicy", "demo-database")["spec"]["ingress"]
    roles = [each["podSelector"]["matchLabels"]["slurm.soperator.io/role"] for each in rule["from"]]
    assert roles == ["accounting", "backup"]
    assert [each["port"] for each in rule["ports"]] == [3306]
    assert watch["from"][0]["podSelector"] == {"matchLabels": {"app.kubernetes.io/name": "soperator"}}
    assert [each["port"] for each in watch["ports"]] == [6822]


def test_no_probe_ends_a_slurmdbd_or_a_database_that_is_busy():
    """Changing tables after an upgrade, and reading the log after a crash, take as long as they take."""
    for each in render_accounted(cluster(EMBEDDED[0]), DEFAULTS):
        if each["kind"] == "StatefulSet":
            (container,) = each["spec"]["template"]["spec"]["containers"]
            assert "readinessProbe" in container
            assert not {"livenessProbe", "startupProbe"} & container.keys()


def test_a_mariadb_resource_says_what_its_operator_asks_for():
    """Database, user and passwords by the fields of MariaDB v1alpha1; further fields of the spec are merged over ours."""
    (made,) = database.render_database(cluster(MARIADB[0]), DEFAULTS)
    assert {"database", "username", "passwordSecretKeyRef", "rootPasswordSecretKeyRef", "storage", "myCnf"} < made[
        "spec"
    ].keys()
    assert made["spec"]["galera"] == {"enabled": True}
    assert made["spec"]["storage"] == {"size": "50Gi", "storageClassName": "fast", "resizeInUseVolumes": True}
    assert database_connection.storage(cluster(MARIADB[0])).host == "demo-database-primary"
