"""The charts lint, render what Kubernetes takes, and refuse values that mean nothing."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from local.paths import cache
from soperator import __version__
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.crdgen.columns import ALL
from soperator.kube import kinds
from soperator.reconcile.app import options
from soperator.reconcile.cache.informers import CHILDREN
from soperator.render.parts.labels import role

CHARTS = Path(__file__).parents[3] / "charts"
NAMES = sorted(path.name for path in CHARTS.iterdir())
#: What a chart needs at least.
NEEDED = {
    "slurm-cluster-storage": ["--set", "hostPath.path=/data"],
    "soperator": ["--set", "images.prefix=registry.test/soperator"],
}
Object = dict[str, Any]


@pytest.fixture(scope="module")
def helm() -> str:
    """The helm that `make cluster` built, or the one on PATH."""
    built = sorted((cache() / "bin").glob("*/helm"))
    found = str(built[-1]) if built else shutil.which("helm")
    if not found:
        pytest.skip("there is no helm: `make cluster` builds it")
    return found


def template(helm: str, chart: str, *words: str) -> list[Object]:
    """The objects of a chart, installed as `demo` into the namespace slurm."""
    done = run(helm, chart, *words)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def run(helm: str, chart: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """`helm template` of a chart."""
    needed = NEEDED[chart] if chart == "soperator" and "images.prefix" not in " ".join(words) else []
    command = [helm, "template", "demo", str(CHARTS / chart), "-n", "slurm", *needed, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    """The objects of one kind."""
    return [each for each in objects if each["kind"] == kind]


@pytest.mark.parametrize("chart", NAMES)
def test_lints(helm: str, chart: str) -> None:
    """`helm lint` finds nothing, warnings included."""
    command = [helm, "lint", "--strict", "--quiet", str(CHARTS / chart), *NEEDED.get(chart, [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("chart", NAMES)
def test_has_the_version_of_the_code(chart: str) -> None:
    """Charts, images and code are released together."""
    said = yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())
    assert (said["name"], said["version"], said["appVersion"]) == (chart, __version__, __version__)


@pytest.mark.parametrize(
    ("chart", "words"),
    [
        ("soperator", []),
        ("soperator", ["--set", "replicas=2"]),
        ("soperator", ["--set", "tenants.restrict=true,tenants.images={registry.test/team/},namespace=slurm"]),
        (
            "soperator",
            ["--set", "namespace=slurm,images.pullSecrets={a},podLabels.a=b,nodeSelector.a=b,priorityClassName=x"],
        ),
        ("slurm-cluster-storage", ["--set", "hostPath.path=/data"]),
        ("slurm-cluster-storage", ["--set", "nfs.server=192.0.2.1,nfs.path=/export,nfs.mountOptions={nfsvers=4.2}"]),
    ],
)
def test_renders_what_kubernetes_takes(helm: str, chart: str, words: list[str]) -> None:
    """Each object fits the strict schema of the oldest Kubernetes that we support."""
    objects = template(helm, chart, *words)
    assert objects
    for each in objects:
        kubernetes_validate.validate(each, "1.30", strict=True)


def aggregated(role: dict[str, Any]) -> set[str]:
    """Of which of Kubernetes' own roles a ClusterRole is a part."""
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    return {label.removeprefix(prefix) for label in role["metadata"]["labels"] if label.startswith(prefix)}


class TestOperator:
    """The chart `soperator`."""

    def test_runs_with_no_right_of_the_node(self, helm: str) -> None:
        """Non-root, read-only, without capabilities."""
        (deployment,) = of_kind(template(helm, "soperator"), "Deployment")
        pod = deployment["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["containers"][0]["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }

    @pytest.mark.parametrize(("restrict", "parts"), [("false", set()), ("true", {"edit", "admin"})])
    def test_writing_our_kinds_is_a_part_of_edit_only_where_tenants_are_held(
        self, helm: str, restrict: str, parts: set[str]
    ) -> None:
        """Reading is a part of view always; no role has a status or a finalizer."""
        roles = {
            each["metadata"]["name"]: each
            for each in of_kind(template(helm, "soperator", "--set", f"tenants.restrict={restrict}"), "ClusterRole")
        }
        (view,) = (each for name, each in roles.items() if name.endswith("-view"))
        (edit,) = (each for name, each in roles.items() if name.endswith("-edit"))
        assert aggregated(view) == {"view", "edit", "admin"}
        assert aggregated(edit) == parts
        assert [each["verbs"] for each in view["rules"]] == [["get", "list", "watch"]]
        assert not [
            each
            for role in (view, edit)
            for rule in role["rules"]
            for each in rule["resources"]
            if "status" in each or "finalizers" in each
        ]

    def test_a_lost_node_is_left_soon(self, helm: str) -> None:
        """The operator is replaced within seconds after its Node is given up, for it is the one that tells."""
        (deployment,) = of_kind(template(helm, "soperator"), "Deployment")
        said = deployment["spec"]["template"]["spec"]["tolerations"]
        assert {each["key"].rpartition("/")[2] for each in said} == {"not-ready", "unreachable"}
        assert max(each["tolerationSeconds"] for each in said) <= 30

    def test_several_lie_apart_and_are_evicted_one_at_a_time(self, helm: str) -> None:
        """With a standby the leader's Node may be drained, and who leads changes without a gap; an affinity of one's own stands."""
        assert not of_kind(template(helm, "soperator"), "PodDisruptionBudget")
        objects = template(helm, "soperator", "--set", "replicas=2")
        (deployment,), (budget,) = of_kind(objects, "Deployment"), of_kind(objects, "PodDisruptionBudget")
        assert "podAntiAffinity" in deployment["spec"]["template"]["spec"]["affinity"]
        assert budget["spec"]["selector"] == deployment["spec"]["selector"]
        words = ["--set", "replicas=2,affinity.nodeAffinity.x=y"]
        (deployment,) = of_kind(template(helm, "soperator", *words), "Deployment")
        assert deployment["spec"]["template"]["spec"]["affinity"] == {"nodeAffinity": {"x": "y"}}

    def test_its_environment_is_what_the_operator_reads(self, helm: str) -> None:
        """Default images and the watched namespace arrive."""
        words = ["--set", "images.prefix=r.test/s,images.jail=r.test/cuda:1,namespace=team,clusterDomain=k8s.test"]
        (deployment,) = of_kind(template(helm, "soperator", *words), "Deployment")
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        read = options({each["name"]: each.get("value", "") for each in container["env"]})
        assert container["image"] == f"r.test/s/operator:{__version__}"
        assert (read.defaults.slurm, read.defaults.jail) == (f"r.test/s/slurm:{__version__}", "r.test/cuda:1")
        assert (read.defaults.cluster_domain, read.namespace) == ("k8s.test", "team")

    def test_an_image_with_a_digest_is_named_by_it(self, helm: str) -> None:
        """A role without one, with an image of its own, or with another tag has none of the release."""
        digest = f"sha256:{64 * 'a'}"
        words = [
            "--set",
            f"images.prefix=r.test/s,images.digests.operator={digest},images.digests.jail={digest},images.jail=r.test/mine:1",
        ]
        (deployment,) = of_kind(template(helm, "soperator", *words), "Deployment")
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        read = options({each["name"]: each.get("value", "") for each in container["env"]})
        assert container["image"] == f"r.test/s/operator:{__version__}@{digest}"
        assert (read.defaults.slurm, read.defaults.jail) == (f"r.test/s/slurm:{__version__}", "r.test/mine:1")
        (other,) = of_kind(template(helm, "soperator", *words, "--set", "images.tag=v2"), "Deployment")
        assert other["spec"]["template"]["spec"]["containers"][0]["image"] == "r.test/s/operator:v2"

    def test_may_never_delete_keys_or_claims(self, helm: str) -> None:
        """The rights say what the operator promises."""
        rules = [rule for role in of_kind(template(helm, "soperator"), "ClusterRole") for rule in role["rules"]]
        verbs = {name: set(rule["verbs"]) for rule in rules for name in rule["resources"]}
        assert verbs["secrets"] == {"get", "list", "watch", "create", "patch"}
        assert "delete" not in verbs["persistentvolumeclaims"]
        assert verbs["nodes"] == {"get", "list", "watch"}
        assert not any("*" in rule["verbs"] + rule["resources"] + rule["apiGroups"] for rule in rules)

    def test_may_watch_every_kind_that_the_operator_keeps(self, helm: str) -> None:
        """A reflector without the right to list would never be ready."""
        rules = [rule for role in of_kind(template(helm, "soperator"), "ClusterRole") for rule in role["rules"]]
        watching = [rule for rule in rules if {"list", "watch"} <= set(rule["verbs"])]
        watched = {(group, name) for rule in watching for group in rule["apiGroups"] for name in rule["resources"]}
        kept = [*CHILDREN, kinds.POD, kinds.NODE, kinds.PVC, kinds.SLURMCLUSTER, kinds.NODESET]
        assert {(kind.group, kind.plural) for kind in kept} <= watched

    def test_one_namespace_needs_rights_in_that_namespace_only(self, helm: str) -> None:
        """Only Nodes are read everywhere."""
        objects = template(helm, "soperator", "--set", "namespace=team")
        assert [each["metadata"]["name"] for each in of_kind(objects, "ClusterRoleBinding")] == ["slurm-demo-nodes"]
        assert "team" in [each["metadata"]["namespace"] for each in of_kind(objects, "RoleBinding")]

    @pytest.mark.parametrize(("namespace", "kind"), [("", "ClusterRole"), ("team", "Role")])
    def test_two_releases_for_the_same_namespaces_collide(self, helm: str, namespace: str, kind: str) -> None:
        """Both hold an object of one name, which helm lets only one release own: a second operator is refused when it is installed."""
        found = of_kind(template(helm, "soperator", "--set", f"namespace={namespace}"), kind)
        (guard,) = (each for each in found if each["metadata"]["name"] == "soperator-is-here")
        assert guard["metadata"].get("namespace", "") == namespace
        assert guard["rules"] == []

    def test_refuses_a_value_that_is_none(self, helm: str) -> None:
        """A misspelt value is an error."""
        assert run(helm, "soperator", "--set", "replica=2").returncode != 0


class TestCluster:
    """The chart `slurm-cluster`."""

    def test_values_are_the_specs(self, helm: str, tmp_path: Path) -> None:
        """What stands in the values stands in the objects, unchanged."""
        cluster = {
            "login": {"replicas": 2},
            "config": {"extraLines": {"slurm": "MaxJobCount=5\nMinJobAge=2\n"}},
            "partitions": [{"name": "a"}],
        }
        worker = {
            "weight": 4294967280,
            "resources": {"limits": {"cpu": 2, "memory": "4Gi"}},
            "podTemplate": {"spec": {"a": "1e3"}},
        }
        values = tmp_path / "values.yaml"
        values.write_text(json.dumps({"cluster": cluster, "nodeSets": {"worker": worker, "spare": {}}}))
        objects = template(helm, "slurm-cluster", "-f", str(values))
        (made,) = of_kind(objects, "SlurmCluster")
        assert (made["metadata"], made["spec"]) == ({"name": "demo", "namespace": "slurm"}, cluster)
        node_sets = {each["metadata"]["name"]: each["spec"] for each in of_kind(objects, "NodeSet")}
        assert node_sets == {
            "worker": {"clusterRef": {"name": "demo"}, **worker},
            "spare": {"clusterRef": {"name": "demo"}},
        }
        SlurmClusterSpec.model_validate(made["spec"], strict=True, extra="forbid")
        for spec in node_sets.values():
            NodeSetSpec.model_validate(spec, strict=True, extra="forbid")

    def test_a_name_of_its_own_reaches_the_nodesets(self, helm: str) -> None:
        """The release may be called otherwise."""
        objects = template(helm, "slurm-cluster", "--set", "name=prod,nodeSets.worker.replicas=3")
        assert of_kind(objects, "SlurmCluster")[0]["metadata"]["name"] == "prod"
        assert of_kind(objects, "NodeSet")[0]["spec"] == {"clusterRef": {"name": "prod"}, "replicas": 3}

    @pytest.mark.parametrize(
        "value", ["clustr.a=1", "cluster.logn.replicas=1", "nodeSets.worker.cluster=x", "nodeSets.A.replicas=1"]
    )
    def test_refuses_a_value_that_is_no_field(self, helm: str, value: str) -> None:
        """The schema of the values is that of the kinds."""
        assert run(helm, "slurm-cluster", "--set", value).returncode != 0


class TestStorage:
    """The chart `slurm-cluster-storage`."""

    def test_claims_and_volumes_are_bound_to_each_other(self, helm: str) -> None:
        """No other claim takes the volume, and data outlives the release."""
        objects = template(helm, "slurm-cluster-storage", "--set", "cluster=prod,hostPath.path=/data/")
        claims = {each["metadata"]["name"]: each["spec"] for each in of_kind(objects, "PersistentVolumeClaim")}
        volumes = {each["metadata"]["name"]: each["spec"] for each in of_kind(objects, "PersistentVolume")}
        assert claims.keys() == {"prod-jail", "prod-state"}
        for name, claim in claims.items():
            volume = volumes[claim["volumeName"]]
            assert (volume["claimRef"]["namespace"], volume["claimRef"]["name"]) == ("slurm", name)
            assert volume["persistentVolumeReclaimPolicy"] == "Retain"
            assert volume["hostPath"] == {"path": f"/data/{name}", "type": "DirectoryOrCreate"}
            assert volume["accessModes"] == claim["accessModes"]
        assert claims["prod-jail"]["accessModes"] == ["ReadWriteMany"]

    def test_a_database_has_storage_where_it_is_asked_for(self, helm: str) -> None:
        """Its size says that it is."""
        objects = template(helm, "slurm-cluster-storage", "--set", "cluster=prod,hostPath.path=/data,database.size=5Gi")
        claims = {each["metadata"]["name"]: each["spec"] for each in of_kind(objects, "PersistentVolumeClaim")}
        assert claims["prod-database"]["resources"] == {"requests": {"storage": "5Gi"}}
        assert claims["prod-database"]["accessModes"] == ["ReadWriteOnce"]

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ("cluster=a", "set one of them"),
            ("hostPath.path=/a,nfs.server=b,nfs.path=/c", "leave the other empty"),
            ("nfs.server=b", "set the folder of the server"),
            ("hostPath.path=a", "pattern"),
        ],
    )
    def test_says_which_value_is_wrong(self, helm: str, value: str, words: str) -> None:
        """One place for the files, named."""
        assert words in run(helm, "slurm-cluster-storage", "--set", value).stderr


def test_the_chart_of_the_kinds_holds_them_and_nothing_else(helm: str) -> None:
    """One CRD per kind."""
    objects = template(helm, "soperator-crds")
    assert {each["spec"]["names"]["kind"] for each in objects} == {kind.kind for kind in ALL}


def test_nodes_are_written_on_only_where_machines_may_be_replaced(helm: str) -> None:
    """By default they are read; replaceMachines lets the operator cordon them, and write an annotation and a condition."""

    def verbs(*words: str) -> dict[str, list[str]]:
        roles = of_kind(template(helm, "soperator", *words), "ClusterRole")
        rules = next(each["rules"] for each in roles if each["metadata"]["name"].endswith("-nodes"))
        return {rule["resources"][0]: rule["verbs"] for rule in rules}

    assert verbs() == {"nodes": ["get", "list", "watch"]}
    assert verbs("--set", "replaceMachines=true") == {
        "nodes": ["get", "list", "watch", "patch"],
        "nodes/status": ["patch"],
    }


def test_monitors_are_made_where_their_kinds_exist(helm: str) -> None:
    """Three PodMonitors and the alerts as they stand in the file, with the labels by which a Prometheus selects; nothing without the kinds."""
    group = "monitoring.coreos.com/v1"
    assert [each for each in template(helm, "soperator") if each["apiVersion"] == group] == []
    found = template(helm, "soperator", "--api-versions", group, "--set", "monitoring.labels.release=prom")
    made = [each for each in found if each["apiVersion"] == group]
    assert sorted(each["kind"] for each in made) == ["PodMonitor", "PodMonitor", "PodMonitor", "PrometheusRule"]
    assert {each["metadata"]["labels"]["release"] for each in made} == {"prom"}
    (rule,) = of_kind(made, "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((CHARTS / "soperator/files/alerts.yaml").read_text())
    former = template(helm, "soperator", "--api-versions", group, "--set", "monitoring=null")
    assert len([each for each in former if each["apiVersion"] == group]) == 4
    off = template(helm, "soperator", "--api-versions", group, "--set", "monitoring.enabled=false")
    assert [each for each in off if each["apiVersion"] == group] == []


def test_the_monitors_find_what_they_are_for(helm: str) -> None:
    """The labels of the operator's pod, and those of an exporter and of a worker."""
    found = template(helm, "soperator", "--set", "monitoring.enabled=true")
    (deployment,) = of_kind(found, "Deployment")
    operator, exporters, workers = of_kind(found, "PodMonitor")
    assert (
        operator["spec"]["selector"]["matchLabels"].items()
        <= deployment["spec"]["template"]["metadata"]["labels"].items()
    )
    assert exporters["spec"]["selector"]["matchLabels"].items() <= role("demo", "exporter").items()
    assert workers["spec"]["selector"]["matchLabels"].items() <= role("demo", "worker").items()
    assert exporters["spec"]["namespaceSelector"] == workers["spec"]["namespaceSelector"] == {"any": True}


def test_an_alert_links_to_where_the_runbooks_are(helm: str) -> None:
    """`runbook_url` begins with the value `monitoring.runbooks`, as the links of dashboards do; a switch may be a string too."""
    words = ["--set-string", "monitoring.enabled=true", "--set", "monitoring.runbooks=https://git.test/soperator/"]
    (rule,) = of_kind(template(helm, "soperator", *words), "PrometheusRule")
    found = {each["annotations"]["runbook_url"] for group in rule["spec"]["groups"] for each in group["rules"]}
    assert len(found) > 10
    assert {each.partition("docs/runbooks/")[0] for each in found} == {"https://git.test/soperator/"}


def test_dashboards_are_made_where_they_are_asked_for(helm: str) -> None:
    """A ConfigMap for each file, with the label that Grafana's sidecar looks for and links to where the runbooks are; none by default."""
    assert of_kind(template(helm, "soperator"), "ConfigMap") == []
    words = ["--set", "monitoring.dashboards=true,monitoring.runbooks=https://git.test/soperator/"]
    made = of_kind(template(helm, "soperator", *words), "ConfigMap")
    files = {path.name: path.read_text() for path in (CHARTS / "soperator/files/dashboards").glob("*.json")}
    assert len(made) == len(files) > 0
    for each in made:
        kubernetes_validate.validate(each, "1.30", strict=True)
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        ((name, text),) = each["data"].items()
        assert json.loads(text.replace("https://git.test/soperator/", "")) == json.loads(
            files[name.removeprefix("soperator-")]
        )
        assert "](docs/" not in text
