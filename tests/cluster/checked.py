"""A cluster whose nodes run their checks, with GPUs and a driver that are made up, and what a test does to one of its nodes."""

import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local import demo
from local.demo import STATE
from tests.cluster.escape.conftest import state_claim
from tests.cluster.lab import OPERATOR, Lab, condition
from tests.faults.daemons import FAKETIME
from tests.unit.agents.checks.smi import gpu, log

INTERVAL = 10
NODES = 7
FOLDER = STATE / "checked"
RESOURCE = "example.com/board"
#: The devices are /dev/null's and its kin: the container runtime lets every container use those.
DEVICES = {"nvidia0": 3, "nvidia1": 5, "nvidiactl": 7}
#: An nvidia-smi that plays what a test has written on this node, and two healthy GPUs where it has written nothing.
SMI = """#!/bin/sh
[ "$1" = nvlink ] && exit 0
[ -e /run/smi ] && { cat /run/smi; exit 0; }
cat <<'END'
%s
END
"""
#: The runner, with another time where the Node's file says so.
RUNNER = f"""#!/bin/sh
export LD_PRELOAD=/mnt/skew/{FAKETIME.name} FAKETIME_TIMESTAMP_FILE=/mnt/skew/offset FAKETIME_NO_CACHE=1 DONT_FAKE_MONOTONIC=1
PYTHONPATH=/usr/lib/soperator/python exec /usr/bin/python3 -S -B -m soperator.agents.checks "${{@:-interval}}"
"""
SIZE = {"requests": {"cpu": "50m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
#: A /tmp that a job can fill, and the machine does not notice.
SMALL_TMP = {"spec": {"volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "32Mi"}}]}}
#: The shipped check of clocks asks every five minutes; this one in each interval.
CLOCK = {
    "name": "clock-now",
    "probe": "clock",
    "failureThreshold": 1,
    "nodeSets": ["skewed"],
    "failWhen": [{"when": {"offset": {"above": 5}}, "message": "{of} is {offset:.0f} s {side} that of slurmctld"}],
}
HEALTH = {
    "mode": "Drain",
    "interval": f"{INTERVAL}s",
    "maxUnhealthy": NODES,
    "maxUnhealthyOfCluster": NODES,
    "customChecks": [CLOCK],
    "disabledChecks": ["oom-kills"],
}
HEALTH |= {"onFailure": {"gpu-xid": "Replace"}, "replace": {"after": "5s", "condition": "example.com/Bad"}}


@dataclass(frozen=True)
class Checked:
    """The cluster, its nodes, and what stands about them in Slurm and in Kubernetes."""

    lab: Lab

    def healthy(self, nodeset: str = "small") -> dict[str, str]:
        """The condition of a NodeSet in which checks are told."""
        return condition(self.lab.look("nodeset", nodeset)["status"], "Healthy")

    def state(self, node: str) -> str:
        """Slurm's state and reason of a node."""
        return self.lab.ssh("root", f"sinfo -h -N -n {node} -o '%T %E' | head -n 1").strip()

    def states(self) -> dict[str, str]:
        """The same of all nodes."""
        lines = self.lab.ssh("root", "sinfo -h -N -o '%N %T %E'").splitlines()
        return dict(line.split(" ", 1) for line in lines)

    def report(self, node: str) -> dict[str, dict[str, Any]]:
        """What a node reports of its checks; empty before it ever did."""
        shown = self.lab.ssh("root", f"scontrol show node {node} | sed -n 's/^ *Extra=//p'")
        said: dict[str, dict[str, Any]] = json.loads(shown) if shown.strip() else {}
        return said

    def inside(self, node: str, script: str, stdin: str = "") -> str:
        """What a shell in slurmd's container of a node printed."""
        return self.lab.kubectl(
            "exec", *(["-i"] if stdin else []), f"checked-{node}", "-c", "slurmd", "--", "sh", "-c", script, stdin=stdin
        )

    def well(self, *nodes: str) -> None:
        """Wait until nodes take jobs, and report that no check fails."""
        for node in nodes:
            self.lab.until(f"{node} is back", lambda node=node: self.is_well(node), 240)

    def is_well(self, node: str) -> bool:
        """Whether a node takes jobs and reports that no check fails; a suspicion of a busy machine's processes may come and go."""
        checks = self.report(node).get("checks")
        quiet = checks is not None and all(each["state"] == "suspect" for each in checks.values())
        return quiet and self.state(node).split()[0] in ("idle", "mixed", "allocated")


@contextmanager
def cluster(lab: Lab, health: Mapping[str, Any] = HEALTH) -> Iterator[Checked]:
    """The cluster `checked` on the demo's jail: NodeSets `small`, `skewed` (its runner's clock can be set) and `heard` (with a kernel's log)."""
    _files(lab)
    made = Lab(lab.target, lab.namespace, "checked", lab.timings)
    try:
        with operator_may_replace(lab):
            _begin(made, health)
            made.wait_available(300)
            yield Checked(made)
    finally:
        made.ssh("root", "scancel --user=alice")
        lab.kubectl("delete", "nodeset", "small", "skewed", "heard", "--ignore-not-found", "--timeout=90s")
        lab.kubectl("delete", "slurmcluster", "checked", "--ignore-not-found", "--timeout=60s")
        lab.kubectl("delete", "persistentvolumeclaim", "checked-state", "--ignore-not-found", "--wait=false")
        lab.kubectl(
            "delete", "persistentvolume", f"{lab.namespace}-checked-state", "--ignore-not-found", "--wait=false"
        )


def skew(seconds: int) -> None:
    """Set the clock of the runner of NodeSet `skewed` by so many seconds."""
    (FOLDER / "skew/offset").write_text(f"{seconds:+d}\n")


def kernel_says(text: str) -> None:
    """Let the kernel's log of NodeSet `heard` hold one message, or none, as /dev/kmsg would give it."""
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    (FOLDER / "kmsg").write_text(f"3,1,{int(uptime * 1e6)},-;{text}\n" if text else "")


def two(*gpus: str) -> str:
    """nvidia-smi's answer over these GPUs, or over two healthy ones."""
    return log(*(gpus or (gpu(0), gpu(1))))


def _files(lab: Lab) -> None:
    """The made-up devices, driver, clock and kernel log on the Nodes, which are this machine."""
    for name in ("driver/lib", "driver/bin", "skew"):
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    for name, minor in DEVICES.items():
        (FOLDER / name).unlink(missing_ok=True)
        os.mknod(FOLDER / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        (FOLDER / name).chmod(0o666)
    (FOLDER / "driver/lib/libcuda.so.1").write_bytes(b"")
    (FOLDER / "driver/bin/nvidia-smi").write_text(SMI % two())
    (FOLDER / "runner").write_text(RUNNER)
    for program in ("driver/bin/nvidia-smi", "runner"):
        (FOLDER / program).chmod(0o755)
    shutil.copy(FAKETIME, FOLDER / "skew")
    skew(0)
    kernel_says("")
    capacity = [{"op": "add", "path": f"/status/capacity/{RESOURCE.replace('/', '~1')}", "value": str(4 * NODES)}]
    for node in json.loads(lab.kubectl("get", "nodes", "-o", "json"))["items"]:
        name = node["metadata"]["name"]
        lab.kubectl("patch", "node", name, "--subresource=status", "--type=json", "-p", json.dumps(capacity))


@contextmanager
def operator_may_replace(lab: Lab) -> Iterator[None]:
    """What the chart does with replaceMachines, meanwhile: the operator may write on Nodes."""
    rule = {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["patch"]}
    account = {"kind": "ServiceAccount", "name": "soperator", "namespace": OPERATOR}
    name = {"name": "soperator-machines"}
    api = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": name, "rules": [rule]}
    of = {"apiGroup": api, "kind": "ClusterRole", **name}
    bound = {"apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding", "metadata": name, "roleRef": of}
    made = {"apiVersion": "v1", "kind": "List", "items": [role, {**bound, "subjects": [account]}]}
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    try:
        yield
    finally:
        lab.kubectl("delete", "clusterrolebinding,clusterrole", "soperator-machines")


def _begin(made: Lab, health: Mapping[str, Any]) -> None:
    """Apply the cluster and its NodeSets."""
    claim = {"apiVersion": "v1", "kind": "List", "items": state_claim(made)}
    made.kubectl("apply", "-f", "-", stdin=json.dumps(claim))
    spec = {
        "jail": {"claim": {"name": "demo-jail"}, "populate": "Never"},
        "controller": {"state": {"name": "checked-state"}},
        "login": {"rootAuthorizedKeys": [demo.public_key()]},
        "health": health,
    }
    sets = {
        "small": _nodeset(NODES, {name: f"/dev/{name}" for name in DEVICES}, gpus=2) | {"podTemplate": SMALL_TMP},
        "skewed": _nodeset(1, {"skew": "/mnt/skew", "runner": "/usr/lib/soperator/checks"}, gpus=0),
        "heard": _nodeset(1, {name: f"/dev/{name}" for name in (*DEVICES, "kmsg")}, gpus=2),
    }
    for kind, name, each in (
        ("SlurmCluster", "checked", spec),
        *(("NodeSet", name, said) for name, said in sets.items()),
    ):
        done = made.apply(kind, name, each)
        assert done.returncode == 0, done.stderr


def _nodeset(count: int, files: dict[str, str], gpus: int) -> dict[str, Any]:
    driver = {"hostPath": {"path": str(FOLDER / "driver")}}
    boards = {"vendor": "nvidia", "count": gpus, "resourceName": RESOURCE, "driver": driver}
    return {
        "clusterRef": {"name": "checked"},
        "replicas": count,
        "maintenance": {"cordon": False},
        "resources": SIZE,
        "volumes": [{"name": name, "hostPath": {"path": str(FOLDER / name)}} for name in files],
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in files.items()],
        **({"gpu": boards} if gpus else {}),
    }
