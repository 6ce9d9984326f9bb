"""The isolation of a Node: a process 1 with its own namespaces, a veth pair, and its cgroups.

A Node is one tree of processes in one pid, mount, network, UTS and IPC namespace. To kill its process 1 is like a power failure of a
machine: the kernel kills every process in it, containers too, and its mounts and its network end with the last process. Only its cgroups
need a cleanup.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from local import cgroups, network
from local.paths import State, image_store
from local.plan import NodePlan
from local.process import Process, Records, identify, is_alive, only_child, spawn, start_ticks, stop, tail
from local.progress import Failure

INIT = Path(__file__).resolve().parent / "node-init.sh"
MOUNT_POINTS = (Path("/var/lib/kubelet"), Path("/var/lib/containerd"))


def init_name(plan: NodePlan) -> str:
    """Return the name under which the Node's process 1 is recorded."""
    return f"{plan.name}/init"


def inside(init: int, argv: Sequence[str]) -> list[str]:
    """Return the command that runs ``argv`` in the Node whose process 1 is ``init``."""
    return ["nsenter", "--target", str(init), "--mount", "--uts", "--ipc", "--net", "--pid", "--", *argv]


def switch_on(plan: NodePlan, state: State, records: Records) -> int:
    """Start the Node's process 1, connect its network, and return the pid; the Node has no other process then."""
    disk, images = state.node(plan.name), image_store(plan.name)
    for folder in (disk / "kubelet", disk / "log", images, *MOUNT_POINTS):
        folder.mkdir(parents=True, exist_ok=True)
    booted = disk / "booted"
    booted.unlink(missing_ok=True)
    cgroups.make(plan.cgroup)
    log = state.log(init_name(plan))
    own = ["--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    argv = ["unshare", *own, "sh", str(INIT), plan.name, str(disk), str(images)]
    parent = spawn(cgroups.entering(argv), log)
    init = only_child(parent)
    records.write(identify(init_name(plan), init, log))
    deadline = time.monotonic() + 10
    while not booted.exists():
        if start_ticks(init) is None or time.monotonic() > deadline:
            raise Failure(f"{plan.name} does not come up:\n{tail(log)}")
        time.sleep(0.01)
    network.unplug(plan)
    network.plug(plan, init)
    return init


def switch_off(plan: NodePlan, records: Records) -> bool:
    """Disconnect the Node's network, then kill its process 1: a machine without power closes no connection.

    Return whether the Node was running.
    """
    init = records.read(init_name(plan))
    was_on = init is not None and is_alive(init)
    network.unplug(plan)
    if init is not None:
        stop([init], patience=0)
        records.forget(init.name)
        # A machine that comes up has none; of each one that is left the kubelet asks containerd in vain for 3 s before it is Ready.
        cgroups.remove(plan.cgroup)
    return was_on


def running_init(plan: NodePlan, records: Records) -> Process | None:
    """Return the pid of the Node's process 1 if it runs."""
    init = records.read(init_name(plan))
    return init if init is not None and is_alive(init) else None
