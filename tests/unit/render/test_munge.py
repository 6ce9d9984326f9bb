"""Munge beside Slurm's daemons in one pod."""

from soperator.api.cluster import SlurmClusterSpec
from soperator.render.controller import render_controller
from soperator.render.model import Cluster
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
