"""What is rendered for the programs of the cluster."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from local import addons, certs, controlplane, network, node
from local.components import full_name, names
from local.paths import State
from local.plan import NodePlan, node_plans
from local.progress import Failure

STATE = State(Path("/state"))
BINARIES = Path("/programs")


def test_containerd_runs_our_runc() -> None:
    """Containerd uses the runc that was built, the pause image that was made, and does not raise OOM scores."""
    config = tomllib.loads(node.render_containerd(BINARIES, Path("/cni")))
    runtime = config["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/programs/runc"
    assert runtime["restrict_oom_score_adj"] is True
    assert config["plugins"]["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"] == node.PAUSE_IMAGE
    assert config["root"] == "/var/lib/containerd"


def test_pod_network_is_the_nodes_own() -> None:
    """Pods get addresses from their Node's network, and keep them on the way to other Nodes."""
    bridge = json.loads(node.render_cni(NodePlan(2)))["plugins"][0]
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.244.2.0/24"}]]
    assert not bridge.get("ipMasq")


def test_kubelet_shares_a_disk() -> None:
    """A kubelet evicts nothing for the sake of a disk that it shares, and stays in its Node's cgroup."""
    config = json.loads(node.render_kubelet(NodePlan(3), Path("/pki"), Path("/resolv.conf")))
    assert {config["evictionHard"][f"{disk}.available"] for disk in ("nodefs", "imagefs")} == {"0%"}
    assert config["cgroupRoot"] == "/soperator/node-3"
    assert config["failCgroupV1"] is False
    assert config["userNamespaces"]["idsPerPod"] % 65536 == 0
    assert config["authentication"]["anonymous"] == {"enabled": False}


def test_resolv_conf_without_loopback() -> None:
    """A name server on the machine's loopback is left out: inside a Node nobody answers there."""
    text = "search example.org\nnameserver 127.0.0.53\nnameserver 192.0.2.53\noptions edns0\n"
    assert node.render_resolv_conf(text) == "nameserver 192.0.2.53\noptions edns0\n"


@pytest.mark.parametrize("name", controlplane.NAMES)
def test_control_plane_trusts_files_of_the_state(name: str) -> None:
    """Every file that a control plane program is told of lies in the cluster's folder."""
    command = controlplane.command(name, BINARIES, STATE)
    assert command[0] == f"/programs/{name}"
    files = [flag.split("=", 1)[1] for flag in command[1:] if "=/" in flag]
    assert files
    assert all(file.startswith("/state/") for file in files)


def test_nothing_listens_outside() -> None:
    """Every address that the control plane listens on is the bridge's or loopback."""
    flags = [flag for name in controlplane.NAMES for flag in controlplane.command(name, BINARIES, STATE)]
    listening = [flag for flag in flags if flag.startswith(("--bind-address", "--listen-"))]
    assert len(listening) == 5
    assert all("10.10.0.1" in flag or "127.0.0.1" in flag for flag in listening)


def test_grace_period_is_the_default_unless_given() -> None:
    """When a silent Node counts as lost is Kubernetes' default, or what was asked for."""
    flag = "--node-monitor-grace-period=20s"
    assert flag in controlplane.controller_manager(STATE, "20s")
    assert not [flag for flag in controlplane.controller_manager(STATE) if "grace" in flag]


def test_audit_omits_nobody() -> None:
    """The audit log has every request of everybody, and not before it is answered."""
    policy = json.loads(controlplane.render_audit_policy())
    assert policy["omitStages"] == ["RequestReceived"]
    assert policy["rules"] == [{"level": "Metadata"}]


def test_unknown_programs_are_refused() -> None:
    """A program that a cluster does not have is refused by name."""
    with pytest.raises(ValueError, match="kube-dns"):
        controlplane.command("kube-dns", BINARIES, STATE)
    with pytest.raises(ValueError, match="etcd"):
        node.command("etcd", NodePlan(1), BINARIES, STATE)
    with pytest.raises(Failure, match="kubectl"):
        full_name("kubectl")


def test_names_of_components() -> None:
    """A component may be called without its prefix, and a Node's by Node and program."""
    assert full_name("apiserver") == "kube-apiserver"
    assert full_name("etcd") == "etcd"
    assert full_name("node-1/kubelet") == "node-1/kubelet"
    assert len(names(node_plans(2))) == 4 + 2 * 3


def test_cable_of_a_node() -> None:
    """A Node's cable ends in the namespace of its process 1, and the machine routes its pods there."""
    lines = network.render_cable(NodePlan(2), 4711).splitlines()
    assert lines[0] == "link add soperator-n2 type veth peer name eth0 netns 4711"
    assert lines[2] == "route replace 10.244.2.0/24 via 10.10.0.12 dev soperator0"
    assert "addr add 10.10.0.12/24 dev eth0" in network.render_card(NodePlan(2))


def test_traffic_inside_keeps_its_address() -> None:
    """Only what leaves the cluster's networks gets the machine's address."""
    rule = next(line for line in network.render_nat().splitlines() if "masquerade" in line)
    inside = "{ 10.10.0.0/24, 10.244.0.0/16 }"
    assert rule.strip() == f"ip saddr {inside} ip daddr != {inside} masquerade"


def test_credentials_are_for_the_bridge() -> None:
    """Kubeadm makes certificates for the address that everybody uses, with quick keys."""
    first, second = certs.render_kubeadm(Path("/pki"), "node-1").split("\n---\n")
    init, cluster = json.loads(first), json.loads(second)
    assert init["localAPIEndpoint"] == {"advertiseAddress": "10.10.0.1", "bindPort": 6443}
    assert init["nodeRegistration"]["name"] == "node-1"
    assert "10.10.0.1" in cluster["apiServer"]["certSANs"]
    assert cluster["encryptionAlgorithm"].startswith("ECDSA")


def test_kubeconfig_parts() -> None:
    """Certificate and key are taken out of a kubeconfig, and their absence is said."""
    text = "users:\n- user:\n    client-certificate-data: Y2VydA==\n    client-key-data: a2V5\n"
    assert certs.render_kubeconfig_parts(text) == {"client-certificate": b"cert", "client-key": b"key"}
    with pytest.raises(ValueError, match="client-key"):
        certs.render_kubeconfig_parts("client-certificate-data: Y2VydA==")


def by_kind(objects: list[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return the objects by kind."""
    return {body["kind"]: body for _, body in objects}


def test_dns_is_found_where_kubelets_point() -> None:
    """The DNS Service has the address that every kubelet gives to its pods, and finds CoreDNS's pods."""
    found = by_kind(addons.render_dns())
    kubelet = json.loads(node.render_kubelet(NodePlan(1), Path("/pki"), Path("/resolv.conf")))
    assert [found["Service"]["spec"]["clusterIP"]] == kubelet["clusterDNS"]
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"].items() <= labels.items()


def test_corefile_uses_compiled_plugins() -> None:
    """Every plugin in the Corefile is compiled into our CoreDNS."""
    main = (Path(addons.__file__).parent / "go" / "kubernetes" / "coredns" / "main.go").read_text()
    used = {line.split()[0] for line in addons.COREFILE.splitlines() if line.startswith("    ") and line[4].isalpha()}
    assert len(used) == 9
    assert all(f'"{plugin}"' in main and f"plugin/{plugin}" in main for plugin in used)


def test_only_the_standard_library() -> None:
    """The command line starts on a Python that has nothing installed."""
    repository = Path(addons.__file__).parent.parent
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(repository)!r}); import local.__main__",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_kubelets_may_read_claims_and_nothing_else_beyond_the_node_authorizer() -> None:
    """The right that spares a new pod ten seconds is to get claims by name; Secrets stay with the Node authorizer."""
    objects = {(body["kind"], body["metadata"]["name"]): body for _, body in addons.render_rights()}
    rules = objects["ClusterRole", "soperator-local:claims"]["rules"]
    assert rules == [{"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["get"]}]
    assert objects["ClusterRoleBinding", "soperator-local:claims"]["subjects"][0]["name"] == "system:nodes"
