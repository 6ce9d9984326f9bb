"""What the local Prometheus is told of pods, and its configuration: that of the chart, but for how it learns of them."""

import yaml

from local import monitoring
from local.discovery import targets

EXPORTER = {
    "metadata": {"name": "demo-exporter-1", "namespace": "slurm", "labels": {"slurm.soperator.io/role": "exporter"}},
    "spec": {
        "nodeName": "node-1",
        "initContainers": [{"name": "token"}],
        "containers": [{"name": "exporter", "ports": [{"name": "http", "containerPort": 8080}]}],
    },
    "status": {"phase": "Running", "podIP": "10.244.1.6"},
}


def kept(pods, job):
    """The targets that are left after the `keep` and `drop` rules of a job of the chart's configuration."""
    rules = next(
        each["relabel_configs"] for each in monitoring.configuration()["scrape_configs"] if each["job_name"] == job
    )
    found = list(targets(pods))
    for rule in rules:
        if rule.get("action") in ("keep", "drop"):
            (label,), values = rule["source_labels"], rule["regex"].split("|")
            found = [each for each in found if (each["labels"].get(label, "") in values) == (rule["action"] == "keep")]
    return [address for each in found for address in each["targets"]]


def test_an_exporter_is_found_by_its_label_and_its_port():
    """Once, and not by the job of the operator; the container without a port, a pod without an address and one that has ended are left out."""
    assert kept([EXPORTER], "slurm") == ["10.244.1.6:8080"]
    assert kept([EXPORTER], "soperator") == []
    assert kept([EXPORTER | {"status": {"phase": "Pending"}}], "slurm") == []
    assert kept([EXPORTER | {"status": {"phase": "Failed", "podIP": "10.244.1.6"}}], "slurm") == []


def test_a_target_has_the_labels_that_prometheus_would_give_it():
    """Names of labels are made plain as there."""
    container, http = list(targets([EXPORTER]))
    assert container["targets"] == ["10.244.1.6"]
    assert container["labels"]["__meta_kubernetes_pod_container_init"] == "true"
    assert http["labels"]["__meta_kubernetes_pod_label_slurm_soperator_io_role"] == "exporter"
    assert http["labels"]["__meta_kubernetes_namespace"] == "slurm"


def test_the_local_configuration_is_that_of_the_chart():
    """Jobs, relabelling and rules are; discovery and intervals are not."""
    ours, charts = monitoring.configuration(), yaml.safe_load((monitoring.FILES / "prometheus.yaml").read_text())
    assert [each["relabel_configs"] for each in ours["scrape_configs"]] == [
        each["relabel_configs"] for each in charts["scrape_configs"]
    ]
    assert [each.rsplit("/", 1)[1] for each in ours["rule_files"]] == charts["rule_files"]
    assert all(set(each) == {"job_name", "http_sd_configs", "relabel_configs"} for each in ours["scrape_configs"])
