"""Where the attempts are made: login sessions and jobs, as root of the jail and as an ordinary user, with a user namespace and without."""

import base64
import hashlib
import json
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local import demo
from local.demo import ROOT
from local.paths import DEFAULT_STATE
from tests.cluster.conftest import make_user
from tests.cluster.escape.probe import ATTEMPTS
from tests.cluster.lab import Lab, local

PROBE = (Path(__file__).parent / "probe.py").read_bytes()
MARK = "mark-of-another-job"
#: Where a user may stand. `ssh` is a session on the worker beside a job of the user's that has a container; `container` is in one; `under` is in one
#: with --container-remap-root, with its root taken off, where the user is root of the user namespace and stands in what the container is built on.
PLACES = ("login", "job", "ssh", "container", "under")
#: An image as an archive in the jail, of a few programs. Python comes from the jail, as part of its /usr.
IMAGE, PROGRAMS = "/srv/escape/image.tar", "/usr/bin/sh /usr/bin/cat /usr/bin/ls /usr/bin/sleep"
CONTAINER = f"--container-image={IMAGE} --container-mounts=/usr"
#: Two jobs of different users fit on one node.
SIZE = {"requests": {"cpu": "50m", "memory": "4Gi"}, "limits": {"cpu": "4"}}


@dataclass(frozen=True)
class Ground:
    """A cluster with a node on which a job of bob runs all the while, and what a probe has to know of it."""

    lab: Lab
    node: str
    given: dict[str, Any]

    @property
    def pod(self) -> str:
        """The worker's pod."""
        return f"{self.lab.cluster}-{self.node}"

    def probe(self, place: str, user: str, **more: Any) -> dict[str, Any]:
        """What a user finds at one of PLACES."""
        words = f"python3 - {shlex.quote(json.dumps(self.given | more | {'place': place}))}"
        if place == "ssh":
            return self._on_worker(user, words)
        options = {"job": "", "container": CONTAINER, "under": f"{CONTAINER} --container-remap-root"}
        if place in options:
            words = f"srun -w {self.node} {options[place]} {words}"
        found: dict[str, Any] = json.loads(self.lab.ssh(user, words, PROBE))
        return found

    def _on_worker(self, user: str, words: str) -> dict[str, Any]:
        said = f"in-a-container-{self.node}.out"
        script = f"srun {CONTAINER} sh -c 'echo there; sleep 300'"
        begin = f"rm -f {said}; sbatch --parsable -w {self.node} -o {said} --wrap {shlex.quote(script)}"
        number = self.lab.ssh(user, begin).strip()
        try:
            told = f"tail -n 1 {said} 2>/dev/null || true"
            self.lab.until("the job's container runs", lambda: self.lab.ssh(user, told) == "there\n", 60)
            login = demo.ssh(self.lab.address, user)
            jump = shlex.join([*login[:-1], "-W", "%h:%p", login[-1]])
            command = [*login[:-3], "-o", f"ProxyCommand={jump}", f"{user}@{self.node}", words]
            done = subprocess.run(command, input=PROBE, capture_output=True, check=False, timeout=120)
        finally:
            self.lab.ssh(user, f"scancel {number}; rm -f {said}")
        assert done.returncode == 0, done.stderr.decode()
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def exec(self, *command: str, stdin: str = "") -> str:
        """What a command prints in the container of slurmd, outside the jail."""
        return self.lab.kubectl("exec", self.pod, "-i", "-c", "slurmd", "--", *command, stdin=stdin)


@pytest.fixture(scope="package")
def grounds(lab: Lab) -> Iterator[dict[str, Ground]]:
    """Both modes by their names: `userns` is a NodeSet of the demo's own, `host` a second cluster on the same jail, without user namespaces."""
    make_user(lab, "alice")
    make_user(lab, "bob")
    make_image(lab)
    host = Lab(lab.target, lab.namespace, "plain", lab.timings)
    try:
        begin_host_cluster(host)
        assert not lab.apply(
            "NodeSet", "cell", {"clusterRef": {"name": lab.cluster}, "replicas": 1, "resources": SIZE}
        ).returncode
        host.timings.note(
            "a second cluster without user namespaces, on the same jail: available", host.wait_available()
        )
        lab.wait_available()
        yield {"userns": ground(lab, "cell-0"), "host": ground(host, "plain-0")}
    finally:
        for cluster in (lab, host):
            with suppress(AssertionError, demo.DemoError):
                cluster.ssh("root", "scancel -u bob; rm -f ~bob/bystander-*")
        lab.kubectl("delete", "nodeset", "cell", "plain", "--ignore-not-found", "--timeout=60s")
        lab.kubectl("delete", "slurmcluster", "plain", "--ignore-not-found", "--timeout=60s")
        lab.kubectl("delete", "persistentvolumeclaim", "plain-state", "--ignore-not-found", "--wait=false")
        lab.kubectl("delete", "persistentvolume", f"{lab.namespace}-plain-state", "--ignore-not-found", "--wait=false")


def make_image(lab: Lab) -> None:
    """An image in an archive that everybody may read."""
    script = (ROOT / "spank/tests/oci.py").read_bytes()
    make = f"mkdir -p /srv/escape && cd /srv/escape && rm -rf * && python3 - make layout {PROGRAMS} && tar -C layout -cf image.tar ."
    lab.ssh("root", make, stdin=script)


def begin_host_cluster(host: Lab) -> None:
    """Apply a small cluster in the Node's own user namespace, which shares the jail of the demo."""
    host.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": state_claim(host)}))
    spec = {
        "security": {"userNamespace": False},
        "jobs": {"bindCpus": True},
        "jail": {"claim": {"name": "demo-jail"}, "populate": "Never"},
        "controller": {"state": {"name": "plain-state"}},
        "login": {"rootAuthorizedKeys": [demo.public_key()]},
    }
    for kind, name, each in (
        ("SlurmCluster", "plain", spec),
        (
            "NodeSet",
            "plain",
            {"clusterRef": {"name": "plain"}, "replicas": 1, "resources": SIZE | {"limits": {"cpu": "2"}}},
        ),
    ):
        done = host.apply(kind, name, each)
        assert done.returncode == 0, done.stderr


def state_claim(host: Lab) -> list[dict[str, Any]]:
    """The claim of the second controller's state; on the local cluster with its volume."""
    claimed = f"{host.cluster}-state"
    name = f"{host.namespace}-{claimed}"
    claim: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claimed},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    if not host.target.is_local:
        return [claim]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": host.namespace, "name": claimed},
            "hostPath": {"path": str(DEFAULT_STATE / "storage" / claimed), "type": "DirectoryOrCreate"},
            "storageClassName": "",
        },
    }
    claim["spec"] |= {"storageClassName": "", "volumeName": name}
    return [volume, claim]


def ground(lab: Lab, node: str) -> Ground:
    """A node with bob's job on it."""
    made = Ground(lab, node, facts(lab, node))
    script = f"touch /tmp/{MARK} /dev/shm/{MARK}; echo ready > ~/bystander-{node}; exec sh -c 'sleep 600; true' {MARK}"
    lab.ssh("bob", f"rm -f bystander-*; MARK={MARK} sbatch -w {node} -o bystander-%j.out --wrap {shlex.quote(script)}")
    lab.until("bob's job runs", lambda: "ready" in lab.ssh("bob", f"cat bystander-{node} 2>/dev/null || true"), 60)
    return made


def facts(lab: Lab, node: str) -> dict[str, Any]:
    """What the attempts need to know: keys by their hashes, addresses, the mark of bob's job."""
    keys = [
        base64.b64decode(each)
        for name in (f"{lab.cluster}-auth-key", f"{lab.cluster}-jwt-key")
        for each in lab.look("secret", name)["data"].values()
    ]
    server = json.loads(lab.kubectl("get", "service", "kubernetes", "-n", "default", "-o", "json"))["spec"]
    return {
        "hashes": [hashlib.sha256(each).hexdigest() for each in keys],
        "sizes": sorted({len(each) for each in keys}),
        "backwards": MARK[::-1],  # lest the arguments of a probe are taken for the other job
        "api": f"https://{server['clusterIP']}",
        "rest": f"http://{lab.look('service', f'{lab.cluster}-rest')['spec']['clusterIP']}:6820",
        "node": lab.look("pod", f"{lab.cluster}-{node}")["status"]["hostIP"],
    }


@pytest.fixture(scope="package")
def ends(grounds: dict[str, Ground]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """How all attempts ended, by mode, place and user."""
    whose = [(mode, user) for mode in grounds for user in ("root", "alice")]

    def everywhere(mode: str, user: str) -> dict[tuple[str, str, str], dict[str, Any]]:
        """One place after the other, for SSH to a worker leads into the newest of the user's jobs there."""
        return {(mode, place, user): grounds[mode].probe(place, user) for place in PLACES}

    with ThreadPoolExecutor(len(whose)) as pool:
        return {key: end for found in pool.map(lambda each: everywhere(*each), whose) for key, end in found.items()}


@pytest.fixture(scope="package")
def controls(grounds: dict[str, Ground]) -> dict[str, dict[str, dict[str, str]]]:
    """How the attempts ended where the protection is missing, by the control's name."""
    ground = grounds["userns"]
    token = ground.lab.kubectl("create", "token", "soperator", "-n", "soperator-system", "--duration=10m").strip()
    jwt = ground.lab.ssh("root", "scontrol token lifespan=600").strip().removeprefix("SLURM_JWT=")
    found = {
        "caps": in_pod(ground, *KEEPING, keeps_capabilities=True),
        "pod": in_pod(ground, *OUTSIDE),
        "token": ground.probe("login", "root", token=token, only=["read_secrets_from_the_api_server"]),
        "jwt": ground.probe("login", "root", jwt=jwt, only=["ask_rest_without_a_token"]),
        "node": on_node(ground) if ground.lab.target.is_local else {"ends": {}},
    }
    return {name: each["ends"] for name, each in found.items()}


KEEPING = ("/opt/soperator/libexec/jail", "run", "--plan", "/etc/soperator/jail/plan", "--keep-caps", "--", "python3")
_JAIL = "/mnt/jail/root"
_PYTHON = (
    f"export PYTHONHOME={_JAIL}/usr LD_LIBRARY_PATH=$(echo {_JAIL}/usr/lib/*-linux-gnu); "
    f'exec {_JAIL}/lib64/ld-linux-x86-64.so.2 {_JAIL}/usr/bin/python3 "$@"'
)
OUTSIDE = ("unshare", "-m", "-u", "sh", "-c", _PYTHON, "sh")


def in_pod(ground: Ground, *words: str, **more: Any) -> dict[str, Any]:
    """The attempts in the container of slurmd."""
    control = "caps" if more else "pod"
    only = [name for name, each in ATTEMPTS.items() if each.control == control]
    given = json.dumps(ground.given | more | {"only": only, "is_control": True})
    found: dict[str, Any] = json.loads(ground.exec(*words, "-", given, stdin=PROBE.decode()))
    return found


def on_node(ground: Ground) -> dict[str, Any]:
    """The attempts as root of the Node, in a mount namespace of its own."""
    only = [name for name, each in ATTEMPTS.items() if each.control == "node"]
    given = json.dumps(ground.given | {"is_node": True, "is_control": True, "only": only})
    machine = ground.lab.look("pod", ground.pod)["spec"]["nodeName"]
    path = str(Path(__file__).parent / "probe.py")
    words = ("unshare", "-m", "-u", "/usr/bin/python3", path, given)
    found: dict[str, Any] = json.loads(local("node", "exec", machine, "--", *words))
    return found
