"""A host outside Kubernetes, with podman and the network alone, becomes a Slurm node and a login host by what `soperator join` prints."""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from local import debian, images
from local.demo import STATE
from local.plan import BRIDGE, HOST, NODE_NETWORK
from tests.cluster.lab import Lab

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not os.environ.get("SOPERATOR_OUTSIDE"), reason="make test-outside plays it"),
]

CABLE = "soperator-out"
ADDRESS = NODE_NETWORK[200]
FOLDER = STATE / "outside"
PODMAN = f"podman --root {FOLDER}/images --runroot {FOLDER}/run --runtime runc --cgroup-manager cgroupfs --events-backend file"
#: What the host has of its own: what is written there stays there.
OWN = """
set -e
hostname bare
for path in /etc /opt /var/lib; do
    mkdir -p {folder}$path/up {folder}$path/work
    mount -t overlay overlay -o lowerdir=$path,upperdir={folder}$path/up,workdir={folder}$path/work $path
done
mount -t tmpfs tmpfs /run
printf '127.0.0.1 localhost bare\\n' >/etc/hosts
printf 'nameserver {dns}\\n' >/etc/resolv.conf
ip link set lo up
touch {folder}/up
exec sleep infinity
"""


@dataclass(frozen=True)
class Bare:
    """The host: a machine of its own as far as names, mounts and the network go."""

    lab: Lab
    pid: int

    def sh(self, script: str, check: bool = True) -> str:
        """What a shell of root's printed there."""
        command = ["nsenter", "-t", str(self.pid), "-m", "-u", "-n", "sh", "-s"]
        limits = [f"--ulimit={name}={low}:{high}" for name, (low, high) in _limits().items()]
        env = os.environ | {"RUNTIME": PODMAN, "OPTIONS": " ".join(limits)}
        done = subprocess.run(command, input=script, env=env, capture_output=True, text=True, check=False, timeout=120)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def join(self, *words: str) -> str:
        """Run what `soperator join` prints."""
        printed = asked(self.lab, *words)
        assert printed.returncode == 0, printed.stderr
        return self.sh(printed.stdout)


def asked(lab: Lab, *words: str) -> "subprocess.CompletedProcess[str]":
    """What `soperator join` says."""
    command = [sys.executable, "-m", "soperator.cli", "join", lab.cluster, "-n", lab.namespace, *words]
    return subprocess.run(command, env=lab.target.env, capture_output=True, text=True, check=False)


def _limits() -> dict[str, tuple[int, int]]:
    """No container may have more than this machine, and podman by itself gives more."""
    files = min(16384, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    return {"nofile": (1024, files), "nproc": (4096, 4096)}


@pytest.fixture(scope="module")
def bare(lab: Lab, alice: str) -> Iterator[Bare]:
    """The host, plugged into the Nodes' network, which knows the way to pods; it asks the cluster's DNS."""
    assert alice
    if not lab.target.is_local:
        pytest.skip("the host is a part of this machine")
    if not shutil.which("podman"):
        debian.apt("install", "--no-install-recommends", "podman")
    dns = lab.kubectl(
        "get", "pod", "-n", "kube-system", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[0].status.podIP}"
    )
    subprocess.run(["rm", "-rf", FOLDER], check=True)
    FOLDER.mkdir(parents=True)
    script = OWN.format(folder=FOLDER, dns=dns)
    with subprocess.Popen(["unshare", "--mount", "--uts", "--net", "sh", "-c", script]) as machine:
        bare = Bare(lab, machine.pid)
        try:
            lab.until("the host is up", FOLDER.joinpath("up").exists, 20)
            _plug(machine.pid)
            (built,) = images.built(["slurm"])
            bare.sh(f"$RUNTIME load -q -i {built.tar}")
            lab.patch("slurmcluster", lab.cluster, {"externalNodes": {"cidrs": [f"{ADDRESS}/32"]}})
            yield bare
        finally:
            bare.sh("$RUNTIME rm -a -f", check=False)
            machine.kill()
            lab.ssh("root", "scontrol delete nodename=bare || true")
            lab.patch("slurmcluster", lab.cluster, {"outside": None})
    subprocess.run(["rm", "-rf", FOLDER], check=False)


def _plug(pid: int) -> None:
    outside = f"link add {CABLE} type veth peer name eth0 netns {pid}\nlink set {CABLE} master {BRIDGE} up\n"
    inside = f"addr add {ADDRESS}/{NODE_NETWORK.prefixlen} dev eth0\nlink set eth0 up\nroute add default via {HOST}\n"
    subprocess.run(["ip", "-batch", "-"], input=outside, text=True, check=True)
    subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", "-batch", "-"], input=inside, text=True, check=True)


@pytest.fixture(scope="module")
def node(bare: Bare) -> str:
    """It has joined as a node."""
    jail = _jail(bare.lab)
    assert bare.join("--nodeset", "worker", "--node", "bare", "--claim", f"{bare.lab.cluster}-jail={jail}")
    bare.lab.until("the host is a node", lambda: _state(bare.lab) == "idle", 60)
    return "bare"


def _jail(lab: Lab) -> Path:
    volume = lab.kubectl("get", "pvc", f"{lab.cluster}-jail", "-o", "jsonpath={.spec.volumeName}")
    return Path(lab.kubectl("get", "pv", volume, "-o", "jsonpath={.spec.hostPath.path}"))


def _state(lab: Lab) -> str:
    return lab.ssh("root", "sinfo -h -N -n bare -o %T | head -n 1").strip()


def test_jobs_run_on_the_host_alone_and_with_pods(lab: Lab, node: str, alice: str) -> None:
    """In the shared root, as the user, with the standard streams of srun, and over both kinds of nodes in one step."""
    said = lab.ssh(alice, f"srun -w {node} sh -c 'hostname; id -un; echo here >$HOME/bare; cat'", stdin=b"given")
    assert said.split() == [node, alice, "given"]
    assert lab.ssh(alice, "cat bare; rm bare") == "here\n"
    assert sorted(lab.ssh(alice, f"srun -N2 -w {node},worker-0 hostname").split()) == [node, "worker-0"]
    lab.ssh(alice, f"sbatch -W -w {node} -o bare.out --wrap 'srun hostname'")
    assert lab.ssh(alice, "cat bare.out; rm bare.out") == f"{node}\n"


def test_the_operator_leaves_the_node_alone(lab: Lab, node: str) -> None:
    """It is in the partition of the NodeSet that it is like, and no pod of that is missing for it."""
    assert "worker" in lab.ssh("root", f"scontrol show node {node} | grep -o 'ActiveFeatures=.*'")
    assert lab.look("nodeset", "worker")["status"]["readyReplicas"] == 2
    lab.wait_available()


def test_slurmctld_is_followed_to_another_address(lab: Lab, node: str, alice: str, bare: Bare) -> None:
    """Its pod is replaced: the host's names move with it, and a job runs."""
    before = bare.sh("cat /etc/hosts")
    lab.kubectl("delete", "pod", f"{lab.cluster}-controller-0")
    lab.until("the name has another address", lambda: bare.sh("cat /etc/hosts") != before, 60)
    assert bare.sh("cat /etc/hosts").count(f"{lab.cluster}-controller-0") == 1
    lab.wait_available()
    lab.until("the host is a node", lambda: _state(lab) == "idle", 90)
    assert lab.ssh(alice, f"srun -w {node} hostname") == f"{node}\n"


def test_a_name_of_the_operators_is_refused(lab: Lab, bare: Bare) -> None:
    """A record of that name would be taken for a pod's."""
    done = asked(lab, "--nodeset", "worker", "--node", "worker-7", "--claim", f"{lab.cluster}-jail=/mnt/jail")
    assert (done.returncode, done.stdout) == (1, "")
    assert "--node: worker-7 is reserved for the pods of NodeSet worker" in done.stderr


def test_a_host_becomes_a_login_host(lab: Lab, bare: Bare, node: str) -> None:
    """Slurm's commands are there, and a job that was begun there answers there."""
    assert node
    bare.sh(f"$RUNTIME rm -f soperator-{lab.cluster} soperator-{lab.cluster}-names")
    bare.join("--login")
    lab.until("sackd has the configuration", lambda: bare.sh("ls /run/slurm/conf/slurm.conf", check=False), 30)
    path = "export PATH=/opt/soperator/bin:$PATH\n"
    assert "worker-0" in bare.sh(f"{path}sinfo -h -N -o %N")
    assert bare.sh(f"{path}cd /; srun -w worker-0 hostname") == "worker-0\n"
