"""Ends of the leading operator, and who leads after it."""

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from tests.cluster import processes as machine
from tests.cluster.lab import OPERATOR, Lab, is_ready


def fell(lab: Lab, kill: Callable[[Lab, str], str]) -> None:
    """Kill the leader; wait until one leads that began to do so after it, and note how long that took."""
    before = lease(lab)
    leader = before["holderIdentity"].partition("_")[0]
    began = time.monotonic()
    how = kill(lab, leader)
    lab.until("another leads", lambda: is_newer(lease(lab), before), 60)
    lab.timings.note(f"leading operator {how} → the next leads", time.monotonic() - began)
    if how == "hung":
        wake(lab, leader)
    lab.until("two operators", lambda: is_whole(lab, 2), 60)


def crash(lab: Lab, pod: str) -> str:
    """As by a fault or for want of memory."""
    for pid in processes(pod):
        os.kill(pid, signal.SIGKILL)
    return "killed"


def delete(lab: Lab, pod: str) -> str:
    """As by an eviction."""
    lab.kubectl("delete", "pod", pod, "-n", OPERATOR, "--wait=false")
    return "deleted"


def freeze(lab: Lab, pod: str) -> str:
    """As on a Node that is cut off: it believes to lead when it wakes."""
    for pid in processes(pod):
        os.kill(pid, signal.SIGSTOP)
    return "hung"


def wake(lab: Lab, pod: str) -> None:
    """Let it find out that it does not lead: it ends, and Kubernetes starts it again."""
    before = restarts(lab, pod)
    for pid in processes(pod):
        os.kill(pid, signal.SIGCONT)
    lab.until("the former leader has started again", lambda: restarts(lab, pod) > before, 60)


def processes(pod: str) -> list[int]:
    """The operator's processes in a pod of the local cluster."""
    found = machine.processes("", pod)
    assert found, f"no process of pod {pod}"
    return found


def is_whole(lab: Lab, replicas: int) -> bool:
    """Whether there are so many operators, and all are ready."""
    found = [pod for name, pod in lab.pods(namespace=OPERATOR).items() if name.startswith("soperator-")]
    return len(found) == replicas and all(map(is_ready, found))


def restarts(lab: Lab, pod: str, namespace: str = OPERATOR) -> int:
    """How often Kubernetes has started containers of a pod again."""
    found = lab.pods(namespace=namespace)[pod]["status"].get("containerStatuses", [])
    return sum(each["restartCount"] for each in found)


def lease(lab: Lab) -> dict[str, Any]:
    """Who leads, since when."""
    found: dict[str, Any] = json.loads(lab.kubectl("get", "lease", "soperator", "-n", OPERATOR, "-o", "json"))["spec"]
    return found


def is_newer(now: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether somebody has taken the lease since."""
    return bool(now.get("holderIdentity")) and now["acquireTime"] != before["acquireTime"]
