"""The pod of a node that gives way."""

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.parts.model import Cluster, NodeSet, Object
from soperator.render.worker import pod as worker_pod
from tests.golden.cases import DEFAULTS


def pod(**more: object) -> Object:
    """The pod of a NodeSet."""
    spec = SlurmClusterSpec.model_validate({"jail": {"claim": {"name": "a"}}, "controller": {"state": {"name": "b"}}})
    nodeset = NodeSet("slurm", "w", "uid", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}, **more}))
    return worker_pod.render_worker(Cluster("slurm", "demo", "uid", spec), nodeset, 0, DEFAULTS)


def test_it_is_given_time_and_a_hook_that_waits_and_no_other_pod_is() -> None:
    """Its jobs may go on for as long as is said, and slurmd has half a minute to end."""
    made, plain = pod(preemptible={"gracePeriod": "2h"}), pod()
    assert made["spec"]["terminationGracePeriodSeconds"] == 7230
    assert made["spec"]["containers"][0]["lifecycle"]["preStop"]["exec"]["command"] == ["/usr/lib/soperator/giveway"]
    assert plain["spec"]["terminationGracePeriodSeconds"] == 30
    assert "lifecycle" not in plain["spec"]["containers"][0]
    assert "gives-way" not in str(plain)
