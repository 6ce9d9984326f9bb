"""The processes of this cluster's pods, as the machine sees them, and of no other cluster's: another run, or a developer's own, may be beside it.

Only where the pods run on this machine.
"""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from local import pods
from local.demo import local_target


def processes(program: str, host: str) -> list[int]:
    """The pids of a program in the pods of the local cluster with this host name: those of another cluster on this machine are not ours."""
    found = []
    for pid in {pid for identity in containers(host, _all_pods()) for pid in pods.processes(identity)}:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.decode(errors="replace").endswith(program) for word in words[:3]):
            found.append(pid)
    return sorted(found)


def containers(host: str, found: Iterable[Mapping[str, Any]]) -> list[str]:
    """The ids of the containers that run in the pods with this host name."""
    ours = [each for each in found if host in (each["spec"].get("hostname"), each["metadata"]["name"])]
    kinds = ("containerStatuses", "initContainerStatuses")
    statuses = [one for each in ours for kind in kinds for one in each.get("status", {}).get(kind, ())]
    return [one["containerID"].rpartition("/")[2] for one in statuses if "running" in one["state"]]


def _all_pods() -> list[dict[str, Any]]:
    command = ["kubectl", "get", "pods", "--all-namespaces", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=local_target().env, timeout=60)
    listed: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return listed
