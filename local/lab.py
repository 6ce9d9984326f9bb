"""The fault lab: break one thing of a running cluster on purpose, and mend it again."""

import shutil
from datetime import UTC, datetime

from local import components, machines, node
from local.api import Api
from local.cluster import fleet_of, ready_nodes, start_kubelet, start_machine
from local.components import wait_for
from local.load import own_images
from local.paths import State
from local.plan import node_plan
from local.progress import say


def last_sign(api: Api, node_name: str) -> datetime:
    """Return when the Node's kubelet last renewed its Lease: Ready alone may be a memory of before a crash."""
    lease = api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node_name}")
    renewed = lease["spec"]["renewTime"] if lease else "1970-01-01T00:00:00+00:00"
    return datetime.fromisoformat(renewed)


def node_stop(state: State, name: str, *, hard: bool) -> None:
    """Pull a Node's power cable; ``hard`` also loses what was on its disk, as when the machine is replaced."""
    fleet, plan = fleet_of(state), node_plan(name)
    was_on = machines.switch_off(plan, fleet.records)
    for program in node.NAMES:
        fleet.records.forget(f"{name}/{program}")
    if hard:
        shutil.rmtree(state.node(name), ignore_errors=True)
    say(f"{name} is off" if was_on else f"{name} was off already")


def node_start(state: State, name: str) -> None:
    """Switch a Node on and wait until it is Ready; it remembers its disk, and so its pods, unless that was lost."""
    fleet, plan = fleet_of(state), node_plan(name)
    images = own_images(fleet.binaries)
    began = datetime.now(UTC)
    start_machine(fleet, plan, images)
    start_kubelet(fleet, plan)
    api = Api(state.pki)
    wait_for(f"{name} Ready", lambda: name in ready_nodes(api) and last_sign(api, name) > began, fleet.records)
    say(f"{name} is on and Ready")


def component(state: State, name: str, action: str) -> None:
    """Stop or start one program, for tests of what happens without it."""
    fleet, full = fleet_of(state), components.full_name(name)
    if action == "stop":
        say(f"{full} stopped" if components.halt(fleet, full) else f"{full} did not run")
        return
    started = components.start(fleet, full)
    if full == "kube-apiserver":
        wait_for("API server ready", Api(state.pki).is_ready, fleet.records)
    say(f"{full} started" if started else f"{full} runs already")
