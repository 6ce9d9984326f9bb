"""What docs/howto/on-demand.md tells autoscalers is what the NodeSet and the exporter have."""

import re

import pytest
import yaml

from local.paths import REPOSITORY
from soperator.observe import cluster

PAGE = (REPOSITORY / "docs/howto/on-demand.md").read_text()
BLOCKS = [yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", PAGE, re.S)]
KEDA, HPA = (next(each for each in BLOCKS if each.get("kind") == kind) for kind in ("ScaledObject", "HorizontalPodAutoscaler"))  # fmt: skip
RULE = next(each["externalRules"][0] for each in BLOCKS if "externalRules" in each)
QUERY = KEDA["spec"]["triggers"][0]["metadata"]["query"]


@pytest.mark.parametrize("scaler", [KEDA, HPA], ids=["keda", "hpa"])
def test_an_autoscaler_finds_the_scale_subresource_of_a_nodeset(scaler):
    """Its target is the kind of our CRD, whose scale subresource sets replicas and tells pods by a selector."""
    crd = yaml.safe_load((REPOSITORY / "charts/soperator-crds/templates/nodesets.yaml").read_text())
    version = crd["spec"]["versions"][0]
    target = scaler["spec"]["scaleTargetRef"]
    assert target["apiVersion"] == f"{crd['spec']['group']}/{version['name']}"
    assert target["kind"] == crd["spec"]["names"]["kind"]
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}  # fmt: skip
    assert version["subresources"]["scale"] == paths


def test_both_ask_for_the_nodes_that_are_wanted_and_those_that_are_busy():
    """Every metric and label of the query is the exporter's, and the adapter's rule, whose name the HPA asks for, is the same sum."""
    known = {each.name: {*each.labels} for each in cluster.METRICS}
    asked = re.findall(r"(slurm_\w+)\{([^}]*)\}", QUERY)
    assert [name for name, _ in asked] == [cluster.NODESET_WANTED.name, cluster.NODESET_NODES.name]
    assert all(set(re.findall(r"(\w+)=", labels)) <= known[name] for name, labels in asked)
    assert RULE["metricsQuery"] == QUERY
    external = HPA["spec"]["metrics"][0]["external"]
    assert external["metric"] == {"name": RULE["name"]["as"]}
    assert external["target"] == {
        "type": "AverageValue",
        "averageValue": KEDA["spec"]["triggers"][0]["metadata"]["threshold"],
    }


def test_no_autoscaler_goes_to_zero():
    """Slurm refuses jobs over more nodes than it knows."""
    assert KEDA["spec"]["minReplicaCount"] == HPA["spec"]["minReplicas"] > 0
    assert KEDA["spec"]["maxReplicaCount"] == HPA["spec"]["maxReplicas"]
