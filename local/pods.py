"""The processes of a pod's container as the machine sees them, because no process inside a container can kill or stop the first one."""

import signal
from pathlib import Path

from local.api import Api
from local.paths import State
from local.process import identify, signal_process, start_ticks
from local.progress import Failure, say

SIGNALS = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP, "resume": signal.SIGCONT}
_DONE = {"kill": "killed", "pause": "paused", "resume": "goes on"}


def container_id(api: Api, pod: str, container: str) -> str:
    """Return the id of a running container of the pod `namespace/name`."""
    namespace, _, name = pod.partition("/")
    found = api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    if found is None:
        raise Failure(f"there is no pod {pod}: name it as NAMESPACE/POD")
    status = found["status"]
    states = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
    ids = {
        each["name"]: each.get("containerID", "").rpartition("/")[2] for each in states if "running" in each["state"]
    }
    if container not in ids:
        raise Failure(
            f"container {container!r} does not run in pod {pod}; its running containers: {', '.join(ids) or 'none'}"
        )
    return str(ids[container])


def processes(identity: str, proc: Path = Path("/proc")) -> list[int]:
    """Return the processes of a container, the oldest first; its cgroup, which the kubelet creates, has the id in its name."""
    found = [int(file.parent.name) for file in proc.glob("[0-9]*/cgroup") if identity in _text(file)]
    return sorted(found, key=lambda pid: (start_ticks(pid) or 0, pid))


def act(state: State, pod: str, container: str, action: str) -> None:
    """Kill a container's first process, and so all of them; or stop all of them, or continue them."""
    pids = processes(container_id(Api(state.pki), pod, container))
    if not pids:
        raise Failure(f"no process of container {container} of pod {pod} runs on this machine")
    for pid in pids[:1] if action == "kill" else pids:
        signal_process(identify(container, pid, Path("/dev/null")), SIGNALS[action])
    say(f"{pod} {container} {_DONE[action]} ({len(pids)} processes)")


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # The process has just ended.
        return ""
