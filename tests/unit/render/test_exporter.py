"""The exporter's pod: who has the key, as whom it asks, and who may scrape."""

import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster.exporter import render_exporter
from soperator.render.cluster.network import render_network
from soperator.render.parts import labels
from soperator.render.parts.model import Cluster, Defaults

DEFAULTS = Defaults("slurm:1", "login:1", "munge:1", "populate:1", "jail:1")


def rendered(config=(), allow_from=(), **exporter):
    metrics = {"exporter": exporter, "allowFrom": list(allow_from)}
    spec = SlurmClusterSpec.model_validate({"metrics": metrics, "config": dict(config)})
    return {each["kind"]: each for each in render_exporter(Cluster("slurm", "demo", "1", spec), DEFAULTS)}


def pod(**metrics):
    return rendered(**metrics)["Deployment"]["spec"]["template"]["spec"]


def test_there_is_none_unless_it_is_asked_for():
    """A cluster that says nothing of metrics gets no further pod."""
    assert render_exporter(Cluster("slurm", "demo", "1", SlurmClusterSpec()), DEFAULTS) == []


def test_the_container_that_answers_has_no_key():
    """It reads the token that another one leaves; both are nobody, on a root that nobody writes."""
    (exporter,) = pod()["containers"]
    identity, signer = pod()["initContainers"]
    assert {each["name"]: each.get("readOnly") for each in exporter["volumeMounts"]} == {"token": True, "users": True}
    assert {each["name"]: each.get("readOnly") for each in identity["volumeMounts"]} == {"jail": True, "users": None}
    assert "keys" in {each["name"] for each in signer["volumeMounts"]}
    assert "ports" not in signer
    for each in (exporter, signer, identity):
        assert each["securityContext"]["runAsNonRoot"]
        assert each["securityContext"]["readOnlyRootFilesystem"]
        assert each["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(
    ("lines", "user"), [("", "slurmrest"), ("privatedata=jobs,nodes", "slurm"), ("#PrivateData=jobs", "slurmrest")]
)
def test_it_asks_as_a_user_without_rights(lines, user):
    """Except where Slurm would hide from such a one what is to be counted; the token is made for whom the exporter says it is."""
    spec = pod(config={"extraLines": {"slurm": lines}})
    words = [each for name in ("initContainers", "containers") for each in spec[name][-1]["command"]]
    assert [words[place + 1] for place, word in enumerate(words) if word == "--user"] == [user, user]


def test_a_node_has_series_of_its_own_unless_they_are_declined():
    """`nodes: false` is for clusters whose Prometheus is small."""
    assert "--no-nodes" not in pod()["containers"][0]["command"]
    assert "--no-nodes" in pod(nodes=False)["containers"][0]["command"]


def test_it_may_be_scraped_and_reaches_slurmrestd():
    """From everywhere, or from where the spec says; slurmrestd lets the pods of its cluster in."""
    (rule,) = rendered()["NetworkPolicy"]["spec"]["ingress"]
    assert rule == {"from": [{"namespaceSelector": {}}], "ports": [{"port": 8080, "protocol": "TCP"}]}
    peer = {"podSelector": {"matchLabels": {"app": "prometheus"}}}
    assert rendered(allow_from=[peer])["NetworkPolicy"]["spec"]["ingress"][0]["from"] == [peer]
    template = rendered()["Deployment"]["spec"]["template"]
    inside = next(
        each
        for each in render_network(Cluster("slurm", "demo", "1", SlurmClusterSpec()))
        if each["metadata"]["name"] == "demo-inside"
    )
    (source,) = inside["spec"]["ingress"][0]["from"]
    assert source["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert template["metadata"]["labels"] == labels.recommended(labels.role("demo", "exporter"))
