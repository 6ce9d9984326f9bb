"""`soperator preflight` says what does not fit, and how to make it fit; with too few rights it says that, not ok."""

import json
import time

import pytest
from typer.testing import CliRunner

from soperator.cli.__main__ import app
from soperator.cli.preflight.checks import CHECKS, Level
from soperator.cli.preflight.facts import read_facts
from soperator.crdgen.columns import ALL
from soperator.kube.api import Api
from tests.unit.fake_api import FakeApi
from tests.unit.fake_world import Fault

RUN = CliRunner()
GOOD = {
    "kernelVersion": "6.8.0-40-generic",
    "kubeletVersion": "v1.33.1",
    "containerRuntimeVersion": "containerd://2.1.0",
    "architecture": "amd64",
}
HANDLERS = [{"name": "", "features": {"userNamespaces": True}}]


def node(fake, name="node-1", handlers=HANDLERS, **info):
    status = {"nodeInfo": {**GOOD, **info}, "runtimeHandlers": handlers}
    fake.world.seed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}, "status": status})


def claim(fake, mode="ReadWriteMany", phase="Bound"):
    meta = {"name": "demo-jail", "namespace": "slurm"}
    status = {"phase": phase, "accessModes": [mode]}
    fake.world.seed(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {}, "status": status}
    )


def _page(items):
    return json.dumps({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items})


def installed(fake, available=1, waits=None):
    meta = {"name": "soperator", "namespace": "soperator-system", "labels": {"app.kubernetes.io/name": "soperator"}}
    fake.world.seed(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {},
            "status": {"availableReplicas": available},
        }
    )
    status = {"containerStatuses": [{"name": "operator", "state": {"waiting": waits}}]} if waits else {}
    fake.world.seed({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}, "status": status})
    for each in ALL:
        name = {"name": f"{each.plural}.slurm.soperator.io"}
        fake.world.seed(
            {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": name, "spec": {}}
        )


def namespace(fake, **labels):
    meta = {"name": "slurm", "labels": {key.replace("_", "/"): value for key, value in labels.items()}}
    fake.world.seed({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


@pytest.fixture
def fake():
    """A cluster in which nothing is installed yet, and nothing is wrong but that it has no storage."""
    fake = FakeApi()
    fake.pages["/version"] = '{"gitVersion": "v1.33.1"}'
    fake.pages["/apis/storage.k8s.io/v1/storageclasses"] = _page([])
    return fake


async def findings(fake):
    facts = await read_facts(fake.api(), "slurm")
    return {found.check: found for found in (check(facts) for check in CHECKS)}


async def test_a_cluster_that_fits(fake):
    """All is ok after an installation."""
    node(fake)
    claim(fake)
    installed(fake)
    namespace(fake)
    assert {found.level for found in (await findings(fake)).values()} == {Level.OK}


async def test_an_empty_cluster_has_next_steps(fake):
    """What is not installed yet is no failure, and its command is there."""
    node(fake)
    claim(fake)
    found = await findings(fake)
    assert [each.check for each in found.values() if each.level is Level.WARN] == ["Kinds", "Operator"]
    assert found["Kinds"].remedy.startswith("helm install soperator-crds ")


@pytest.mark.parametrize(
    ("info", "check", "level", "words"),
    [
        ({"architecture": "arm64"}, "Nodes", Level.FAIL, "none of 1 Nodes has amd64"),
        ({"kernelVersion": "5.15.0"}, "User namespaces", Level.FAIL, "Node node-1 has Linux 5.15.0, older than 6.3"),
        (
            {"handlers": [{"name": "", "features": {}}]},
            "User namespaces",
            Level.FAIL,
            "Node node-1 cannot start pods in user namespaces",
        ),
        ({"handlers": []}, "User namespaces", Level.WARN, "Node node-1 does not report the features of its runtime"),
        (
            {"handlers": [{"name": "kata", "features": {"userNamespaces": True}}, {"name": ""}]},
            "User namespaces",
            Level.FAIL,
            "cannot start",
        ),
    ],
)
async def test_a_node_that_does_not_fit_is_named(fake, info, check, level, words):
    """With its versions, and both remedies for user namespaces."""
    node(fake, **info)
    found = (await findings(fake))[check]
    assert (found.level, words in found.message) == (level, True)
    assert found.remedy


async def test_an_old_kubernetes_fails(fake):
    """README names 1.30."""
    fake.pages["/version"] = '{"gitVersion": "v1.29.9-gke.1"}'
    assert (await findings(fake))["Kubernetes"].level is Level.FAIL


@pytest.mark.parametrize(
    ("driver", "level"),
    [("efs.csi.aws.com", Level.OK), ("nfs.csi.k8s.io", Level.OK), ("rook-ceph.cephfs.csi.ceph.com", Level.OK), ("file.csi.azure.com", Level.OK),
     ("ebs.csi.aws.com", Level.FAIL), ("pd.csi.storage.gke.io", Level.FAIL), ("rancher.io/local-path", Level.FAIL), ("rbd.csi.ceph.com", Level.FAIL),
     ("csi.example.com", Level.WARN)],
)  # fmt: skip
async def test_a_driver_is_judged_by_its_name(fake, driver, level):
    """Of one that is not known it says so."""
    fake.pages["/apis/storage.k8s.io/v1/storageclasses"] = _page(
        [{"metadata": {"name": "standard"}, "provisioner": driver}]
    )
    assert (await findings(fake))["Storage for the jail"].level is level


@pytest.mark.parametrize(
    ("level", "found"), [("restricted", Level.FAIL), ("baseline", Level.FAIL), ("privileged", Level.OK)]
)
async def test_pod_security_that_refuses_workers(fake, level, found):
    """With the very command."""
    namespace(fake, **{"pod-security.kubernetes.io_enforce": level})
    finding = (await findings(fake))["Pod Security"]
    assert finding.level is found
    if found is Level.FAIL:
        assert (
            finding.remedy == "kubectl label namespace slurm pod-security.kubernetes.io/enforce=privileged --overwrite"
        )


async def test_an_image_that_cannot_be_pulled_is_the_operators_finding(fake):
    """In Kubernetes' words."""
    installed(fake, 0, {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'})
    found = (await findings(fake))["Operator"]
    assert (found.level, found.message) == (Level.FAIL, 'ImagePullBackOff: Back-off pulling image "x"')


async def test_a_kind_that_an_older_chart_lacks_fails(fake):
    """Another release's CRDs are half of ours."""
    name = {"name": "slurmclusters.slurm.soperator.io"}
    fake.world.seed(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": name, "spec": {}}
    )
    found = (await findings(fake))["Kinds"]
    assert (found.level, "NodeSet" in found.message, found.remedy) == (
        Level.FAIL,
        True,
        "upgrade the chart soperator-crds to this version",
    )


async def test_what_may_not_be_read_is_no_ok(fake):
    """A person with few rights gets a warning for each, and the refusal."""
    for plural in ("nodes", "persistentvolumeclaims", "namespaces", "customresourcedefinitions", "deployments"):
        fake.faults.append(Fault("*", plural, 403, "Forbidden", "you may not", times=9))
    found = await findings(fake)
    assert [each.check for each in found.values() if each.level is Level.WARN] == [
        each for each in found if each != "Kubernetes"
    ]
    assert all("403 Forbidden: you may not" in each.message for name, each in found.items() if name != "Kubernetes")


def test_without_an_answer_there_is_one_sentence(monkeypatch):
    """A server that does not answer is no list of warnings."""
    monkeypatch.setattr(Api, "connect", lambda *_, **__: FakeApi(down=True).api())
    done = RUN.invoke(app, ["preflight"])
    assert (done.exit_code, len(done.output.splitlines())) == (1, 1)
    assert done.output.startswith("Kubernetes did not answer: ")


def test_a_failure_is_the_exit_code(fake, monkeypatch):
    """So that a script of an installation stops."""
    monkeypatch.setattr(Api, "connect", lambda *_, **__: fake.api())
    done = RUN.invoke(app, ["preflight"])
    assert done.exit_code == 1
    assert "fail  Storage for the jail: namespace slurm has no ReadWriteMany claim" in done.output
    assert "      remedy: install such a driver" in done.output


async def test_a_thousand_nodes_take_under_a_second(fake):
    """Of a core, and nine requests in pages of 500."""
    for number in range(1000):
        node(fake, f"node-{number}")
    began = time.process_time()
    assert (await findings(fake))["Nodes"].message == "1000 with amd64"
    assert time.process_time() - began < 1.0
    assert len(fake.requests) <= 9
