"""Munge beside Slurm's daemons in one pod."""

from pathlib import Path

import pytest

from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.cluster.login import render_login
from soperator.render.cluster.slurmctld import render_controller
from soperator.render.cluster.slurmdbd import render_accounting
from soperator.render.jail.mount_plan import login_plan, worker_plan
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.worker.pod import render_worker
from tests.golden.cases import DEFAULTS


def test_no_two_users_share_the_folder_of_their_keys():
    """Each daemon copies the keys for itself alone, so that another user's copy would be in its way."""
    cluster = Cluster("slurm", "demo", "1", SlurmClusterSpec.model_validate({"auth": {"type": "munge"}}))
    pod = render_controller(cluster, DEFAULTS)[0]["spec"]["template"]["spec"]
    owners = {}
    for container in (*pod["initContainers"], *pod["containers"]):
        for mount in container["volumeMounts"]:
            if mount["mountPath"] == "/run/soperator":
                owners.setdefault(mount["name"], set()).add(container["securityContext"]["runAsUser"])
    assert len(owners) == 2
    assert all(len(users) == 1 for users in owners.values())
    assert owners.keys() <= {volume["name"] for volume in pod["volumes"]}


def mounts(container):
    """Each mount of a container by its volume."""
    return {each["name"]: each for each in container.get("volumeMounts", [])}


MUNGE = SlurmClusterSpec.model_validate({"auth": {"type": "munge"}, "accounting": {}})


def pods():
    """The pod of each role of a cluster with munge."""
    cluster = Cluster("slurm", "demo", "1", MUNGE)
    nodeset = NodeSet("slurm", "worker", "2", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}}))
    yield render_worker(cluster, nodeset, 0, DEFAULTS)["spec"]
    for each in (
        *render_controller(cluster, DEFAULTS),
        *render_login(cluster, DEFAULTS),
        *render_accounting(cluster, DEFAULTS),
    ):
        if each["kind"] == "StatefulSet":
            yield each["spec"]["template"]["spec"]


def test_only_munged_writes_to_the_folder_of_its_socket():
    """The folder is open to every uid, so every other container of each role mounts it read-only."""
    found = [
        (each["name"], mounts(each)["munge"].get("readOnly", False))
        for pod in pods()
        for each in (*pod["initContainers"], *pod["containers"])
        if "munge" in mounts(each)
    ]
    assert {name for name, _ in found} == {"munged", "slurmd", "slurmctld", "slurmdbd", "sshd", "sackd"}
    assert [name for name, is_read_only in found if is_read_only == (name == "munged")] == []


@pytest.mark.parametrize("of", ["login", "worker"])
def test_the_jail_has_munges_socket_read_only(of):
    """Both plans bind the folder with the options that spank/tests/test_sockets.py shows to hold root and users."""
    cluster = Cluster("slurm", "demo", "1", MUNGE)
    nodeset = NodeSet("slurm", "worker", "2", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}}))
    plan = login_plan(cluster) if of == "login" else worker_plan(cluster, nodeset)
    (line,) = [each for each in plan if each.target == "/run/munge"]
    said = (Path(__file__).parents[3] / "spank/tests/test_sockets.py").read_text()
    assert f'OPTIONS = "{",".join(line.options)}"' in said


def test_what_a_job_mounts_of_the_pod_is_written_by_no_other_user():
    """A bind of a folder of the pod into the jail is read-only, but for what users or slurmd write there by design."""
    cluster = Cluster("slurm", "demo", "1", MUNGE)
    nodeset = NodeSet("slurm", "worker", "2", NodeSetSpec.model_validate({"clusterRef": {"name": "demo"}}))
    writable = {
        each.target
        for plan in (login_plan(cluster), worker_plan(cluster, nodeset))
        for each in plan
        if each.kind in ("bind", "rbind") and "ro" not in each.options
    }
    assert writable == {"/tmp", "/var/spool/slurmd", "/run/soperator/containers"}
