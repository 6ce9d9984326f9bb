"""The cluster's network: one bridge, one veth pair per Node, and routes to the Nodes' pods.

The machine itself is the router between Nodes: each Node's default route is the bridge's address, and the machine has a route to each pod
network by its Node. All settings are in the cluster's own objects (the bridge, an nft table named ``soperator``), so two deletions remove
them. A record has the former values of the machine's settings, and they are restored from it.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from local.plan import BRIDGE, HOST, NODE_NETWORK, POD_NETWORK, NodePlan
from local.progress import Failure

# What we need …
SYSCTLS: Mapping[str, str] = {
    "net/ipv4/ip_forward": "1",
    "fs/inotify/max_user_instances": "8192",
    "fs/inotify/max_user_watches": "524288",
}
# … and what kubelets set by themselves (pkg/util/sysctl in Kubernetes).
KUBELET_SYSCTLS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


def run(*argv: str, text: str | None = None) -> str:
    """Run a short command; raises Failure with its standard error."""
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{' '.join(argv)}: {done.stderr.strip() or done.returncode}\n{text or ''}")
    return done.stdout


def owner() -> str | None:
    """Return the state folder of the cluster whose bridge exists (the bridge's alias), or None without a bridge."""
    folder = Path("/sys/class/net") / BRIDGE
    return (folder / "ifalias").read_text().strip() if folder.exists() else None


def render_bridge() -> str:
    """Return the ``ip -batch`` lines that create the bridge."""
    address = f"{HOST}/{NODE_NETWORK.prefixlen}"
    return f"link add {BRIDGE} type bridge\naddr add {address} dev {BRIDGE}\nlink set {BRIDGE} up\n"


def render_nat() -> str:
    """Return the nft table: pods reach other networks with the machine's address, and each other with their own."""
    inside = f"{{ {NODE_NETWORK}, {POD_NETWORK} }}"
    return (
        "table ip soperator {\n"
        "  chain postrouting {\n"
        "    type nat hook postrouting priority srcnat;\n"
        f"    ip saddr {inside} ip daddr != {inside} masquerade\n"
        "  }\n"
        "}\n"
    )


def render_cable(plan: NodePlan, init: int) -> str:
    """Return the ``ip -batch`` lines, for the machine, that connect the Node of process ``init`` to the bridge."""
    return (
        f"link add {plan.cable} type veth peer name eth0 netns {init}\n"
        f"link set {plan.cable} master {BRIDGE} up\n"
        f"route replace {plan.pods} via {plan.address} dev {BRIDGE}\n"
    )


def render_card(plan: NodePlan) -> str:
    """Return the ``ip -batch`` lines, for the Node, that configure its end of the veth pair."""
    return (
        "link set lo up\n"
        f"addr add {plan.address}/{NODE_NETWORK.prefixlen} dev eth0\n"
        "link set eth0 up\n"
        f"route add default via {HOST}\n"
    )


def _nft_policy(policy: str | None = None) -> str | None:
    """Return the policy of iptables' FORWARD chain, None if there is no such chain; with ``policy``, set it."""
    if policy is not None:
        run("nft", f"chain ip filter FORWARD {{ policy {policy}; }}")
        return policy
    shown = subprocess.run(
        ["nft", "-j", "list", "chain", "ip", "filter", "FORWARD"], capture_output=True, text=True, check=False
    )
    if shown.returncode:
        return None
    entries = json.loads(shown.stdout)["nftables"]
    return next((str(entry["chain"]["policy"]) for entry in entries if "policy" in entry.get("chain", {})), None)


def _settings() -> dict[str, str]:
    names = (*SYSCTLS, *KUBELET_SYSCTLS)
    return {name: (Path("/proc/sys") / name).read_text().strip() for name in names}


def _restore_settings(settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        file = Path("/proc/sys") / name
        if file.read_text().strip() != value:
            file.write_text(value)


def make(state: Path, record: Path) -> None:
    """Create the bridge and the nft table, and store the former settings in ``record``; idempotent."""
    present = owner()
    if present not in {None, str(state)}:
        raise Failure(f"a cluster of {present} runs on this machine: stop it with down --state {present}")
    if not record.exists():
        record.parent.mkdir(parents=True, exist_ok=True)
        partial = record.with_suffix(".partial")
        partial.write_text(json.dumps({"sysctls": _settings(), "forward": _nft_policy()}))
        partial.rename(record)
    if _nft_policy() == "drop":
        _nft_policy("accept")
    current = _settings()
    for name, value in SYSCTLS.items():
        if int(current[name]) < int(value):
            (Path("/proc/sys") / name).write_text(value)
    if present is None:
        run("nft", "-f", "-", text="add table ip soperator\ndelete table ip soperator\n" + render_nat())
        run("ip", "-batch", "-", text=render_bridge())
        run("ip", "link", "set", BRIDGE, "alias", str(state))


def plug(plan: NodePlan, init: int) -> None:
    """Connect the Node whose first process is ``init``."""
    run("ip", "-batch", "-", text=render_cable(plan, init))
    run("nsenter", "--target", str(init), "--net", "ip", "-batch", "-", text=render_card(plan))


def unplug(plan: NodePlan) -> None:
    """Remove the Node's veth pair; does nothing if there is none."""
    if (Path("/sys/class/net") / plan.cable).exists():
        subprocess.run(["ip", "link", "delete", plan.cable], capture_output=True, check=False)


def carry(plan: NodePlan, whole: bool) -> None:
    """Set a Node's link down or up."""
    run("ip", "link", "set", plan.cable, "up" if whole else "down")


def remove(record: Path) -> None:
    """Remove the bridge, the veth pairs and the nft table, and restore the machine's settings."""
    for cable in Path("/sys/class/net").glob("soperator-n*"):
        subprocess.run(["ip", "link", "delete", cable.name], capture_output=True, check=False)
    if owner() is not None:
        run("ip", "link", "delete", BRIDGE)
    subprocess.run(["nft", "delete", "table", "ip", "soperator"], capture_output=True, check=False)
    if record.exists():
        before = json.loads(record.read_text())
        if before["forward"] is not None and _nft_policy() not in {None, before["forward"]}:
            _nft_policy(before["forward"])
        _restore_settings(before["sysctls"])
        record.unlink()
