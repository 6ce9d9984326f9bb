"""What a chart tells: its README, its notes after an installation, its test, and the sentence for a value that is missing."""

import re
import subprocess

import kubernetes_validate
import pytest

from local import chart_readme
from soperator.cli.__main__ import app
from tests.unit.charts.test_charts import CHARTS, NAMES, NEEDED, of_kind, run, template
from tests.unit.charts.test_charts import helm as helm

KEY = 'cluster.login.rootAuthorizedKeys={"ssh-ed25519 AAAA x"}'


def notes(helm: str, chart: str, *words: str) -> str:
    """The notes that helm prints after an installation as `demo` into the namespace slurm."""
    command = [
        helm,
        "install",
        "demo",
        str(CHARTS / chart),
        "-n",
        "slurm",
        "--dry-run=client",
        *NEEDED.get(chart, []),
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("NOTES:\n")[2]


@pytest.mark.parametrize("chart", NAMES)
def test_the_readme_of_a_chart_is_made_of_its_values(chart: str) -> None:
    """`make crds` writes it; each value has a meaning, and each link leads somewhere."""
    text = (CHARTS / chart / "README.md").read_text()
    assert text == chart_readme.text(chart)
    found = list(chart_readme.values((CHARTS / chart / "values.yaml").read_text()))
    assert [each.path for each in found if not each.meaning] == []
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (CHARTS / chart / link).exists(), link


def test_a_value_without_a_comment_is_found() -> None:
    """So that a new one does not stay without a meaning; a child of a value with a comment needs none."""
    text = 'a: 1\nb:\n  c: ""  # is c\n  d: 2\ne:  # is e\n  f: {x: 1}\n'
    found = {each.path: each.meaning for each in chart_readme.values(text)}
    assert found == {"a": "", "b.c": "is c", "b.d": "", "e": "is e"}


@pytest.mark.parametrize("chart", ["soperator", "slurm-cluster"])
def test_the_notes_name_verbs_that_exist(helm: str, chart: str) -> None:
    """With the release's name and namespace."""
    text = notes(helm, chart)
    verbs = {each.name for each in app.registered_commands}
    assert set(re.findall(r"(?:-- |  |: +)soperator ([a-z]+)", text)) <= verbs
    assert "soperator" in text
    assert "-n slurm" in text


def test_the_notes_of_a_cluster_say_what_it_lacks(helm: str) -> None:
    """A key and a NodeSet, with the command; with both they say nothing of it."""
    bare = notes(helm, "slurm-cluster")
    assert "rootAuthorizedKeys is empty, so root cannot log in" in bare
    assert "There is no NodeSet in the values" in bare
    whole = notes(helm, "slurm-cluster", "--set", f"{KEY},nodeSets.worker.replicas=2")
    assert "is empty" not in whole
    assert "no NodeSet" not in whole
    command = next(line for line in bare.splitlines() if "nodeSets.worker" in line).strip()
    assert command == "helm upgrade demo charts/slurm-cluster -n slurm --reuse-values --set nodeSets.worker.replicas=2"


def test_without_images_the_chart_says_so(helm: str) -> None:
    """In a sentence at the installation, instead of pods that pull from nowhere; the operator's image alone is enough."""
    command = [helm, "template", "demo", str(CHARTS / "soperator")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "images.prefix: it is empty: set it to where your images are" in done.stderr
    assert run(helm, "soperator", "--set", "images.prefix=,images.operator=x").returncode == 0


def test_the_operators_test_lists_the_clusters(helm: str) -> None:
    """With its image and its account, in the namespace that it watches."""
    (pod,) = of_kind(template(helm, "soperator", "--set", "namespace=team"), "Pod")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["status", "--all-namespaces", "-n", "team"]
    assert pod["spec"]["serviceAccountName"] == "demo"


def test_a_clusters_test_asks_whether_it_is_ready(helm: str) -> None:
    """Where it is given an image; it may read the two kinds, and nothing else."""
    assert {each["kind"] for each in template(helm, "slurm-cluster")} == {"SlurmCluster"}
    objects = [
        each
        for each in template(helm, "slurm-cluster", "--set", "test.image=r.test/operator:1")
        if each["kind"] != "SlurmCluster"
    ]
    for each in objects:
        kubernetes_validate.validate(each, "1.30", strict=True)
        assert each["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (pod,) = of_kind(objects, "Pod")
    assert pod["spec"]["containers"][0]["args"] == ["why", "demo", "-n", "slurm"]
    (role,) = of_kind(objects, "Role")
    assert role["rules"] == [
        {"apiGroups": ["slurm.soperator.io"], "resources": ["slurmclusters", "nodesets"], "verbs": ["get", "list"]}
    ]


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_switch_is_typed_as_everybody_types_it(helm: str, value: str) -> None:
    """`--set monitoring.enabled=true` is a boolean, and is taken."""
    objects = template(helm, "soperator", "--set", f"monitoring.enabled={value}")
    assert bool(of_kind(objects, "PodMonitor")) is (value == "true")
