"""What the pods of a cluster are, seen from outside: which of them hold keys, credentials, rights, and whose files they write.

What a user inside can reach is tried in `escape`.
"""

import json

import pytest

from local.paths import DEFAULT_STATE
from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster


def test_what_root_of_the_jail_writes_is_owned_by_root_through_the_idmapped_mount(lab: Lab) -> None:
    """On the Node's side of the volume the file has uid 0, so that every pod's root of the jail is the same owner."""
    if not lab.target.is_local:
        pytest.skip("the Nodes of a foreign cluster are not at hand")
    for command in ("", "srun -w worker-0 ", "srun -w worker-1 "):
        outside = lab.ssh("root", f"{command}sh -c 'touch /root/owned; cat /proc/self/uid_map'").split()[1]
        owned = (DEFAULT_STATE / "storage" / "demo-jail" / "root" / "root" / "owned").stat()
        assert outside != "0"
        assert (owned.st_uid, owned.st_gid) == (0, 0)
        lab.ssh("root", "rm /root/owned")


def test_an_ordinary_user_cannot_replace_what_slurms_commands_trust(lab: Lab, alice: str) -> None:
    """The folder with Slurm's configuration and socket on login is not alice's to change."""
    said = lab.ssh(alice, "mv /run/slurm/conf /run/slurm/mine 2>&1; touch /run/slurm/new 2>&1; ls /run/slurm")
    assert said.splitlines()[-2:] == ["conf", "sack.socket"]
    assert "sinfo" not in lab.ssh(alice, "sinfo -h")


def test_no_pod_has_kubernetes_credentials_or_privileges(lab: Lab) -> None:
    """No pod mounts a service account token, shares a namespace of its Node, or is privileged; workers and login are in a user namespace."""
    for name, pod in lab.pods().items():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        volumes = [json.dumps(each) for each in spec.get("volumes", ())]
        assert not [each for each in volumes if "serviceAccountToken" in each or '"hostPath"' in each], name
        assert not [spec[key] for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)], name
        contexts = [each.get("securityContext", {}) for each in (*spec.get("initContainers", ()), *spec["containers"])]
        assert not [each for each in contexts if each.get("privileged")], name
        if pod["metadata"]["labels"]["slurm.soperator.io/role"] in ("worker", "login", "populate"):
            assert spec["hostUsers"] is False, name


def test_the_container_with_the_users_mounts_no_key(lab: Lab) -> None:
    """In a login pod the keys are mounted in sackd's container alone."""
    for pod in lab.pods("login").values():
        for each in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            mounts = {mount["name"] for mount in each["volumeMounts"]}
            assert ("keys" in mounts) == (each["name"] == "sackd")
