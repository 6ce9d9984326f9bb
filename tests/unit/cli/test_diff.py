"""What a change would do, told from the objects that are there."""

from dataclasses import replace

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.cli.diff import LiveCluster, _digest, compare
from soperator.render.cluster.objects import render_cluster
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.slurm_conf import slurm_conf
from soperator.render.worker import pod
from soperator.slurm.settings.state import ConfigState
from tests.golden.cases import DEFAULTS


def cluster(**said):
    return Cluster("slurm", "demo", "uid", SlurmClusterSpec.model_validate(said))


def nodes(**said):
    return NodeSet(
        "slurm", "worker", "uid", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}, "replicas": 2, **said})
    )


def live(of, *members):
    """What an operator would have left of these."""
    name = slurm_conf.generation(of)
    state = ConfigState(name, name, asked=name)
    objects = render_cluster(of, DEFAULTS, jail_ready=True, state=state)
    applied = {f"{each['kind']}/{each['metadata']['name']}": _digest(each, of) for each in objects}
    templates = {each.name: [pod.template_hash(of, each, DEFAULTS)] * each.spec.replicas for each in members}
    return LiveCluster("uid", applied, slurm_conf.files(of), state, {}, templates)


def told(was, now, members=()):
    return "\n".join(compare(was, now, members, DEFAULTS))


def test_what_is_there_already_changes_nothing():
    """Not a line."""
    assert told(live(cluster(), nodes()), cluster(), [nodes()]) == ""


def test_a_line_of_slurm_conf_is_shown_with_what_it_takes():
    """The difference, the setting, and that daemons read it without a restart."""
    said = told(live(cluster()), cluster(config={"extraLines": {"slurm": "MaxJobCount=5"}}))
    assert "+MaxJobCount=5" in said
    assert "configuration (MaxJobCount): every daemon reads the new files (reconfigure)" in said
    assert "StatefulSet/demo-controller" not in said


def test_what_endangers_jobs_is_said():
    """Slurm's manual warns, and so do we."""
    assert "danger: SwitchType: " in told(
        live(cluster()), cluster(config={"extraLines": {"slurm": "SwitchType=switch/hpe_slingshot"}})
    )


def test_an_object_that_changes_is_named_with_what_it_does_to_its_pods():
    """Another size of login replaces login's pods."""
    said = told(live(cluster()), cluster(login={"resources": {"limits": {"memory": "1Gi"}}}))
    assert said == "StatefulSet/demo-login: changes, its pods are replaced"


def test_a_nodeset_tells_how_many_pods_are_replaced_and_how_many_there_will_be():
    """A rollout waits for jobs."""
    said = told(live(cluster(), nodes()), cluster(), [nodes(ssh=False, replicas=3)])
    assert "NodeSet worker: 2 pods are replaced, each after its jobs have ended" in said
    assert "NodeSet worker: 2 pods become 3" in said


def test_a_cluster_that_is_not_there_is_made():
    """Every object is named, and no file is compared with nothing."""
    said = told(LiveCluster(), replace(cluster(), uid=""))
    assert "StatefulSet/demo-controller: is made" in said
    assert "+++" not in said
