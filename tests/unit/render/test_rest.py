"""The operator's slurmrestd in its pod: behind nginx, and with bounds on whoever connects."""

import re
from pathlib import Path

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster.slurmrestd import render_rest
from soperator.render.parts import names
from soperator.render.parts.model import Cluster
from tests.golden.cases import DEFAULTS

CONF = (Path(__file__).parents[3] / "images/proxy/operator.conf").read_text()
POD = render_rest(Cluster("slurm", "demo", "1", SlurmClusterSpec()), DEFAULTS)[0]["spec"]["template"]["spec"]


def test_slurmrestd_listens_on_the_loopback_alone():
    """What the Service leads to is nginx, and nginx leads to where slurmrestd listens."""
    (slurmrestd,), (proxy,) = POD["initContainers"], POD["containers"]
    assert {"name": "SOPERATOR_LISTEN", "value": f"127.0.0.1:{names.REST_LOCAL_PORT}"} in slurmrestd["env"]
    assert "ports" not in slurmrestd
    assert proxy["ports"] == [{"name": "rest", "containerPort": names.REST_PORT}]
    assert re.findall(r"^ +listen (\S+);", CONF, re.M) == [
        str(names.REST_PORT), str(names.REST_READY_PORT), "unix:/run/proxy/http", "unix:/run/proxy/ready",
    ]  # fmt: skip
    assert f"server 127.0.0.1:{names.REST_LOCAL_PORT} " in CONF


def test_an_address_may_have_more_connections_than_the_operator_opens():
    """The operator's client opens up to 100 connections, and slurmrestd takes 124."""
    (of_an_address,) = re.findall(r"limit_conn addresses (\d+);", CONF)
    (of_all,) = re.findall(r"max_conns=(\d+);", CONF)
    assert int(of_an_address) > 100
    assert 100 < int(of_all) < 124


def test_neither_container_has_a_key_or_is_root():
    """slurmctld judges each token; nginx sees it, and holds nothing."""
    assert {next(iter(set(each) - {"name"})) for each in POD["volumes"]} == {"configMap", "emptyDir"}
    assert {each["securityContext"]["runAsUser"] for each in (*POD["initContainers"], *POD["containers"])} == {
        64031,
        64035,
    }


def test_it_leaves_a_lost_node_soon_unless_the_spec_says_otherwise():
    """Without slurmrestd the operator sees nothing, and replaces nobody of that Node."""
    assert {each["key"]: each["tolerationSeconds"] for each in POD["tolerations"]} == {
        "node.kubernetes.io/not-ready": 15, "node.kubernetes.io/unreachable": 15,
    }  # fmt: skip
    own = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    spec = SlurmClusterSpec.model_validate({"rest": {"scheduling": {"tolerations": [own]}}})
    made = render_rest(Cluster("slurm", "demo", "1", spec), DEFAULTS)[0]["spec"]["template"]["spec"]
    assert [(each["key"], each.get("tolerationSeconds")) for each in made["tolerations"]] == [
        ("node.kubernetes.io/unreachable", None), ("node.kubernetes.io/not-ready", 15),
    ]  # fmt: skip
