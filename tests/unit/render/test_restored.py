"""A restored cluster does not do again what was requested once, and gives no job id a second time."""

import pytest

from soperator.api.backup import SlurmBackupSpec
from soperator.api.healthcheck import HealthCheckSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.validate import World
from soperator.cli.request import REQUESTS as REQUESTED
from soperator.policy.validation import cluster_problems
from soperator.render.backup.restored import REQUESTS, fault, first_job_id, restored_objects, with_first_job_id
from tests.unit.model_fields import has

CLUSTER = {
    "auth": {"type": "munge", "rotateRequest": "r1"},
    "jail": {"refill": {"request": "all", "mode": "Overwrite"}, "claim": {"name": "shared"}},
    "upgrade": {"mode": "OnRequest", "request": "u1"},
    "config": {"extraLines": {"slurm": "MaxJobCount=5\n"}},
}


def saved(kind, spec):
    return {"apiVersion": "slurm.soperator.io/v1alpha1", "kind": kind, "metadata": {"name": "demo"}, "spec": spec}


def restored(*objects, first=77):
    return {each["kind"]: each for each in restored_objects(objects, "other", first)}


def test_no_request_of_a_backup_is_carried_out_again():
    """Neither a rotation of keys, nor the replacement of a jail, nor an upgrade, nor a check, nor a backup."""
    made = restored(
        saved("SlurmCluster", CLUSTER),
        saved("HealthCheck", {"when": {"runRequest": "c1", "schedule": "@daily"}}),
        saved("SlurmBackup", {"runRequest": "b1", "schedule": "@daily"}),
    )
    spec = made["SlurmCluster"]["spec"]
    assert (spec["auth"], spec["jail"], spec["upgrade"]) == (
        {"type": "munge"},
        {"claim": {"name": "shared"}},
        {"mode": "OnRequest"},
    )
    assert made["HealthCheck"]["spec"] == {"when": {"schedule": "@daily"}}
    assert made["SlurmBackup"]["spec"] == {"schedule": "@daily", "suspend": True}
    assert {each["metadata"]["namespace"] for each in made.values()} == {"other"}


def test_every_request_of_the_command_line_is_among_them():
    """So that a new one is not forgotten; and each of them is a field."""
    models = {"SlurmCluster": SlurmClusterSpec, "HealthCheck": HealthCheckSpec, "SlurmBackup": SlurmBackupSpec}
    for wish in REQUESTED.values():
        assert any(wish.path[: len(path)] == path for path in REQUESTS[wish.kind]), wish
    for kind, paths in REQUESTS.items():
        assert all(has(models[kind], list(path)) for path in paths)


def test_the_cluster_is_the_last_object():
    """An interrupted restoration has none, and can be run again."""
    made = restored_objects([saved("SlurmCluster", {}), saved("NodeSet", {}), saved("SlurmQOS", {})], "slurm", 7)
    assert made[-1]["kind"] == "SlurmCluster"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", "FirstJobId=77\n"),
        ("MaxJobCount=5\n", "MaxJobCount=5\nFirstJobId=77\n"),
        ("firstjobid = 5 # old\nMaxJobCount=5", "MaxJobCount=5\nFirstJobId=77\n"),
        ("FirstJobId=900\n", "FirstJobId=900\n"),
    ],
)
def test_job_ids_never_go_back(lines, expected):
    """FirstJobId is above all ids of the backup, and a higher one of the user stays."""
    assert with_first_job_id(lines, 77) == expected


def test_the_operator_accepts_the_restored_cluster():
    """The line is none that the operator refuses."""
    spec = SlurmClusterSpec.model_validate(
        restored(saved("SlurmCluster", {"auth": {"type": "slurm"}}))["SlurmCluster"]["spec"]
    )
    assert cluster_problems("demo", World(clusters={"demo": spec})) == []
    assert first_job_id(42, 10000) == 10042


NODES = saved("NodeSet", {"clusterRef": {"name": "demo"}})


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}, "v1 Pod"),
        (
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "x"}},
            "RoleBinding",
        ),
        (NODES | {"kind": "Secret"}, "Secret"),
        (saved("NodeSet", {"clusterRef": {"name": "other"}}), "is of SlurmCluster other"),
        (saved("NodeSet", {}), "is of SlurmCluster None"),
        (saved("SlurmCluster", {}) | {"metadata": {"name": "other"}}, "is of SlurmCluster other"),
        (saved("SlurmCluster", {}), "exactly one SlurmCluster"),
        (NODES | {"metadata": []}, "without a name"),
        (NODES | {"spec": "x"}, "without a name or a spec"),
        ("text", "no list"),
    ],
)
def test_what_no_backup_of_the_cluster_has_is_named(planted, words):
    """Who knows the password may have written it, and it would be created with the rights of who restores."""
    whole = [NODES, saved("SlurmCluster", {})]
    assert fault(whole, ["demo-auth-key", "demo-jwt-key", "demo-ssh-host-keys", "demo-database-password"], "demo") == ""
    assert words in fault([*whole, planted], [], "demo")
    assert "Secret registry-password" in fault(whole, ["demo-auth-key", "registry-password"], "demo")
    assert "exactly one" in fault([NODES], [], "demo")


def test_of_the_metadata_only_what_a_person_writes_is_created():
    """Neither owners nor finalizers, and no word of ours about the former cluster, such as that its jobs are abandoned."""
    meta = {
        "name": "demo",
        "namespace": "kube-system",
        "labels": {"team": "a"},
        "annotations": {"note": "b", "slurm.soperator.io/abandon-jobs": "true", "slurm.soperator.io/accept-key": "v"},
        "finalizers": ["x/y"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}],
    }
    made = restored(NODES | {"metadata": meta, "status": {"x": 1}})["NodeSet"]
    assert made["metadata"] == {
        "name": "demo",
        "namespace": "other",
        "labels": {"team": "a"},
        "annotations": {"note": "b"},
    }
    assert set(made) == {"apiVersion", "kind", "metadata", "spec"}
