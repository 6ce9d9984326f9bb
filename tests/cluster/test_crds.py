"""Schema, defaults and CEL rules, as a real API server applies them.

An API server alone is started from the local cluster's binaries, so that no test changes the kinds under a running operator.
"""

import json
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator.crdgen import generate
from soperator.crdgen.columns import ALL
from tests.bad_inputs import API_VERSION, CASES, Bad
from tests.cluster import apiserver
from tests.kstatus import kstatus

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of an API server started for this module."""
    programs = apiserver.binaries()
    if programs is None:
        pytest.skip("there is no kube-apiserver: `make cluster` builds it")
    with apiserver.running(tmp_path_factory.mktemp("apiserver"), programs) as config:
        yield config


@pytest.fixture(scope="module")
def kubectl(kubeconfig: Path) -> Kubectl:
    """kubectl, with our kinds installed; `obj` is standard input."""

    def run(*words: str, obj: dict[str, Any] | None = None) -> "subprocess.CompletedProcess[str]":
        return _run(kubeconfig, *words, stdin=json.dumps(obj) if obj else None)

    for kind in ALL:
        done = _run(kubeconfig, "apply", "--server-side", "-f", "-", stdin=generate.text_of(kind))
        assert done.returncode == 0, done.stderr
        crd = f"crd/{kind.plural}.slurm.soperator.io"
        assert not _run(kubeconfig, "wait", "--for=condition=Established", "--timeout=30s", crd).returncode
    return run


def _run(kubeconfig: Path, *words: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
    command = [f"{apiserver.binaries()}/kubectl", f"--kubeconfig={kubeconfig}", *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)


def cluster(name: str = "demo", **spec: Any) -> dict[str, Any]:
    """A SlurmCluster object."""
    return {"apiVersion": API_VERSION, "kind": "SlurmCluster", "metadata": {"name": name}, "spec": spec}


def node_set(name: str = "worker", **spec: Any) -> dict[str, Any]:
    """A NodeSet object of the cluster demo."""
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeSet",
        "metadata": {"name": name},
        "spec": {"clusterRef": {"name": "demo"}, **spec},
    }


def test_the_crds_are_established_and_structural(kubectl: Kubectl) -> None:
    """The API server accepts every schema, default and rule without a complaint."""
    for kind in ALL:
        got = json.loads(kubectl("get", "crd", f"{kind.plural}.slurm.soperator.io", "-o", "json").stdout)
        conditions = {each["type"]: each["status"] for each in got["status"]["conditions"]}
        assert conditions["Established"] == conditions["NamesAccepted"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"


@pytest.mark.parametrize("bad", CASES, ids=lambda bad: f"{bad.kind}-{bad.field}-{bad.server[:20]}")
def test_a_bad_input_is_refused_with_its_field_and_remedy(kubectl: Kubectl, bad: Bad) -> None:
    """`kubectl apply` says which field is wrong, and what to do."""
    done = kubectl("apply", "--dry-run=server", "-f", "-", obj=bad.object)
    assert done.returncode != 0
    assert bad.server in done.stderr
    assert bad.field.removeprefix("metadata.").rpartition(".")[2].partition("[")[0] in done.stderr


def test_the_example_is_accepted_and_defaults_are_filled_in(kubectl: Kubectl) -> None:
    """What the model defaults, the API server stores."""
    for document in yaml.safe_load_all((ROOT / "examples/cluster.yaml").read_text()):
        done = kubectl("apply", "--dry-run=server", "-o", "json", "-f", "-", obj=document)
        assert done.returncode == 0, done.stderr
        stored = json.loads(done.stdout)["spec"]
        model = next(kind.spec for kind in ALL if kind.kind == document["kind"])
        assert model.model_validate(stored) == model.model_validate(document["spec"])
        if document["kind"] == "SlurmCluster":
            assert stored["login"]["service"]["type"] == "NodePort"
            assert stored["controller"]["state"]["size"] == "4Gi"


def test_what_is_handed_through_is_kept(kubectl: Kubectl) -> None:
    """Kubernetes' own pieces are not pruned."""
    obj = node_set(
        podTemplate={"spec": {"runtimeClassName": "nvidia"}},
        volumes=[{"name": "a", "emptyDir": {"medium": "Memory"}}],
        scheduling={"tolerations": [{"operator": "Exists"}], "affinity": {"nodeAffinity": {"a": 1}}},
        submounts=[{"path": "/data", "volume": {"csi": {"driver": "x"}}}],
    )
    done = kubectl("apply", "--dry-run=server", "-o", "json", "-f", "-", obj=obj)
    stored = json.loads(done.stdout)["spec"]
    assert stored["podTemplate"] == obj["spec"]["podTemplate"]
    assert stored["volumes"] == obj["spec"]["volumes"]
    assert stored["scheduling"] == obj["spec"]["scheduling"]
    assert stored["submounts"][0]["volume"] == {"csi": {"driver": "x"}}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"jail": {"claim": {"name": "a"}}}, {"jail": {"claim": {"name": "b"}}}, "name of the claim cannot be changed"),
        ({"jail": {"claim": {"name": "a"}}}, {}, "name of the claim cannot be changed"),
        ({}, {"controller": {"state": {"name": "b"}}}, "name of the claim cannot be changed"),
        ({}, {"auth": {"type": "munge"}}, "type cannot be changed"),
        ({}, {"jail": {"claim": {"storageClassName": "fast"}}}, "storageClassName cannot be changed"),
        (
            {"jail": {"claim": {"size": "2Gi"}}},
            {"jail": {"claim": {"size": "1500Mi"}}},
            "size of a claim can only grow",
        ),
        (
            {"accounting": {"managedDatabase": {"claim": {"storageClassName": "fast"}}}},
            {"accounting": {}},
            "storageClassName of the database's claim cannot be changed",
        ),
        (
            {"accounting": {"managedDatabase": {"claim": {"size": "20Gi"}}}},
            {"accounting": {}},
            "size of the database's claim can only grow",
        ),
    ],
)
def test_what_running_pods_hold_cannot_be_changed(
    kubectl: Kubectl, before: dict[str, Any], after: dict[str, Any], words: str
) -> None:
    """A claim stays, and only grows."""
    name = f"c{zlib.crc32(str((before, after)).encode())}"
    assert kubectl("create", "-f", "-", obj=cluster(name, **before)).returncode == 0
    done = kubectl("replace", "--dry-run=server", "-f", "-", obj=cluster(name, **after))
    assert words in done.stderr


def test_what_may_change_may_change(kubectl: Kubectl) -> None:
    """What becomes of the keys, sizes that grow and scaling are ordinary edits."""
    assert kubectl("create", "-f", "-", obj=cluster("edit", jail={"claim": {"size": "1Gi"}})).returncode == 0
    edited = cluster("edit", jail={"claim": {"size": "2Gi"}}, login={"replicas": 3})
    done = kubectl("replace", "--dry-run=server", "-f", "-", obj=edited)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "after",
    [
        None,
        {"managedDatabase": {"claim": {"name": "other"}}},
        {"externalDatabase": {"host": "db", "password": {"secretName": "db"}}},
        {"mariadbOperator": {"size": "1Gi"}},
        {"managedDatabase": {"claim": {"size": "20Gi", "storageClassName": "fast"}}},
    ],
    ids=["removed", "another claim", "external", "mariadb", "grown"],
)
def test_accounting_leaves_the_database_that_it_had(kubectl: Kubectl, after: dict[str, Any] | None) -> None:
    """The size and the class of the database's claim bind only while the operator makes that claim."""
    name = f"a{zlib.crc32(str(after).encode())}"
    before = {"managedDatabase": {"claim": {"size": "15Gi", "storageClassName": "fast"}}}
    assert kubectl("create", "-f", "-", obj=cluster(name, accounting=before)).returncode == 0
    edited = cluster(name, **({} if after is None else {"accounting": after}))
    done = kubectl("replace", "--dry-run=server", "-f", "-", obj=edited)
    assert done.returncode == 0, done.stderr


def test_a_nodeset_keeps_its_cluster_and_scales(kubectl: Kubectl) -> None:
    """`clusterRef` is immutable; `kubectl scale` works."""
    assert kubectl("create", "-f", "-", obj=node_set()).returncode == 0
    done = kubectl("patch", "nset", "worker", "--type=merge", "-p", '{"spec":{"clusterRef":{"name":"other"}}}')
    assert "clusterRef cannot be changed" in done.stderr
    done = kubectl("scale", "nodeset/worker", "--replicas=5")
    assert done.returncode == 0, done.stderr
    assert kubectl("get", "nset", "worker", "-o", "jsonpath={.spec.replicas}").stdout == "5"


def test_kubectl_get_shows_the_state_and_the_reason(kubectl: Kubectl) -> None:
    """Every column of the status is there; short names and the category find the kinds."""
    assert kubectl("create", "-f", "-", obj=cluster("shown")).returncode == 0
    unseen = json.loads(kubectl("get", "slc", "shown", "-o", "json").stdout)
    assert kstatus(unseen) == "InProgress", "an object that the operator has not looked at yet"
    now = "2026-01-01T00:00:00Z"
    available = {"type": "Available", "status": "False", "reason": "Jail", "message": "x", "lastTransitionTime": now}
    status = {
        "conditions": [available, available | {"type": "Ready"}],
        "controller": {"summary": "1/1"},
        "login": {"summary": "0/1"},
        "workers": {"summary": "2/2"},
        "why": "the jail is being filled",
    }
    done = kubectl(
        "patch", "slc", "shown", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})
    )
    assert done.returncode == 0, done.stderr
    head, row = kubectl("get", "slurmcluster", "shown").stdout.splitlines()
    assert head.split() == ["NAME", "READY", "AVAILABLE", "CONTROLLER", "LOGIN", "WORKERS", "ADDRESS", "REASON", "AGE"]
    assert row.split()[:6] == ["shown", "False", "False", "1/1", "0/1", "2/2"]
    assert row.split()[-2] == "Jail"
    assert kubectl("get", "slurmcluster", "shown", "-o", "wide").stdout.strip().endswith("the jail is being filled")
    assert "slurmcluster.slurm.soperator.io/shown" in kubectl("get", "slurm", "-o", "name").stdout
