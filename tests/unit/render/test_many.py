"""Several clusters in one namespace, and one name in several namespaces: what is rendered never meets."""

from itertools import combinations, permutations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.validate import World
from soperator.policy.validation import problems
from soperator.render.cluster.keys import render_secret, wanted_files
from soperator.render.cluster.objects import render_cluster
from soperator.render.jail.mount_points import render_mount_points
from soperator.render.jail.populate_job import render_populate
from soperator.render.parts import labels
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.slurm_conf import slurm_conf
from soperator.render.slurm_conf.trial import render_generation, render_live, render_trial
from soperator.render.worker.pod import render_plan, render_worker
from soperator.slurm.settings.state import ConfigState
from tests.examples import examples
from tests.golden.cases import DEFAULTS
from tests.unit.render.test_network import matches

#: Words of which our own names are made too, so that they meet as often as they can.
WORDS = st.sampled_from(["a", "b", "login", "controller", "rest", "workers", "config", "jail", "state", "0", "1"])
NAMES = st.lists(WORDS, min_size=1, max_size=3).map("-".join).filter(lambda name: len(name) <= 30)
SUBMOUNT = {"submounts": [{"path": "/data", "tmpfs": {"size": "1Gi"}}]}


def rendered(cluster, nodesets, namespace="slurm"):
    """Every object of a cluster, the pods of its workloads among them, as (kind, namespace, name)."""
    made = Cluster(
        namespace, cluster, f"uid-{namespace}-{cluster}", SlurmClusterSpec.model_validate({"jail": SUBMOUNT})
    )
    members = [
        NodeSet(namespace, name, f"uid-{name}", NodeSetSpec.model_validate({"clusterRef": {"name": cluster}}))
        for name in nodesets
    ]
    objects = [render_secret(made, name, dict.fromkeys(files, b"")) for name, files in wanted_files(made).items()]
    files, name = slurm_conf.files(made), slurm_conf.generation(made)
    objects += [render_live(made, files, ConfigState()), render_generation(made, name, files)]
    objects += [
        *render_cluster(made, DEFAULTS, jail_ready=True, state=ConfigState()),
        render_trial(made, DEFAULTS, name),
    ]
    objects += render_populate(made, DEFAULTS)
    objects += render_mount_points(made, members, DEFAULTS, "uid-job")
    for each in members:
        objects += [render_plan(made, each), *(render_worker(made, each, index, DEFAULTS) for index in range(2))]
    pods = [pod_of(each) for each in objects if each["kind"] == "StatefulSet"]
    return [*objects, *pods]


def pod_of(workload):
    """The first pod of a StatefulSet."""
    meta = workload["spec"]["template"]["metadata"]
    name, namespace = workload["metadata"]["name"], workload["metadata"]["namespace"]
    return {"kind": "Pod", "metadata": meta | {"name": f"{name}-0", "namespace": namespace}}


def named(objects):
    """Who each object is."""
    return [(each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]) for each in objects]


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck), deadline=None)
@given(st.dictionaries(NAMES, NAMES, min_size=2, max_size=4))
def test_accepted_clusters_of_a_namespace_share_no_name(nodesets):
    """Whatever clusters and NodeSets are called: where no check has a word against them, no two objects are one."""
    clusters = sorted(set(nodesets.values()))
    assume(len(clusters) > 1)
    world = World(
        clusters={name: SlurmClusterSpec() for name in clusters},
        node_sets={
            name: NodeSetSpec.model_validate({"clusterRef": {"name": cluster}}) for name, cluster in nodesets.items()
        },
    )
    assume(not problems(world))
    found = []
    for cluster in clusters:
        found += named(rendered(cluster, [name for name, of in nodesets.items() if of == cluster]))
    assert sorted(found) == sorted(set(found))


PLACES = [("demo", "one"), ("other", "one"), ("demo", "two")]


@pytest.mark.parametrize(("here", "there"), list(permutations(PLACES, 2)), ids="-".join)
def test_no_selector_of_a_cluster_chooses_a_pod_of_another(here, there):
    """Services, budgets and policies of one are about its own pods; a Pod's owner is its own cluster's."""
    ours = rendered(here[0], ["worker"], here[1])
    theirs = [each["metadata"] for each in rendered(there[0], ["worker"], there[1]) if each["kind"] == "Pod"]
    for each in ours:
        spec = each.get("spec", {})
        selector = {
            "Service": lambda spec: {"matchLabels": spec["selector"]},
            "NetworkPolicy": lambda spec: spec["podSelector"],
        }.get(each["kind"], lambda spec: spec.get("selector"))(spec)
        for pod in theirs if selector else ():
            same_namespace = pod["namespace"] == each["metadata"]["namespace"]
            assert not (same_namespace and matches(selector, pod["labels"])), (each["kind"], each["metadata"]["name"])


@pytest.mark.parametrize(("here", "there"), list(permutations(PLACES, 2)), ids="-".join)
def test_no_policy_lets_the_pods_of_another_cluster_in(here, there):
    """But for what everybody may reach, SSH to login: a peer without a namespace is one of the policy's own."""
    policies = [each for each in rendered(here[0], ["worker"], here[1]) if each["kind"] == "NetworkPolicy"]
    for source in (each["metadata"] for each in rendered(there[0], ["worker"], there[1]) if each["kind"] == "Pod"):
        for policy in policies:
            for rule in policy["spec"]["ingress"]:
                peers = rule.get("from", ())
                near = [each for each in peers if "namespaceSelector" in each or source["namespace"] == here[1]]
                assert not any(matches(each["podSelector"], source["labels"]) for each in near), policy["metadata"][
                    "name"
                ]
                assert peers or [each["port"] for each in rule["ports"]] == [22]


@pytest.mark.parametrize(("here", "there"), list(combinations(PLACES, 2)), ids="-".join)
def test_no_pod_mounts_or_calls_what_is_of_another_cluster(here, there):
    """Secrets, ConfigMaps and claims of a pod are its cluster's, and so are the addresses in its variables."""
    for one, other in ((here, there), (there, here)):
        foreign = {name for kind, namespace, name in named(rendered(other[0], ["worker"], other[1]))}
        foreign -= {name for _, _, name in named(rendered(one[0], ["worker"], one[1]))}
        for each in rendered(one[0], ["worker"], one[1]):
            text = str(each)
            assert [name for name in foreign if name.startswith(f"{other[0]}-") and f"'{name}" in text] == []
            assert other[1] == one[1] or f".{other[1]}.svc" not in text
            assert (
                labels.CLUSTER not in each["metadata"].get("labels", {})
                or each["metadata"]["labels"][labels.CLUSTER] == one[0]
            )
