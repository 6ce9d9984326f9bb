"""Starts and stops single programs, on the control plane and on Nodes, and detects at once when one has ended."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from local import cgroups, controlplane, node
from local.machines import inside, running_init
from local.paths import State
from local.plan import NodePlan, node_plan
from local.process import Process, Records, identify, is_alive, only_child, spawn, stop, tail
from local.progress import Failure


@dataclass(frozen=True)
class Fleet:
    """The parts of a cluster that each command needs: its files, its processes, its programs."""

    state: State
    records: Records
    binaries: Path
    grace_period: str | None = None


def names(plans: tuple[NodePlan, ...]) -> list[str]:
    """Return the names of all programs of a cluster: ``etcd`` …, ``node-1/containerd`` …"""
    return [*controlplane.NAMES, *(f"{plan.name}/{program}" for plan in plans for program in node.NAMES)]


def full_name(name: str) -> str:
    """Return the recorded name of a component: the prefix ``kube-`` of ``apiserver`` and ``scheduler`` is optional."""
    if "/" in name or name in controlplane.NAMES:
        return name
    if f"kube-{name}" in controlplane.NAMES:
        return f"kube-{name}"
    raise Failure(f"{name!r} is no component: {', '.join(controlplane.NAMES)}, or node-1/kubelet and the like")


def is_running(fleet: Fleet, name: str) -> bool:
    """Return whether the program runs."""
    process = fleet.records.read(name)
    return process is not None and is_alive(process)


def start(fleet: Fleet, name: str) -> bool:
    """Start one program unless it runs; return whether it was started."""
    if is_running(fleet, name):
        return False
    log = fleet.state.log(name)
    where, _, program = name.rpartition("/")
    environment = {"PATH": f"{fleet.binaries}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
    if where:
        plan = node_plan(where)
        init = running_init(plan, fleet.records)
        if init is None:
            raise Failure(f"{where} is stopped: run node start {where}")
        argv = node.command(program, plan, fleet.binaries, fleet.state)
        pid = only_child(spawn(cgroups.entering(inside(init.pid, argv)), log, environment))
    else:
        argv = controlplane.command(name, fleet.binaries, fleet.state, fleet.grace_period)
        pid = spawn(cgroups.entering(argv), log, environment)
    fleet.records.write(identify(name, pid, log))
    return True


def halt(fleet: Fleet, name: str, patience: float = 3.0) -> bool:
    """Stop one program; return whether it was running."""
    process = fleet.records.read(name)
    if process is None:
        return False
    was_alive = is_alive(process)
    fleet.records.write(replace(process, is_leaving=True))  # another thread may look whether all is alive
    stop([process], patience)
    fleet.records.forget(name)
    return was_alive


def dead(records: Records) -> list[Process]:
    """Return the programs that were started and not stopped, and that no longer run."""
    found = [process for process in records.all() if not is_alive(process) and not process.is_leaving]
    # Another thread may have stopped one of them since its record was read: then it stands otherwise now.
    return [process for process in found if records.read(process.name) == process]


def check_alive(records: Records) -> None:
    """Raise Failure with the end of the log if a program has ended."""
    for process in dead(records):
        raise Failure(f"{process.name} (pid {process.pid}) has ended; the end of {process.log}:\n{tail(process.log)}")


def wait_for(what: str, is_there: Callable[[], bool], records: Records, patience: float = 90.0) -> None:
    """Wait until ``is_there`` returns true; raise Failure at once if any program of the cluster ends."""
    deadline = time.monotonic() + patience
    while not is_there():
        check_alive(records)
        if time.monotonic() > deadline:
            raise Failure(f"{what}: timeout after {patience:.0f} s; see the logs in {records.folder.parent}/logs")
        time.sleep(0.1)
