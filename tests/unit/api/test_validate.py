"""What needs more than one object, or a text that CEL cannot read."""

import json
import time
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from soperator.api.base import Problem
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.validate import World, validate_cluster, validate_nodeset
from soperator.policy.validation import cluster_problems


def cluster(**said: Any) -> SlurmClusterSpec:
    """A SlurmCluster's spec from its fields as people write them."""
    return SlurmClusterSpec.model_validate(said)


def node_set(of: str = "demo", **said: Any) -> NodeSetSpec:
    """A NodeSet's spec from its fields as people write them."""
    return NodeSetSpec.model_validate({"clusterRef": {"name": of}, **said})


def world(clusters: dict[str, SlurmClusterSpec] | None = None, **node_sets: NodeSetSpec) -> World:
    """A namespace with one cluster `demo`, or with the given ones; `_` in a NodeSet's name stands for `-`."""
    named = {name.replace("_", "-"): spec for name, spec in node_sets.items()}
    return World(clusters or {"demo": cluster()}, named)


def of_nodeset(name: str, where: World) -> list[Problem]:
    """The problems of one NodeSet of a world."""
    return validate_nodeset(name, where.node_sets[name], where)


def test_an_empty_cluster_and_a_nodeset_have_no_problems() -> None:
    """Defaults are valid."""
    where = world(worker=node_set())
    assert validate_cluster("demo", cluster(), where) == []
    assert of_nodeset("worker", where) == []


def test_a_partition_over_an_unknown_nodeset_names_the_known_ones() -> None:
    """The remedy lists what there is."""
    spec = cluster(partitions=[{"name": "gpu", "nodeSets": ["gpus"]}])
    (problem,) = validate_cluster("demo", spec, world(worker=node_set()))
    assert str(problem) == (
        "SlurmCluster demo: spec.partitions[0].nodeSets[0]: gpus: no NodeSet in the namespace has this name "
        "(existing: worker): create it, or remove it from the partition"
    )


def test_a_partition_over_a_feature_of_no_nodeset_names_those_there_are() -> None:
    """A misspelt feature would be a partition without nodes, of which Slurm says nothing."""
    sets = {"worker": node_set(features=["big"]), "other": node_set("another", features=["bug"])}
    spec = cluster(partitions=[{"name": "p", "features": ["big", "bug"]}])
    (problem,) = validate_cluster("demo", spec, World({"demo": spec}, sets))
    assert problem.field == "spec.partitions[0].features[1]"
    assert "(existing: worker, big)" in problem.remedy


def test_a_partition_over_another_clusters_nodeset_names_that_cluster() -> None:
    """The NodeSet exists, but is not ours."""
    spec = cluster(partitions=[{"name": "gpu", "nodeSets": ["worker"]}])
    (problem,) = validate_cluster("demo", spec, world(worker=node_set("other")))
    assert "belongs to the SlurmCluster other" in problem.remedy


def test_a_partial_world_blames_no_reference() -> None:
    """What is not said may exist."""
    spec = cluster(partitions=[{"name": "gpu", "nodeSets": ["gpus"]}])
    assert validate_cluster("demo", spec, World({"demo": spec}, partial=True)) == []
    assert validate_nodeset("a", node_set(), World(partial=True)) == []


def test_a_nodeset_without_its_cluster_names_the_known_ones() -> None:
    """The remedy lists what there is."""
    where = world(worker=node_set("dmeo"))
    (problem,) = of_nodeset("worker", where)
    assert (problem.field, problem.value) == ("spec.clusterRef.name", "dmeo")
    assert "existing: demo" in problem.remedy


def test_of_two_nodesets_with_one_pod_name_the_younger_is_blamed() -> None:
    """`a` with `b-c` and `a-b` with `c` both make pods a-b-c-<n>; the older one keeps the name."""
    where = world({"a": cluster(), "a-b": cluster()}, b_c=node_set("a"), c=node_set("a-b"))
    assert of_nodeset("b-c", where) == []
    (problem,) = of_nodeset("c", where)
    assert "its pods would have the names a-b-c-<n> of NodeSet b-c" in problem.remedy


def test_a_nodeset_must_not_take_the_names_of_another_clusters_login_pods() -> None:
    """`a` with `b-login` makes pods a-b-login-<n>, which are the login pods of `a-b`."""
    where = world({"a": cluster(), "a-b": cluster()}, b_login=node_set("a"))
    (problem,) = of_nodeset("b-login", where)
    assert "of the login of SlurmCluster a-b" in problem.remedy


def test_a_nodeset_must_not_be_named_like_a_node_of_another() -> None:
    """slurm.conf would have one name for a node and for a set of nodes."""
    where = world(gpu=node_set(), gpu_1=node_set())
    (problem,) = of_nodeset("gpu-1", where)
    assert "it is also the Slurm node gpu-1 of NodeSet gpu" in problem.remedy


def test_a_feature_must_not_be_another_nodesets_name() -> None:
    """Partitions choose nodes by the feature of that name."""
    where = world(a=node_set(features=["b"]), b=node_set())
    (problem,) = of_nodeset("a", where)
    assert (problem.field, problem.value) == ("spec.features[0]", "b")


def test_missing_claims_and_secrets_are_named_when_they_are_known() -> None:
    """Nothing is said while the caller does not know what there is."""
    spec = cluster(
        jail={"claim": {"name": "jail"}, "submounts": [{"path": "/home", "claimName": "home"}]},
        controller={"state": {"name": "state"}},
        images={"pullSecrets": ["registry"]},
        sssd={"configSecretName": "ldap"},
    )
    where = World({"demo": spec})
    assert validate_cluster("demo", spec, where) == []
    known = replace(where, claims=frozenset({"state"}), secrets=frozenset())
    assert [(problem.field, problem.value) for problem in validate_cluster("demo", spec, known)] == [
        ("spec.jail.claim.name", "jail"),
        ("spec.jail.submounts[0].claimName", "home"),
        ("spec.images.pullSecrets[0]", "registry"),
        ("spec.sssd.configSecretName", "ldap"),
    ]


def test_a_request_above_its_limit_is_a_problem() -> None:
    """Kubernetes would refuse the pod, and say so where nobody looks."""
    where = world(
        a=node_set(resources={"requests": {"memory": "2Gi", "cpu": 1}, "limits": {"memory": "1024Mi", "cpu": "1000m"}})
    )
    (problem,) = of_nodeset("a", where)
    assert (problem.field, problem.value) == ("spec.resources.requests.memory", "2Gi")
    assert "larger than the limit 1024Mi" in problem.remedy


def test_a_path_is_mounted_once_by_nodeset_and_cluster() -> None:
    """The NodeSet is told what its cluster mounts there; a path below another one, also below a tmpfs, is no fault."""
    spec = cluster(
        jail={"submounts": [{"path": "/data", "claimName": "a"}, {"path": "/scratch", "tmpfs": {"size": "1Gi"}}]}
    )
    own = [{"path": "/data", "claimName": "b"}, {"path": "/scratch/x", "claimName": "c"}]
    (problem,) = of_nodeset("a", world({"demo": spec}, a=node_set(submounts=own)))
    assert (problem.field, problem.value) == ("spec.submounts[0].path", "/data")
    assert "SlurmCluster demo mounts something at this path on every node" in problem.remedy


def test_nothing_is_mounted_below_what_each_job_has_anew() -> None:
    """The folder of a job is empty at its start."""
    spec = cluster(jail={"submounts": [{"path": "/scratch", "hostPath": {"path": "/mnt"}, "perJob": True}]})
    (problem,) = of_nodeset(
        "a", world({"demo": spec}, a=node_set(submounts=[{"path": "/scratch/x", "claimName": "x"}]))
    )
    assert (problem.field, problem.value) == ("spec.submounts[0].path", "/scratch/x")
    assert "each job has a new /scratch" in problem.remedy


@pytest.mark.parametrize(
    ("volume", "value", "said"),
    [
        ({}, "nothing", "exactly one source"),
        ({"nfs": {"server": "a", "path": "/b"}, "emptyDir": {}}, "emptyDir, nfs", "exactly one source"),
        ({"hostpath": {"path": "/b"}}, "hostpath", "no volume source of this name"),
    ],
)
def test_a_volume_has_one_source_that_kubernetes_knows(volume: dict[str, Any], value: str, said: str) -> None:
    """Kubernetes itself would take an unknown one, and give the pod an empty folder."""
    (problem,) = of_nodeset("a", world(a=node_set(submounts=[{"path": "/x", "volume": volume}])))
    assert (problem.field, problem.value) == ("spec.submounts[0].volume", value)
    assert said in problem.remedy


def test_what_a_volume_of_a_submount_refers_to_must_exist() -> None:
    """A claim or a Secret inside an inline volume is looked for as one of `volumes` is."""
    mounts = [
        {"path": "/x", "volume": {"persistentVolumeClaim": {"claimName": "gone"}}},
        {"path": "/y", "volume": {"secret": {"secretName": "lost"}}},
    ]
    where = replace(world({"demo": cluster(jail={"submounts": mounts})}), claims=frozenset(), secrets=frozenset())
    assert [(each.field, each.value) for each in validate_cluster("demo", where.clusters["demo"], where)] == [
        ("spec.jail.submounts[0].volume.persistentVolumeClaim.claimName", "gone"),
        ("spec.jail.submounts[1].volume.secret.secretName", "lost"),
    ]


def test_a_source_range_must_be_a_network() -> None:
    """An address with a wrong mask is refused with an example."""
    spec = cluster(
        login={"service": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8", "fd00::/8", "10.0.0/40"]}}
    )
    (problem,) = validate_cluster("demo", spec, world())
    assert (problem.field, problem.value) == ("spec.login.service.loadBalancerSourceRanges[2]", "10.0.0/40")


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"spec": {"hostname": "x"}}, "spec.podTemplate.spec.hostname"),
        ({"spec": {"hostUsers": True}}, "spec.podTemplate.spec.hostUsers"),
        (
            {"spec": {"containers": [{"name": "slurmd", "command": ["x"]}]}},
            "spec.podTemplate.spec.containers[0].command",
        ),
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.podTemplate.spec.containers[0].name"),
        ({"spec": {"containers": {}}}, "spec.podTemplate.spec.containers"),
        ({"metadata": {"name": "x"}}, "spec.podTemplate.metadata.name"),
        ({"metadata": {"labels": {"slurm.soperator.io/cluster": "x"}}}, "spec.podTemplate.metadata.labels"),
        ({"status": {}}, "spec.podTemplate.status"),
        ({"spec": "x"}, "spec.podTemplate.spec"),
        ({"spec": {"volumes": [{"name": "jail", "$patch": "delete"}]}}, "spec.podTemplate.spec.volumes[0].$patch"),
        ({"spec": {"$retainKeys": ["x"]}}, "spec.podTemplate.spec.$retainKeys"),
        ({"spec": {"volumes": None}}, "spec.podTemplate.spec.volumes"),
        ({"spec": {"volumes": ["x"]}}, "spec.podTemplate.spec.volumes[0]"),
        ({"spec": {"volumes": [{"emptyDir": {}}]}}, "spec.podTemplate.spec.volumes[0].name"),
        (
            {"spec": {"containers": [{"name": "slurmd", "volumeMounts": [{"name": "x"}]}]}},
            "spec.podTemplate.spec.containers[0].volumeMounts[0].mountPath",
        ),
        (
            {"spec": {"containers": [{"name": "x", "ports": [{"name": "http"}]}]}},
            "spec.podTemplate.spec.containers[0].ports[0].containerPort",
        ),
        (
            {"spec": {"initContainers": [{"name": "x", "env": {"A": "b"}}]}},
            "spec.podTemplate.spec.initContainers[0].env",
        ),
        ({"metadata": {"labels": None}}, "spec.podTemplate.metadata.labels"),
    ],
)
def test_a_pod_template_must_not_say_what_holds_a_worker_together(template: dict[str, Any], field: str) -> None:
    """Each is refused with its path."""
    (problem,) = of_nodeset("a", world(a=node_set(podTemplate=template)))
    assert problem.field == field


@pytest.mark.parametrize(
    ("spec", "path", "main"),
    [
        ({"jail": "T"}, "jail", "seal"),
        ({"controller": "T"}, "controller", "slurmctld"),
        ({"login": "T"}, "login", "sshd"),
        ({"rest": "T"}, "rest", "slurmrestd"),
        ({"rest": {"users": "T"}}, "rest.users", "proxy"),
        ({"accounting": {"slurmdbd": "T"}}, "accounting.slurmdbd", "slurmdbd"),
        ({"accounting": {"managedDatabase": "T"}}, "accounting.managedDatabase", "mariadb"),
        ({"metrics": {"exporter": "T"}}, "metrics.exporter", "exporter"),
    ],
)
def test_a_pod_template_of_a_role_must_not_say_what_holds_it_together(
    spec: dict[str, Any], path: str, main: str
) -> None:
    """Each role has one; what is refused is named with its path, and what has no field of ours passes."""

    def of_role(template: dict[str, Any]) -> list[Problem]:
        words = json.dumps(spec).replace('"T"', json.dumps({"podTemplate": template}))
        return validate_cluster("demo", SlurmClusterSpec.model_validate_json(words), world())

    bad = {"spec": {"hostNetwork": True, "containers": [{"name": main, "image": "x"}]}}
    at = f"spec.{path}.podTemplate.spec"
    assert [each.field for each in of_role(bad)] == [f"{at}.hostNetwork", f"{at}.containers[0].image"]
    assert of_role({"metadata": {"annotations": {"a/b": "c"}}, "spec": {"runtimeClassName": "kata"}}) == []


def test_the_resources_of_a_container_without_a_field_are_the_pod_templates() -> None:
    """nginx before users' slurmrestd, whose own resources are a field."""
    sized = {"resources": {"limits": {"memory": "1Gi"}}}
    template = {
        "spec": {
            "initContainers": [{"name": "slurmrestd", **sized}],
            "containers": [{"name": "proxy", **sized}],
        }
    }
    (problem,) = validate_cluster("demo", cluster(rest={"users": {"podTemplate": template}}), world())
    assert problem.field == "spec.rest.users.podTemplate.spec.initContainers[0].resources"


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ({"labels": {"app.kubernetes.io/name": "x"}}, "labels", "app.kubernetes.io/name"),
        ({"annotations": {"slurm.soperator.io/x": "x"}}, "annotations", "slurm.soperator.io/x"),
        ({"labels": {"a b": "x"}}, "labels", "a b"),
        ({"annotations": {"x/y/z": "x"}}, "annotations", "x/y/z"),
    ],
)
def test_a_service_has_labels_and_annotations_that_kubernetes_takes(
    said: dict[str, Any], field: str, value: str
) -> None:
    """Those of the operator find the Service again."""
    spec = cluster(login={"service": said}, rest={"users": {"service": said}})
    found = validate_cluster("demo", spec, world())
    paths = ("spec.login.service", "spec.rest.users.service")
    assert {(each.field, each.value) for each in found} == {(f"{path}.{field}", value) for path in paths}


def test_a_pod_template_may_say_what_we_have_no_field_for() -> None:
    """Annotations, sidecars, environment and runtime classes pass."""
    template = {
        "metadata": {"annotations": {"example.org/a": "b"}},
        "spec": {
            "runtimeClassName": "nvidia",
            "containers": [{"name": "slurmd", "env": []}, {"name": "agent", "image": "x"}],
        },
    }
    assert of_nodeset("a", world(a=node_set(podTemplate=template))) == []


@pytest.mark.parametrize(
    ("volumes", "mounts", "field"),
    [
        ([{"emptyDir": {}}], [], "spec.volumes[0].name"),
        ([{"name": "a"}, {"name": "a"}], [], "spec.volumes[1].name"),
        ([{"name": "jail"}], [], "spec.volumes[0].name"),
        ([{"name": "sssd"}], [], "spec.volumes[0].name"),
        ([{"name": "ssh"}], [], "spec.volumes[0].name"),
        ([{"name": "hostkeys"}], [], "spec.volumes[0].name"),
        ([], [{"name": "a", "mountPath": "/a"}], "spec.volumeMounts[0].name"),
        ([{"name": "a"}], [{"name": "a", "mountPath": "a"}], "spec.volumeMounts[0].mountPath"),
        ([{"name": "a"}], [{"name": "a", "mountPath": "/mnt"}], "spec.volumeMounts[0].mountPath"),
        ([{"name": "a"}], [{"name": "a", "mountPath": "/etc/soperator/x"}], "spec.volumeMounts[0].mountPath"),
        ([{"name": "a"}], [{"name": "a", "mountPath": "/"}], "spec.volumeMounts[0].mountPath"),
        ([{"name": "a"}], [{"name": "a", "mountPath": "/usr/../etc/soperator/keys"}], "spec.volumeMounts[0].mountPath"),
        ([{"name": "a"}], [{"name": "a", "mountPath": "//etc/soperator/keys"}], "spec.volumeMounts[0].mountPath"),
        ([{"name": "a"}], [{"name": "a", "mountPath": "/etc/./soperator/keys"}], "spec.volumeMounts[0].mountPath"),
    ],
)
def test_volumes_must_not_stand_in_the_workers_way(volumes: list[Any], mounts: list[Any], field: str) -> None:
    """Each is refused with its path."""
    (problem,) = of_nodeset("a", world(a=node_set(volumes=volumes, volumeMounts=mounts)))
    assert problem.field == field


def test_a_spec_with_nothing_but_faults_costs_little() -> None:
    """Each sentence named all features that there are, and there was one for each fault: ten NodeSets and one cluster made 700 MiB of them."""
    features = [[f"{number}-{each}".ljust(64, "x") for each in range(64)] for number in range(10)]
    sets = {
        f"n{number}": NodeSetSpec(cluster_ref={"name": "demo"}, features=each) for number, each in enumerate(features)
    }
    wrong = [f"z{number}" for number in range(64)]
    partitions = [
        {"name": f"p{each}", "features": wrong, "nodeSets": wrong, "options": dict.fromkeys(wrong, "x")}
        for each in range(256)
    ]
    spec = SlurmClusterSpec.model_validate(
        {"partitions": partitions, "config": {"extraLines": {"slurm": "Slrmctld=1\n" * 5000}}}
    )
    world = World(clusters={"demo": spec}, node_sets=sets)
    tracemalloc.start()
    began = time.process_time()
    found = cluster_problems("demo", world)
    assert time.process_time() - began < 2.0
    assert tracemalloc.get_traced_memory()[1] < 32 << 20
    tracemalloc.stop()
    assert 100 <= len(found) <= 400
    assert "and 630 more" in str(next(each for each in found if ".features" in each.field))


def test_a_namespace_of_many_nodesets_is_checked_in_one_go() -> None:
    """What one is checked against is put together once."""
    sets = {f"n{number}": NodeSetSpec(cluster_ref={"name": "demo"}, features=["a", "b"]) for number in range(4000)}
    world = World(clusters={"demo": SlurmClusterSpec()}, node_sets=sets)
    began = time.process_time()
    assert not [name for name in sets if validate_nodeset(name, sets[name], world)]
    assert time.process_time() - began < 4.0


def test_the_older_of_two_nodesets_keeps_the_name_of_its_pods() -> None:
    """a-b of cluster x, and b of cluster x-a."""
    sets = {"a-b": NodeSetSpec(cluster_ref={"name": "x"}), "b": NodeSetSpec(cluster_ref={"name": "x-a"})}
    world = World(clusters={"x": SlurmClusterSpec(), "x-a": SlurmClusterSpec()}, node_sets=sets)
    assert validate_nodeset("a-b", sets["a-b"], world) == []
    assert "of NodeSet a-b" in str(validate_nodeset("b", sets["b"], world)[0])
