"""Users' slurmrestd: what its pods hold, who reaches it, and when it comes."""

from dataclasses import replace

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster.network import render_network
from soperator.render.cluster.user_rest_api import render_rest_users
from soperator.render.parts import names
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import slurm_conf
from soperator.slurm.settings import diff
from soperator.slurm.settings.state import ConfigState
from tests.golden.cases import DEFAULTS


def cluster(**users):
    return Cluster("slurm", "demo", "1", SlurmClusterSpec.model_validate({"rest": {"users": {**users}}}))


def rendered(of, state=None):
    return {each["kind"]: each for each in render_rest_users(of, DEFAULTS, state)}


def pod(of):
    return rendered(of)["Deployment"]["spec"]["template"]["spec"]


def test_there_is_none_unless_it_is_asked_for():
    """A cluster that says nothing of it has the same slurm.conf and the same objects as ever."""
    plain = Cluster("slurm", "demo", "1", SlurmClusterSpec())
    assert render_rest_users(plain, DEFAULTS) == []
    assert slurm_conf.LONGEST not in slurm_conf.slurm_conf(plain)


def test_users_without_a_slurmrestd_make_no_tokens():
    """Slurm would give them tokens without end, which are good at the operator's slurmrestd too; with one of their own they end."""
    plain = Cluster("slurm", "demo", "1", SlurmClusterSpec())
    assert "jwt_hs256.key,disable_token_creation" in slurm_conf.slurm_conf(plain)
    assert "disable_token_creation" not in slurm_conf.slurm_conf(cluster())


def test_it_comes_when_slurmctld_bounds_tokens():
    """Not while slurmctld mounts a slurm.conf by which a token may last for ever."""
    wanted = cluster(maxLifetime="24h")
    assert "max_token_lifespan=86400" in slurm_conf.slurm_conf(wanted)
    former = diff.fixed(slurm_conf.files(Cluster("slurm", "demo", "1", SlurmClusterSpec())))
    state = ConfigState("new", "new", 1.0, "new", 1.0, 0, fixed=former)
    assert rendered(wanted, state) == {}
    assert set(rendered(wanted, replace(state, fixed=diff.fixed(slurm_conf.files(wanted))))) == {
        "Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget",
    }  # fmt: skip


def test_no_container_has_a_key_of_slurm_or_a_right():
    """slurmrestd has slurm.conf alone, nginx its certificate alone; neither is root, nor writes its root."""
    spec = pod(cluster(tls={"secretName": "rest-tls"}))
    (slurmrestd,), (proxy,) = spec["initContainers"], spec["containers"]
    assert [each["name"] for each in slurmrestd["volumeMounts"]] == ["config"]
    assert {each["name"] for each in proxy["volumeMounts"]} == {"proxy", "tls"}
    sources = {each["name"]: each.get("secret", {}).get("secretName") for each in spec["volumes"]}
    assert sources == {"config": None, "proxy": None, "tls": "rest-tls"}
    for each in (slurmrestd, proxy):
        assert each["securityContext"]["runAsNonRoot"]
        assert each["securityContext"]["readOnlyRootFilesystem"]


def test_slurmrestd_is_reached_through_nginx_alone():
    """It listens on the loopback of its pod, and the Service goes to nginx."""
    spec = pod(cluster())
    (slurmrestd,) = spec["initContainers"]
    assert {"name": "SOPERATOR_LISTEN", "value": f"127.0.0.1:{names.REST_PORT}"} in slurmrestd["env"]
    assert "ports" not in slurmrestd
    assert rendered(cluster())["Service"]["spec"]["ports"][0]["targetPort"] == "rest"


def test_slurmrestd_speaks_to_slurmdbd_where_there_is_accounting():
    """Without, there is nobody to speak to."""

    def said(of):
        spec = pod(of)
        return {
            each["name"]: each["value"]
            for part in (*spec["initContainers"], *spec["containers"])
            for each in part["env"]
        }

    assert said(cluster())["SOPERATOR_REST"] == "slurmctld"
    assert said(replace(cluster(), accounted=True))["SOPERATOR_REST"] == "slurmctld,slurmdbd"


def test_who_may_come_is_every_pod_unless_it_is_said_or_published():
    """Peers are taken as they are said; a Service that is reached from outside lets in whoever comes."""

    def peers(**users):
        (rule,) = rendered(cluster(**users))["NetworkPolicy"]["spec"]["ingress"]
        return rule.get("from")

    mine = [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    assert peers() == [{"namespaceSelector": {}}]
    assert peers(service={"type": "LoadBalancer"}) is None
    assert peers(allowFrom=mine) == peers(allowFrom=mine, service={"type": "LoadBalancer"}) == mine


def test_the_operators_own_slurmrestd_is_closed_to_users():
    """The policy that lets the cluster's pods reach each other leaves it out, also where users have none of their own."""

    def left_out(of):
        inside = next(each for each in render_network(of) if each["metadata"]["name"] == "demo-inside")
        return inside["spec"]["podSelector"]["matchExpressions"][0]["values"]

    assert left_out(cluster()) == left_out(Cluster("slurm", "demo", "1", SlurmClusterSpec())) == ["database", "rest"]
