"""The programs of a Node: containerd runs containers, kubelet runs pods in it, kube-proxy makes Services reachable.

Inside the Node (``machines``) every path is the usual one. The pod network is simple: a bridge on the Node, addresses from the Node's own
/24, and the routes of ``network`` between Nodes.
"""

import json
from pathlib import Path
from typing import Any

from local.paths import State
from local.plan import DNS_SERVICE, DOMAIN, POD_NETWORK, NodePlan

NAMES = ("containerd", "kubelet", "kube-proxy")
SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "localhost/soperator/pause:1"
MAX_PODS = 60


def render_containerd(binaries: Path, cni: Path) -> str:
    """Return containerd's configuration.

    ``restrict_oom_score_adj``: root may lack CAP_SYS_RESOURCE (in a VM's sandbox or a container), and every pod would fail.
    ``max_concurrent_downloads`` and registries have no effect here, because ``load`` imports the images.
    """
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "{SOCKET}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "{cni}"

[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{binaries}/runc"
SystemdCgroup = false
"""


def render_cni(plan: NodePlan) -> str:
    """Return the pod network's configuration: pods keep their address towards other Nodes' pods."""
    bridge: dict[str, Any] = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": str(plan.pods)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": "/run/cni/addresses",
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "1.0.0", "name": "soperator", "plugins": [bridge, portmap]}, indent=1)


#: Twice what a kubelet gives by itself, so that users of a directory with ids above 65535 have a place, and the limit is in reach of tests.
IDS_PER_POD = 131072


def render_kubelet(plan: NodePlan, pki: Path, resolv_conf: Path) -> str:
    """Return the kubelet's configuration. A full disk evicts no pod and deletes no image, because several Nodes share the machine's disk."""
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": plan.cgroup,
        "failCgroupV1": False,
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "clusterDNS": [str(DNS_SERVICE)],
        "clusterDomain": DOMAIN,
        "resolvConf": str(resolv_conf),
        "failSwapOn": False,
        "maxPods": MAX_PODS,
        "userNamespaces": {"idsPerPod": IDS_PER_POD},
        "registerNode": True,
        "serializeImagePulls": False,
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        "oomScoreAdj": 0,
        "volumePluginDir": "/run/kubelet-plugins",
        "shutdownGracePeriod": "0s",
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "20s",
    }
    return json.dumps(config, indent=1)


def render_kube_proxy(plan: NodePlan, kubeconfig: Path) -> str:
    """Return kube-proxy's configuration; it does not change conntrack's limits, which belong to the machine."""
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": str(POD_NETWORK),
        "hostnameOverride": plan.name,
        "oomScoreAdj": 0,
        "conntrack": {"maxPerCore": 0, "min": 0},
        "nftables": {"minSyncPeriod": "200ms"},
    }
    return json.dumps(config, indent=1)


def render_resolv_conf(of_the_machine: str) -> str:
    """Return the machine's resolv.conf without name servers on the loopback, because a Node has none there."""
    lines = of_the_machine.splitlines()
    kept = [line for line in lines if line.startswith(("nameserver", "options")) and " 127." not in line]
    return "".join(f"{line}\n" for line in kept)


def write_configuration(plan: NodePlan, state: State, binaries: Path) -> None:
    """Write the Node's configuration files into its folder."""
    disk = state.node(plan.name)
    cni = disk / "cni"
    cni.mkdir(parents=True, exist_ok=True)
    (cni / "10-soperator.conflist").write_text(render_cni(plan))
    (disk / "containerd.toml").write_text(render_containerd(binaries, cni))
    (disk / "kubelet.yaml").write_text(render_kubelet(plan, state.pki, disk / "resolv.conf"))
    (disk / "kube-proxy.yaml").write_text(render_kube_proxy(plan, state.pki / plan.name / "kubelet.conf"))
    (disk / "resolv.conf").write_text(render_resolv_conf(Path("/etc/resolv.conf").read_text()))


def command(name: str, plan: NodePlan, binaries: Path, state: State) -> list[str]:
    """Return the command of one of ``NAMES``, to run inside the Node."""
    disk = state.node(plan.name)
    match name:
        case "containerd":
            flags = [f"--config={disk}/containerd.toml", "--log-level=warn"]
        case "kubelet":
            flags = [
                f"--config={disk}/kubelet.yaml",
                f"--kubeconfig={state.pki}/{plan.name}/kubelet.conf",
                f"--hostname-override={plan.name}",
                f"--node-ip={plan.address}",
            ]
        case "kube-proxy":
            flags = [f"--config={disk}/kube-proxy.yaml"]
        case _:
            raise ValueError(f"{name!r} does not run on a Node: {', '.join(NAMES)}")
    return [str(binaries / name), *flags]
