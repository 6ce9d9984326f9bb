"""The fault lab: injects one fault into a running cluster, and repairs it."""

import os
import shutil
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from local import components, machines, network, node, pods
from local.api import Api
from local.cluster import fleet_of, ready_nodes, start_kubelet, start_machine
from local.components import wait_for
from local.load import own_images
from local.paths import State
from local.plan import node_plan
from local.process import signal_process
from local.progress import Failure, say

SPOILER = Path(__file__).resolve().parent / "spoil.py"


def last_sign(api: Api, node_name: str) -> datetime:
    """Return when the Node's kubelet last renewed its Lease: the condition Ready alone may date from before a crash."""
    lease = api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node_name}")
    renewed = lease["spec"]["renewTime"] if lease else "1970-01-01T00:00:00+00:00"
    return datetime.fromisoformat(renewed)


def node_stop(state: State, name: str, *, hard: bool) -> None:
    """Kill a Node as a power failure does; ``hard`` also deletes its disk, as when the machine is replaced."""
    fleet, plan = fleet_of(state), node_plan(name)
    was_on = machines.switch_off(plan, fleet.records)
    for program in node.NAMES:
        fleet.records.forget(f"{name}/{program}")
    if hard:
        shutil.rmtree(state.node(name), ignore_errors=True)
    say(f"{name} is off" if was_on else f"{name} was off already")


def node_start(state: State, name: str) -> None:
    """Start a Node and wait until it is Ready; it keeps its disk, and so its pods, unless the disk was deleted."""
    fleet, plan = fleet_of(state), node_plan(name)
    images = own_images(fleet.binaries)
    began = datetime.now(UTC)
    start_machine(fleet, plan, images)
    start_kubelet(fleet, plan)
    api = Api(state.pki)
    wait_for(f"{name} Ready", lambda: name in ready_nodes(api) and last_sign(api, name) > began, fleet.records)
    say(f"{name} is on and Ready")


def node_cut(name: str, *, whole: bool) -> None:
    """Disconnect or reconnect a Node's network; the processes on the Node continue."""
    network.carry(node_plan(name), whole)
    say(f"{name} has its network again" if whole else f"{name} has no network")


def component(state: State, name: str, action: str) -> None:
    """Stop, start, restart or suspend one program, for tests of its absence."""
    fleet, full = fleet_of(state), components.full_name(name)
    if action in ("pause", "resume"):
        process = fleet.records.read(full)
        if process is None:
            raise Failure(f"{full} does not run")
        signal_process(process, signal.SIGSTOP if action == "pause" else signal.SIGCONT)
        say(f"{full} is paused" if action == "pause" else f"{full} goes on")
        return
    if action in ("stop", "restart"):
        was_there = components.halt(fleet, full, 0.0 if action == "restart" else 3.0)
        say((f"{full} killed" if action == "restart" else f"{full} stopped") if was_there else f"{full} did not run")
    if action in ("start", "restart"):
        started = components.start(fleet, full)
        if full == "kube-apiserver":
            wait_for("API server ready", Api(state.pki).is_ready, fleet.records)
        say(f"{full} started" if started else f"{full} runs already")


def spoil(state: State, pod: str, container: str, port: int, delay: float, status: int) -> None:
    """Run the proxy that delays the answers of a pod's port, or answers with an error, until a signal ends it."""
    inside = pods.processes(pods.container_id(Api(state.pki), pod, container))
    if not inside:
        raise Failure(f"no process of container {container} of pod {pod} runs on this machine")
    argv = ["nsenter", "--target", str(inside[0]), "--net", "--", sys.executable, str(SPOILER)]
    os.execvp(argv[0], [*argv, str(port), str(delay), str(status)])
