"""Records the events in the demo's namespace after an apply, and their times.

It reads the objects several times a second over one connection, which uses less CPU than a kubectl for each read; so a time is accurate to
about a tenth of a second.
"""

import http.client
import json
import ssl
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from local.demo import NAMESPACE, ssh
from local.paths import DEFAULT_STATE, State
from local.plan import API_PORT, HOST
from local.progress import Failure

Object = dict[str, Any]
OURS = "labelSelector=app.kubernetes.io/managed-by%3Dsoperator"
PATHS = {
    "pods": f"/api/v1/namespaces/{NAMESPACE}/pods?{OURS}",
    "jobs": f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs?{OURS}",
    "clusters": f"/apis/slurm.soperator.io/v1alpha1/namespaces/{NAMESPACE}/slurmclusters",
}
PERIOD = 0.1


class Watch:
    """One connection to the API server, with the administrator's credentials."""

    def __init__(self) -> None:
        pki: Path = State(DEFAULT_STATE).pki
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "client-certificate.pem", pki / "client-key.pem")
        self._connection = http.client.HTTPSConnection(str(HOST), API_PORT, timeout=10, context=context)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def snapshot(self) -> dict[str, list[Object]]:
        """Return the objects by kind."""
        return {kind: self._list(path) for kind, path in PATHS.items()}

    def _list(self, path: str) -> list[Object]:
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise Failure(f"GET {path}: {response.status} {text[:300]!r}")
        items: list[Object] = json.loads(text)["items"]
        return items


def moments(objects: Mapping[str, list[Object]]) -> dict[str, bool]:
    """Return for each step of the start whether it is complete."""
    ready = [_role(pod) for pod in objects["pods"] if _holds(pod, "Ready")]
    status: Object = next((each.get("status", {}) for each in objects["clusters"]), {})
    workers = [pod for pod in objects["pods"] if _role(pod) == "worker"]
    return {
        "pods made": bool(objects["pods"]),
        "slurmctld ready": "controller" in ready,
        "slurmrestd ready": "rest" in ready,
        "populate Job complete": any(_holds(job, "Complete") for job in objects["jobs"]),
        "workers made": len(workers) == 2,
        "workers ready": ready.count("worker") == 2,
        "login ready": "login" in ready,
        "workers registered (status)": status.get("workers", {}).get("readyReplicas") == 2,
    }


def milestones(watch: Watch, began: float, patience: float) -> dict[str, float]:
    """Return when each step was complete, in seconds after `began`; the last step is a job on two nodes, submitted as soon as login is ready."""
    found: dict[str, float] = {}
    job: subprocess.Popen[str] | None = None
    while time.time() - began < patience:
        objects = watch.snapshot()
        for name, holds in moments(objects).items():
            if holds and name not in found:
                found[name] = time.time() - began
        address = next((each.get("status", {}).get("address", "") for each in objects["clusters"]), "")
        if job is None and address and "login ready" in found:
            job = _try_job(address)
        elif job is not None and job.poll() is not None:
            output = job.stdout.read() if job.stdout else ""
            if job.returncode == 0 and len(set(output.split())) == 2:
                return found | {"first srun -N2": time.time() - began}
            job = None
        time.sleep(PERIOD)
    raise Failure(f"no srun -N2 after {patience:.0f} s; so far: {found}")


def _try_job(address: str) -> subprocess.Popen[str]:
    words = [*ssh(address, "root"), "timeout 60 srun -N2 hostname"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _role(pod: Object) -> str:
    role: str = pod["metadata"]["labels"].get("slurm.soperator.io/role", "")
    return role


def _holds(obj: Object, condition: str) -> bool:
    found = obj.get("status", {}).get("conditions", [])
    return any(each["type"] == condition and each["status"] == "True" for each in found)
