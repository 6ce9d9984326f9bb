"""Starts a cluster, reports its state, and stops it.

This module has the order of the steps; other modules have the steps. Each command is idempotent: ``up`` starts the parts that do not run,
and ``down`` stops the parts that do, after a crash at any point too.
"""

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from local import addons, binaries, certs, cgroups, components, controlplane, machines, network, node
from local.api import Api, is_true
from local.components import Fleet, wait_for
from local.load import Store, load, own_images
from local.paths import DEFAULT_STATE, State, cache, locked
from local.plan import MAX_NODES, NodePlan, node_plan, node_plans
from local.process import Records, is_alive, stop, wait_gone
from local.progress import Failure, say


@dataclass(frozen=True)
class Settings:
    """The options of the last ``up``, kept for later commands."""

    nodes: int
    grace_period: str | None = None
    binaries: str = ""


def state_of(folder: Path = DEFAULT_STATE) -> State:
    """Return the state in ``folder``."""
    return State(folder.resolve())


def records_of(state: State) -> Records:
    """Return the processes of the cluster."""
    return Records(state.records)


def settings_of(state: State) -> Settings | None:
    """Return the options of the last ``up``, or None if no cluster is up."""
    file = state.records / "settings.json"
    return Settings(**json.loads(file.read_text())) if file.exists() else None


def fleet_of(state: State) -> Fleet:
    """Return the running cluster; raises Failure if there is none."""
    settings = settings_of(state)
    if settings is None:
        raise Failure(f"no cluster runs in {state.root}: run up --nodes 2")
    return Fleet(state, records_of(state), Path(settings.binaries), settings.grace_period)


def write_settings(state: State, settings: Settings) -> None:
    """Store the options, and write the files for other programs."""
    state.records.mkdir(parents=True, exist_ok=True)
    (state.records / "settings.json").write_text(json.dumps(settings.__dict__))
    state.env.write_text(f'export KUBECONFIG="{state.kubeconfig}"\nexport PATH="{settings.binaries}:$PATH"\n')


def start_control_plane(fleet: Fleet, api: Api) -> None:
    """Start etcd and the API server; once the API server answers, start its clients and create their permissions."""
    fleet.state.config.mkdir(parents=True, exist_ok=True)
    (fleet.state.config / "audit-policy.yaml").write_text(controlplane.render_audit_policy())
    fleet.state.etcd.mkdir(mode=0o700, exist_ok=True)
    components.start(fleet, "etcd")
    if components.start(fleet, "kube-apiserver"):
        wait_for("API server ready", api.is_ready, fleet.records)
        say("API server ready")
    components.start(fleet, "kube-controller-manager")
    components.start(fleet, "kube-scheduler")
    for path, body in addons.render_rights():
        api.ensure(path, body)


def start_machine(fleet: Fleet, plan: NodePlan, images: Sequence[Path]) -> None:
    """Start a Node and its containerd, and import the images.

    A Node with a new disk (first start, or replaced) also deletes the containers that its image store remembers.
    """
    is_new = not fleet.state.node(plan.name).exists()
    init = machines.running_init(plan, fleet.records)
    if init is None:
        for program in node.NAMES:
            fleet.records.forget(f"{plan.name}/{program}")
        node.write_configuration(plan, fleet.state, fleet.binaries)
        machines.switch_on(plan, fleet.state, fleet.records)
    init = machines.running_init(plan, fleet.records)
    if init is None:
        raise Failure(f"{plan.name} stopped while it was starting")
    if components.start(fleet, f"{plan.name}/containerd"):
        store = Store(plan.name, init.pid, fleet.binaries)
        wait_for_containerd(fleet, store)
        if is_new and store.forget_containers():
            components.halt(fleet, f"{plan.name}/containerd")
            components.start(fleet, f"{plan.name}/containerd")
            wait_for_containerd(fleet, store)
        load([store], images)


def wait_for_containerd(fleet: Fleet, store: Store) -> None:
    """Wait until the Node's containerd answers."""

    def answers() -> bool:
        try:
            store.ctr("version")
        except Failure:
            return False
        return True

    wait_for(f"containerd of {store.node}", answers, fleet.records)


def start_kubelet(fleet: Fleet, plan: NodePlan) -> None:
    """Start the kubelet and kube-proxy of a Node; the API server must be ready."""
    certs.make_for_node(fleet.binaries / "kubeadm", fleet.state, plan)
    components.start(fleet, f"{plan.name}/kubelet")
    components.start(fleet, f"{plan.name}/kube-proxy")


def ready_nodes(api: Api) -> set[str]:
    """Return the names of the Nodes that Kubernetes reports as Ready."""
    found = api.get("/api/v1/nodes") or {"items": []}
    return {str(item["metadata"]["name"]) for item in found["items"] if is_true(item, "Ready")}


def up(state: State, nodes: int, grace_period: str | None = None) -> None:
    """Start a cluster of ``nodes`` Nodes, or the parts of it that do not run, and wait until all parts are ready."""
    if not 1 <= nodes <= MAX_NODES:
        raise Failure(f"--nodes {nodes}: from 1 to {MAX_NODES}")
    with locked(state.lock):
        _up(state, nodes, grace_period)


def _clear_abandoned(state: State) -> None:
    """Remove the remains of another state's cluster whose processes all died, as they do at the end of a session or a container."""
    present = network.owner()
    if present in {None, str(state.root)}:
        return
    other = State(Path(str(present)))
    if not any(is_alive(process) for process in records_of(other).all()):
        say(f"no process of the cluster of {present} runs any more: removing its remains")
        _down(other)


def _up(state: State, nodes: int, grace_period: str | None) -> None:
    before = settings_of(state)
    programs = Path(before.binaries) if before else binaries.make()  # A cluster keeps its version until it goes down.
    nodes = max(nodes, before.nodes if before else 0)
    plans = node_plans(nodes)
    if before is None:
        shutil.rmtree(state.logs, ignore_errors=True)
        state.audit_log.unlink(missing_ok=True)
    fleet = Fleet(state, records_of(state), programs, grace_period)
    for process in components.dead(fleet.records):
        fleet.records.forget(process.name)
    _clear_abandoned(state)
    network.make(state.root, state.records / "machine.json")
    cgroups.make(cgroups.PROGRAMS)
    write_settings(state, Settings(nodes, grace_period, str(programs)))
    if certs.make(programs / "kubeadm", state):
        say("made keys and certificates")
    images = own_images(programs)
    api = Api(state.pki)
    with ThreadPoolExecutor() as pool:
        control = pool.submit(start_control_plane, fleet, api)
        starts = [pool.submit(start_machine, fleet, plan, images) for plan in plans]
        for done in (*starts, control):
            done.result()
        list(pool.map(lambda plan: start_kubelet(fleet, plan), plans))
    for path, body in addons.render_dns():
        api.ensure(path, body)
    wait_until_ready(fleet, api, plans)
    say(f"up: {nodes} Nodes; export KUBECONFIG={state.kubeconfig}")


def wait_until_ready(fleet: Fleet, api: Api, plans: Sequence[NodePlan]) -> None:
    """Wait for the Nodes, then for the DNS."""
    wanted = {plan.name for plan in plans}
    wait_for("Nodes Ready", lambda: wanted <= ready_nodes(api), fleet.records)
    say(f"Nodes Ready: {', '.join(plan.name for plan in plans)}")

    def has_dns() -> bool:
        return is_true(api.get(f"{addons.DEPLOYMENTS}/coredns") or {}, "Available")

    wait_for("CoreDNS ready", has_dns, fleet.records)
    say("CoreDNS ready")


def down(state: State) -> None:
    """Stop the cluster and restore the machine's settings; keep credentials, logs and the Nodes' images."""
    with locked(state.lock):
        _down(state)


def _down(state: State) -> None:
    records = records_of(state)
    present = network.owner()
    if present not in {None, str(state.root)}:
        raise Failure(f"the cluster on this machine belongs to {present}: down --state {present}")
    running = [process for process in records.all() if is_alive(process)]
    if not running and present is None and not state.records.exists():
        say("nothing runs")
        return
    inits = [process for process in running if process.name.endswith("/init")]
    others = [process for process in running if "/" not in process.name]
    stop([*inits, *others], patience=0)
    wait_gone(running, 10)
    cgroups.remove()
    network.remove(state.records / "machine.json")
    for folder in (state.etcd, state.root / "nodes", state.records, state.config, state.storage):
        shutil.rmtree(folder, ignore_errors=True)
    for file in (state.kubeconfig, state.env):
        file.unlink(missing_ok=True)
    for mount_point in machines.MOUNT_POINTS:
        if mount_point.exists() and not any(mount_point.iterdir()):
            mount_point.rmdir()
    say(f"down: {len(running)} processes stopped")


def remove_caches(state: State) -> None:
    """Remove programs, images and build caches, and the state folder."""
    shutil.rmtree(cache(), ignore_errors=True)
    shutil.rmtree(state.root, ignore_errors=True)


def load_images(state: State, archives: Sequence[Path], only: str | None = None) -> None:
    """Import image archives into all running Nodes, or into one."""
    fleet = fleet_of(state)
    settings = settings_of(state)
    plans = [node_plan(only)] if only else node_plans(settings.nodes if settings else 0)
    stores = []
    for plan in plans:
        init = machines.running_init(plan, fleet.records)
        if init is None:
            say(f"{plan.name} is off: skipped")
        else:
            stores.append(Store(plan.name, init.pid, fleet.binaries))
    load(stores, archives)
    say(f"{len(archives)} image archives are on {', '.join(store.node for store in stores)}")
