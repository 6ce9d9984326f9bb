"""The Services by which people come from outside: each role's spec has the same fields, and they become ServiceSpec's."""

import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster import login, user_rest_api
from soperator.render.parts.model import Cluster
from tests.golden.cases import DEFAULTS


def services(**said):
    """The Services of login and of users' slurmrestd, whose specs have the same fields."""
    spec = {"login": {"service": said}, "rest": {"users": {"service": said}}}
    cluster = Cluster("slurm", "demo", "uid", SlurmClusterSpec.model_validate(spec))
    made = [*login.render_login(cluster, DEFAULTS), *user_rest_api.render_rest_users(cluster, DEFAULTS)]
    return [each for each in made if each["kind"] == "Service"]


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ({"type": "NodePort"}, "type", "NodePort"),
        ({"type": "NodePort", "externalTrafficPolicy": "Local"}, "externalTrafficPolicy", "Local"),
        (
            {"type": "LoadBalancer", "loadBalancerSourceRanges": ["192.0.2.0/24"]},
            "loadBalancerSourceRanges",
            ["192.0.2.0/24"],
        ),
        ({"type": "LoadBalancer", "loadBalancerClass": "a.test/b"}, "loadBalancerClass", "a.test/b"),
        ({"sessionAffinity": "ClientIP"}, "sessionAffinity", "ClientIP"),
        ({"ipFamilyPolicy": "PreferDualStack"}, "ipFamilyPolicy", "PreferDualStack"),
        (
            {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6", "IPv4"]},
            "ipFamilies",
            ["IPv6", "IPv4"],
        ),
    ],
)
def test_each_field_reaches_the_service_of_every_role(said, field, value):
    """By the name that ServiceSpec has for it."""
    assert [each["spec"][field] for each in services(**said)] == [value, value]


def test_ports_are_the_specs():
    """The port of the Service, and a fixed one of the Nodes."""
    made = services(type="NodePort", port=2022, nodePort=30022)
    assert [(each["spec"]["ports"][0]["port"], each["spec"]["ports"][0]["nodePort"]) for each in made] == [
        (2022, 30022),
        (2022, 30022),
    ]


def test_what_kubernetes_takes_for_other_types_only_is_left_out():
    """A Service of type ClusterIP has no policy for traffic from outside."""
    for each in services(type="ClusterIP"):
        assert not {"externalTrafficPolicy", "loadBalancerClass", "ipFamilyPolicy"} & each["spec"].keys()


def test_labels_and_annotations_stand_beside_the_operators():
    """The operator's labels win."""
    for each in services(labels={"pool": "a"}, annotations={"a.test/b": "c"}):
        assert each["metadata"]["labels"]["pool"] == "a"
        assert each["metadata"]["labels"]["app.kubernetes.io/instance"] == "demo"
        assert each["metadata"]["annotations"] == {"a.test/b": "c"}
