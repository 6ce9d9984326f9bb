"""What a user can fill: every emptyDir has a size, or a reason why it has none."""

import pytest

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster.login import render_login
from soperator.render.jail.mount_plan import login_plan, worker_plan
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.worker.pod import render_worker
from tests.golden.cases import DEFAULTS
from tests.unit.render.test_secrets import pods

#: Without a size by default: users' temporary files, which fields of the spec bound, and what MariaDB sorts. A pod that is over is evicted.
FREE = {"tmp"}
#: Volumes that the author of a spec brings.
GIVEN = {"extra"}


def test_every_empty_dir_has_a_size():
    """What daemons write is small and known, so a fault in one of them fills no Node."""
    without = {
        volume["name"]
        for _, spec in pods()
        for volume in spec.get("volumes", [])
        if "emptyDir" in volume and "sizeLimit" not in volume["emptyDir"]
    }
    assert without == FREE | GIVEN


def rendered(size):
    """The size of the temporary files of a worker and of login."""
    cluster = Cluster("slurm", "demo", "1", SlurmClusterSpec.model_validate({"login": size}))
    nodeset = NodeSet("slurm", "worker", "2", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}, **size}))
    stateful = next(each for each in render_login(cluster, DEFAULTS) if each["kind"] == "StatefulSet")
    for spec in (render_worker(cluster, nodeset, 0, DEFAULTS)["spec"], stateful["spec"]["template"]["spec"]):
        yield next(each["emptyDir"] for each in spec["volumes"] if each["name"] == "tmp")


def test_users_temporary_files_have_the_size_that_the_spec_says():
    """On workers and on login; without a word they have the Node's disk."""
    assert list(rendered({"tmpSize": "50Gi"})) == [{"sizeLimit": "50Gi"}] * 2
    assert list(rendered({})) == [{}] * 2


@pytest.mark.parametrize(
    "source",
    [{"hostPath": {"path": "/mnt/nvme"}}, {"volume": {"hostPath": {"path": "/mnt/nvme"}}}],
    ids=["own", "volume"],
)
@pytest.mark.parametrize("more", [{}, {"readOnly": True}])
def test_programs_of_a_folder_of_the_node_gain_no_rights_in_the_jail(source, more):
    """What others leave on the Node with a setuid bit is no way to root of the jail; a claim is the jail's own and keeps its bits."""
    mounts = [{"path": "/scratch", **source, **more}, {"path": "/home", "claimName": "homes", **more}]
    spec = SlurmClusterSpec.model_validate({"jail": {"submounts": mounts}})
    cluster = Cluster("slurm", "demo", "1", spec)
    for plan in (
        login_plan(cluster),
        worker_plan(cluster, NodeSet("slurm", "w", "2", NodeSetSpec(cluster_ref={"name": "demo"}))),
    ):
        options = {each.target: set(each.options) for each in plan}
        assert {"nosuid", "nodev"} <= options["/scratch"]
        assert "nosuid" not in options["/home"]
