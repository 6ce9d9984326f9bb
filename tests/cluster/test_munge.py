"""A second cluster, which authenticates by munge, from installation to removal."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.paths import DEFAULT_STATE
from tests.cluster import second
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, condition
from tests.kstatus import kstatus

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

NAMESPACE = "slurm-munge"
CLUSTER = "munged"
FOLDER = DEFAULT_STATE / "storage" / NAMESPACE
#: What Kubernetes itself puts into a namespace or tells of it.
NOT_OURS = ("configmap/kube-root-ca.crt", "serviceaccount/default", "event/", "event.events.k8s.io/")
RING = """
from mpi4py import MPI
world = MPI.COMM_WORLD
print(world.rank, MPI.Get_processor_name(), world.allreduce(world.rank + 1), flush=True)
"""


@pytest.fixture(scope="module")
def munged(lab: Lab) -> Iterator[Lab]:
    """The namespace of the second cluster, and nothing in it; whatever a test leaves there is removed at the end."""
    if not lab.target.is_local:
        pytest.skip("a foreign cluster has storage of its own")
    made = Lab(lab.target, NAMESPACE, CLUSTER, lab.timings)
    second.clean(made)
    yield made
    second.clean(made)


def install(lab: Lab, keep_keys: bool, wait: str = "", **named: Any) -> None:
    """Install the cluster by helm; without claims the operator makes them."""
    second.install(lab, {"auth": {"type": "munge", "keepKeys": keep_keys}, **named}, wait=wait)


def helm_tried(lab: Lab, *words: str) -> "subprocess.CompletedProcess[str]":
    """A helm command, whatever its end."""
    command = ["helm", "-n", NAMESPACE, *words]
    return subprocess.run(command, capture_output=True, text=True, env=lab.target.env, check=False)


def uninstall(lab: Lab) -> float:
    """What an administrator does to be rid of the cluster; return when it began."""
    began = time.monotonic()
    done = helm_tried(lab, "uninstall", CLUSTER)
    assert done.returncode == 0, done.stderr
    return began


def left(lab: Lab) -> set[str]:
    """Every object of the namespace that is neither Kubernetes' own nor helm's record of the storage chart."""
    kinds = lab.kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name").split()
    kinds = [each for each in kinds if not each.startswith("events")]
    names = lab.kubectl("get", ",".join(kinds), "-o", "name").split()
    return {name for name in names if not name.startswith((*NOT_OURS, "secret/sh.helm.release.v1.storage."))}


def is_left(lab: Lab, wanted: set[str]) -> Callable[[], bool]:
    """A question whether only what is wanted is left; its failure is told by `left`."""
    return lambda: left(lab) == wanted


CLAIMS = {f"persistentvolumeclaim/{CLUSTER}-jail", f"persistentvolumeclaim/{CLUSTER}-state"}


def test_a_user_of_a_munge_cluster_runs_an_mpi_job(munged: Lab) -> None:
    """The user test passes as with auth/slurm: useradd, sbatch and MPI on two nodes, and the output is read back over SSH."""
    began = time.monotonic()
    second.make_storage(munged)
    install(munged, keep_keys=False, wait="5m", **second.claims(munged))
    munged.timings.note("munge: helm install --wait → it returns, with an empty jail", time.monotonic() - began)
    assert munged.ssh("root", "srun -N2 id -u") == "0\n0\n", "helm waits until the first job runs"
    munged.wait_available(10)
    objects = json.loads(munged.kubectl("get", "slurmcluster,nodeset", "-o", "json"))["items"]
    assert [kstatus(each) for each in objects] == ["Current", "Current"]
    munged.kubectl("wait", "slurmcluster,nodeset", "--all", "--for=condition=Ready", "--timeout=5s")
    make_user(munged, "bob")
    munged.ssh("bob", "cat > ring.py", stdin=RING.encode())
    munged.ssh("bob", "sbatch --quiet --wait -N2 -o ring.out --wrap 'srun --mpi=pmix python3 ring.py'")
    ranks, hosts, _ = zip(*(line.split() for line in munged.ssh("bob", "cat ring.out").splitlines()), strict=True)
    assert (sorted(ranks), sorted(hosts)) == (["0", "1"], ["worker-0", "worker-1"])
    assert "auth/munge" in munged.ssh("bob", "scontrol show config | grep -w AuthType")
    for pod in munged.pods("login").values():
        mounts = {each["name"]: {one["name"] for one in each["volumeMounts"]} for each in pod["spec"]["containers"]}
        assert "keys" not in mounts["sshd"]


def test_munges_key_is_replaced_while_a_job_runs(munged: Lab) -> None:
    """Every munged has the new key, no other container was started anew, the job goes on, and new ones run on every node."""
    before, former, held = starts(munged), keys(munged), munged.hold("worker-0", "bob")
    assert len(former) == 1
    began = time.monotonic()
    munged.patch("slurmcluster", CLUSTER, {"auth": {"rotateRequest": "test"}})
    munged.until("the rotation is over", lambda: munged.status().get("keys") == "test", 120)
    munged.timings.note("munge: auth.rotateRequest → every munged has the new key", time.monotonic() - began)
    assert len(keys(munged) | former) == 2
    munged.until("a job runs", lambda: munged.ssh("bob", "srun -Q -w worker-1 id -un || true") == "bob\n")
    after = starts(munged)
    assert {name for name in after if after[name] != before[name]} == {name for name in before if name[1] == "munged"}
    assert (held.state(), held.show()["Restarts"]) == ("RUNNING", "0")
    held.let_go()
    assert munged.ssh("bob", "srun -Q -N2 id -un") == "bob\nbob\n"
    munged.wait_available()


def keys(lab: Lab) -> set[str]:
    """The hashes of the keys with which munged runs in the pods of the cluster."""
    command = ["-c", "munged", "--", "sha256sum", "/run/soperator/keys/munge.key"]
    roles = ("controller", "login", "worker")
    return {lab.kubectl("exec", name, *command).split()[0] for role in roles for name in lab.pods(role)}


def starts(lab: Lab) -> dict[tuple[str, str], int]:
    """How often each container was started again, by its pod and its name."""
    found = {}
    for role in ("controller", "login", "worker"):
        for name, pod in lab.pods(role).items():
            for each in (*pod["status"].get("initContainerStatuses", ()), *pod["status"]["containerStatuses"]):
                found[name, each["name"]] = each["restartCount"]
    return found


def test_uninstalling_leaves_the_users_claims_alone(munged: Lab) -> None:
    """After `helm uninstall` nothing is in the namespace but the claims of the storage chart, and the files are there."""
    began = uninstall(munged)
    munged.until(f"only {sorted(CLAIMS)} is left", is_left(munged, CLAIMS), 90)
    munged.timings.note("helm uninstall → only the claims are left", time.monotonic() - began)
    assert (FOLDER / f"{CLUSTER}-jail" / "root" / "home" / "bob" / "ring.out").exists()
    done = helm_tried(munged, "uninstall", "storage", "--wait")
    assert done.returncode == 0, done.stderr
    munged.until("the namespace is empty", is_left(munged, set()), 60)


def test_the_operators_own_claims_bind_and_the_jail_and_kept_keys_stay(munged: Lab) -> None:
    """Without named claims the operator makes them, here on the volume that still holds bob's jail; uninstalling leaves the jail and the keys."""
    for name, mode in (("jail", "ReadWriteMany"), ("state", "ReadWriteOnce")):
        munged.kubectl("apply", "-f", "-", stdin=json.dumps(volume(f"{CLUSTER}-{name}", mode)))
    install(munged, keep_keys=True)
    munged.wait_available(120)
    assert condition(munged.status(), "JailReady")["status"] == "True"
    munged.__dict__.pop("address", None)
    assert munged.ssh("bob", "srun -N2 id -un") == "bob\nbob\n"
    began = uninstall(munged)
    names = [f"secret/{CLUSTER}-{name}" for name in ("auth-key", "jwt-key", "ssh-host-keys")]
    keys = {*names, *(f"{each}-kept" for each in names)}
    wanted = {f"persistentvolumeclaim/{CLUSTER}-jail", *keys}
    munged.until(f"only {sorted(wanted)} is left", is_left(munged, wanted), 90)
    munged.timings.note("helm uninstall → only the jail and the kept keys are left", time.monotonic() - began)


def volume(claim: str, mode: str) -> dict[str, Any]:
    """A volume that waits for a claim, as a provisioner would make it."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{NAMESPACE}-{claim}"},
        "spec": {
            "accessModes": [mode],
            "capacity": {"storage": "100Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": claim},
            "hostPath": {"path": str(FOLDER / claim), "type": "DirectoryOrCreate"},
        },
    }
