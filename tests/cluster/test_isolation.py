"""Root of the jail, on login and in a job, is confined to the jail: no key, no other container, no Node is within reach."""

import base64
import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from local.paths import DEFAULT_STATE
from tests.cluster.lab import Lab

pytestmark = pytest.mark.cluster

PLACES = ("demo-login-0", "worker-0", "worker-1")
#: Capabilities that reach beyond files and processes of one's own: DAC_READ_SEARCH, NET_ADMIN, NET_RAW, SYS_MODULE, SYS_RAWIO, SYS_PTRACE,
#: SYS_ADMIN, SYS_BOOT, SYS_TIME, MKNOD, BPF.
FORBIDDEN = sum(1 << number for number in (2, 12, 13, 16, 17, 19, 21, 22, 25, 27, 39))
DAEMONS = ("slurmd", "slurmctld", "sackd", "munged", "slurmrestd")


@pytest.fixture(scope="module")
def keys(lab: Lab) -> list[str]:
    """Hashes of all keys of the cluster but the SSH host keys, which sshd needs where it runs."""
    found = []
    for name in ("demo-auth-key", "demo-jwt-key"):
        data = json.loads(lab.kubectl("get", "secret", name, "-o", "json"))["data"]
        found += [hashlib.sha256(base64.b64decode(each)).hexdigest() for each in data.values()]
    return found


@pytest.fixture(scope="module")
def probes(lab: Lab, keys: list[str]) -> dict[str, dict[str, Any]]:
    """What root finds, by host name."""
    program = (Path(__file__).parent / "probe.py").read_bytes()
    words = f"python3 - {shlex.quote(json.dumps(keys))}"
    found = [lab.ssh("root", words, program)]
    found += [lab.ssh("root", f"srun -w {node} {words}", program) for node in PLACES[1:]]
    return {each["host"]: each for each in map(json.loads, found)}


@pytest.mark.parametrize("place", PLACES)
def test_no_key_is_in_a_file_that_root_of_the_jail_can_read(probes: dict[str, dict[str, Any]], place: str) -> None:
    """No file bears the name or the content of a key, and nothing of the pod's own folders is there."""
    assert probes[place]["files"] == []


@pytest.mark.parametrize("place", PLACES)
def test_no_mount_shows_the_pod(probes: dict[str, dict[str, Any]], place: str) -> None:
    """Neither the keys nor the claim as the pod mounts it are mounted in the jail."""
    points = [line.split()[4] for line in probes[place]["mounts"].splitlines()]
    assert "/" in points
    assert [each for each in points if "/mnt/jail" in each or "/keys" in each or "secrets" in each] == ["/proc/keys"]


@pytest.mark.parametrize("place", PLACES)
def test_no_process_of_another_container_is_seen(probes: dict[str, dict[str, Any]], place: str) -> None:
    """Every visible process has the jail as its root or keeps it closed, and no daemon is among them."""
    found = probes[place]["processes"]
    assert {each["root"] for each in found} <= {"jail", "closed"}
    assert [each for each in found if each["line"].split(" ")[0].rpartition("/")[2] in DAEMONS] == []
    names = {name for each in found for name in each["environment"]}
    assert [each for each in names if each.startswith(("KUBERNETES_", "SOPERATOR_", "SLURM_SACK", "SLURM_JWT"))] == []


@pytest.mark.parametrize("place", PLACES)
def test_what_would_lead_out_is_refused(probes: dict[str, dict[str, Any]], place: str) -> None:
    """Mounts, devices, the bundle, sysctl and Slurm's own configuration cannot be changed, and a climb out of a chroot ends in the jail."""
    assert [name for name, end in probes[place]["attempts"].items() if end == "done"] == []
    assert probes[place]["climbing"] is True
    assert probes[place]["devices"] == []


@pytest.mark.parametrize("place", PLACES)
def test_root_of_the_jail_is_nobody_on_the_node(probes: dict[str, dict[str, Any]], place: str) -> None:
    """Its uid 0 is a high uid outside, and its capabilities are few."""
    inside, outside, _ = map(int, probes[place]["uid_map"])
    assert inside == 0
    assert outside >= 65536
    assert probes[place]["bounding"] & FORBIDDEN == 0
    assert probes[place]["effective"] & FORBIDDEN == 0


def test_what_root_of_the_jail_writes_is_owned_by_root_through_the_idmapped_mount(
    lab: Lab, probes: dict[str, dict[str, Any]]
) -> None:
    """On the Node's side of the volume the file has uid 0, so that every pod's root of the jail is the same owner."""
    if not lab.target.is_local:
        pytest.skip("the Nodes of a foreign cluster are not at hand")
    assert {each["uid_map"][1] for each in probes.values()}.isdisjoint({"0"})
    owned = (DEFAULT_STATE / "storage" / "demo-jail" / "root" / "root" / "owned").stat()
    assert (owned.st_uid, owned.st_gid) == (0, 0)


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
