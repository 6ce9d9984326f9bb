"""Which mount points the jail may lack is computed from the plans."""

import json

from hypothesis import given, settings

from soperator.agents import populate
from soperator.agents.mountpoints import PodMountPoint as AgentsPoint
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.jail.mount_plan import holder, login_plan, worker_plan
from soperator.render.jail.mount_points import (
    MADE,
    keys,
    own_points,
    points,
    render_mount_points,
)
from soperator.render.parts.model import Cluster, NodeSet
from tests.examples import examples
from tests.golden.cases import DEFAULTS
from tests.unit.render.test_plan import accepted, worlds


def cluster(*submounts):
    return Cluster("slurm", "demo", "u", SlurmClusterSpec.model_validate({"jail": {"submounts": submounts}}))


def nodeset(*submounts):
    return NodeSet(
        "slurm", "worker", "u", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}, "submounts": submounts})
    )


def test_what_populate_makes_needs_no_job():
    """The renderer knows the folders and files that the populate Job makes, and asks for none of them."""
    made = {f"/{path}" for path in (*populate.FOLDERS, *populate.PLACEHOLDERS)}
    assert made >= set(MADE)
    assert points(cluster({"path": "/home", "claimName": "homes"}), [nodeset()]) == []
    assert render_mount_points(cluster(), [nodeset()], DEFAULTS) == []


def test_points_lie_in_the_root_or_in_a_claim_that_may_be_written():
    """Below a claim the point is made in the claim, below memory or a folder of a Node it is not ours to make."""
    found = points(
        cluster({"path": "/home", "claimName": "homes", "subPath": "team"}, {"path": "/sets", "claimName": "sets", "readOnly": True}),
        [
            nodeset(
                {"path": "/home/data", "claimName": "data"}, {"path": "/ram", "tmpfs": {"size": "1Gi"}},
                {"path": "/ram/x", "claimName": "x"}, {"path": "/local", "hostPath": {"path": "/mnt"}},
                {"path": "/local/y", "claimName": "y"}, {"path": "/sets/z", "claimName": "z"},
            )
        ],
    )  # fmt: skip
    assert [(each.base, each.path, each.target) for each in found] == [
        ("/mnt/claims/homes", "team/data", "/home/data"),
        ("/mnt/jail/root", "local", "/local"),
        ("/mnt/jail/root", "ram", "/ram"),
        ("/mnt/jail/root", "sets", "/sets"),
    ]


@settings(max_examples=examples(50), deadline=None)
@given(worlds().filter(accepted))
def test_every_target_in_the_shared_root_is_known_or_asked_for(world):
    """After populate and this Job no line of any plan lacks its place in the shared root."""
    of, member = Cluster("slurm", "demo", "u", world[0]), NodeSet("slurm", "worker", "u", world[1])
    found = [*points(of, [member]), *own_points(of, [member])]
    there = {*MADE} | {each.target for each in found if each.base == "/mnt/jail/root"}
    for plan in (login_plan(of), worker_plan(of, member)):
        for number, each in enumerate(plan):
            is_first = number == 0 or not each.is_mount
            assert is_first or holder(plan[:number], each.target).kind != "root" or each.target in there


@settings(max_examples=examples(50), deadline=None)
@given(worlds().filter(accepted))
def test_the_job_is_given_what_it_mounts_and_the_agent_understands_it(world):
    """Each point's base is a volume of the Job's pod, and its text is what the agent reads; fewer points need no other Job."""
    of, member = Cluster("slurm", "demo", "u", world[0]), NodeSet("slurm", "worker", "u", world[1])
    for job in render_mount_points(of, [member], DEFAULTS):
        (container,) = job["spec"]["template"]["spec"]["containers"]
        mounted = {each["mountPath"] for each in container["volumeMounts"]}
        said = [AgentsPoint(**each) for each in json.loads(container["command"][-1])]
        assert {each.base.removesuffix("/root") for each in said} <= mounted
        assert keys(points(of, [])) <= keys(points(of, [member]))


def test_a_root_of_its_own_is_completed_by_its_pod_and_what_nodes_share_by_the_job():
    """Of the mount points those in the root are the pod's, those in a claim the Job's, whose pod then has no jail."""
    spec = {
        "jail": {
            "perNode": True,
            "submounts": [{"path": "/home", "claimName": "homes"}, {"path": "/data", "claimName": "data"}],
        }
    }
    of, member = (
        Cluster("slurm", "demo", "u", SlurmClusterSpec.model_validate(spec)),
        nodeset({"path": "/home/x", "claimName": "x"}),
    )
    assert [each.target for each in own_points(of, [member])] == ["/data"]
    assert [each.target for each in points(of, [member])] == ["/home/x"]
    (job,) = render_mount_points(of, [member], DEFAULTS)
    assert [each["name"] for each in job["spec"]["template"]["spec"]["volumes"]] == ["claim-0"]
