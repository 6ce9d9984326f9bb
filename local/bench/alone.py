"""Measures the operator against an API server alone: the time to start, and the time to converge a new cluster."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.bench import audit, plane, record
from local.bench.plane import Plane
from local.paths import REPOSITORY
from local.progress import say

QUIET = 8.0
EXAMPLE = REPOSITORY / "examples" / "cluster.yaml"
CLAIMS = """\
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: demo-jail}
spec: {accessModes: [ReadWriteMany], storageClassName: "", resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: demo-state}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}
"""


@dataclass(frozen=True)
class Operator:
    """A running operator, and the seconds until it was ready."""

    process: subprocess.Popen[bytes]
    seconds: float


def measure(runs: int) -> None:
    """Measure the start of the operator and the convergence of a cluster, each `runs` times."""
    with tempfile.TemporaryDirectory(prefix="soperator-bench-") as folder, plane.running(Path(folder)) as server:
        install(server)
        for number in range(runs):
            _measure_start(server, number + 1)
        for populate in ("Never", "Once"):
            with operator(server) as started:
                for number in range(runs):
                    _measure_apply(server, populate, number + 1)
                say(f"operator: {_status(started.process.pid)}")


def install(server: Plane) -> None:
    """Create the CRDs of the operator's kinds in the API server."""
    crds = subprocess.run(
        [sys.executable, "-m", "soperator.cli", "crds"], capture_output=True, text=True, env=_env(), check=True
    )
    server.run("apply", "--server-side", "-f", "-", stdin=crds.stdout)
    server.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")


@contextmanager
def operator(server: Plane, module: str = "soperator.cli", **more: str) -> Iterator[Operator]:
    """Run a ready operator within the block, as a process of this machine with a Lease, as in its pod; `more` is added to its environment."""
    port = plane.free_port()
    env = _env() | {"KUBECONFIG": str(server.kubeconfig(plane.OPERATOR)), "SOPERATOR_PORT": str(port)} | more
    command = [sys.executable, "-m", module, "operator"]
    with (server.folder / "operator.log").open("ab") as log:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=env)
    try:
        plane.wait(f"http://127.0.0.1:{port}/readyz", process)
        yield Operator(process, time.monotonic() - began)
    finally:
        plane.end(process)


def _measure_start(server: Plane, number: int) -> None:
    scene = record.current_scene()
    with operator(server) as started:
        say(f"operator ready, run {number}: {started.seconds:.2f} s")
    record.append(record.Run("ready", started.seconds, **scene.__dict__))


def _measure_apply(server: Plane, populate: str, number: int) -> None:
    namespace = f"{populate.lower()}-{number}"
    server.run("create", "namespace", namespace)
    time.sleep(1.0)
    manifest = CLAIMS + "---\n" + EXAMPLE.read_text().replace("  jail:\n", f"  jail:\n    populate: {populate}\n")
    scene = record.current_scene()
    began = time.time()
    server.run("-n", namespace, "apply", "-f", "-", stdin=manifest)
    found = settle(server.audit_log, plane.OPERATOR, began)
    arrived = min(
        each.began
        for each in audit.requests(audit.tail(server.audit_log, 0), plane.ADMIN, began)
        if each.resource == "slurmclusters" and each.verb == "create"
    )
    last = audit.last_write(found) or began
    children = sum(each.is_creation for each in found)
    writes = sum(each.is_write for each in found)
    note = f"{writes} writes for {children} children"
    say(f"{populate}, run {number}: {last - began:.2f} s, {last - arrived:.2f} s since the cluster's arrival, {note}")
    parts = {"kubectl, until the cluster arrives": arrived - began, "the operator's last write": last - began}
    record.append(record.Run(f"alone-{populate.lower()}", last - began, note=note, parts=parts, **scene.__dict__))
    server.run("-n", namespace, "delete", "slurmcluster,nodeset", "--all", "--wait=false")


def settle(log: Path, user: str, since: float) -> list[audit.Request]:
    """Wait until a user has written nothing for QUIET seconds; return all requests of the user since the start."""
    while True:
        found = audit.requests(audit.tail(log, 0), user, since)
        last = audit.last_write(found) or since
        if time.time() - last > QUIET:
            return found
        time.sleep(0.5)


def _env() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(REPOSITORY / "src"), "POD_NAMESPACE": "default", "SOPERATOR_NAMESPACE": ""}


def _status(pid: int) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return ", ".join(" ".join(line.split()) for line in lines if line.startswith(("VmRSS", "VmHWM")))
