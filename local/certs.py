"""Keys, certificates and kubeconfigs of the components.

kubeadm creates them, as on any cluster. They are kept from one start to the next, because no address in them ever changes (``plan``);
another version of Kubernetes or a changed configuration makes new ones.
"""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from local.binaries import KUBERNETES
from local.paths import State
from local.plan import API_PORT, DOMAIN, HOST, POD_NETWORK, SERVICE_NETWORK, NodePlan
from local.progress import Failure

MAXIMUM_AGE_S = 300 * 24 * 3600  # kubeadm's certificates are valid for 365 days.


def render_kubeadm(pki: Path, node_name: str = "control-plane") -> str:
    """Return kubeadm's configuration file: two JSON documents (JSON is YAML)."""
    init: dict[str, Any] = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": str(HOST), "bindPort": API_PORT},
        "nodeRegistration": {"name": node_name, "criSocket": "unix:///run/containerd/containerd.sock"},
    }
    cluster: dict[str, Any] = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "kubernetesVersion": f"v{KUBERNETES}",
        "clusterName": "soperator-local",
        "certificatesDir": str(pki),
        "controlPlaneEndpoint": f"{HOST}:{API_PORT}",
        "encryptionAlgorithm": "ECDSA-P256",
        "apiServer": {"certSANs": [str(HOST), "127.0.0.1", "localhost"]},
        "networking": {"serviceSubnet": str(SERVICE_NETWORK), "podSubnet": str(POD_NETWORK), "dnsDomain": DOMAIN},
    }
    return f"{json.dumps(init, indent=1)}\n---\n{json.dumps(cluster, indent=1)}\n"


def render_kubeconfig_parts(kubeconfig: str) -> dict[str, bytes]:
    """Return the client's certificate and key of a kubeconfig, decoded, for clients that need files."""
    parts = {}
    for name in ("client-certificate", "client-key"):
        found = re.search(rf"{name}-data: (\S+)", kubeconfig)
        if found is None:
            raise ValueError(f"the kubeconfig has no {name}-data")
        parts[name] = base64.b64decode(found[1])
    return parts


def _kubeadm(kubeadm: Path, config: Path, *phase: str) -> None:
    argv = [str(kubeadm), "init", "phase", *phase, "--config", str(config)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"kubeadm {' '.join(phase)} failed:\n{done.stdout}{done.stderr}")


def _make_control_plane(kubeadm: Path, state: State) -> None:
    config = state.pki / "kubeadm.yaml"
    _kubeadm(kubeadm, config, "certs", "all")
    roles = ("super-admin", "controller-manager", "scheduler")

    def kubeconfig(role: str) -> None:
        _kubeadm(kubeadm, config, "kubeconfig", role, "--kubeconfig-dir", str(state.pki))

    with ThreadPoolExecutor() as pool:
        list(pool.map(kubeconfig, roles))
    for part, text in render_kubeconfig_parts((state.pki / "super-admin.conf").read_text()).items():
        file = state.pki / f"{part}.pem"
        file.touch(mode=0o600)
        file.write_bytes(text)


def make(kubeadm: Path, state: State) -> bool:
    """Create the control plane's credentials and the kubeconfig if they are missing; return whether they are new."""
    config = render_kubeadm(state.pki)
    key = hashlib.sha256(config.encode()).hexdigest()
    mark = state.pki / "made-for"
    is_fresh = mark.exists() and time.time() - mark.stat().st_mtime < MAXIMUM_AGE_S and mark.read_text() == key
    if not is_fresh:
        shutil.rmtree(state.pki, ignore_errors=True)
        state.pki.mkdir(parents=True, mode=0o700)
        (state.pki / "kubeadm.yaml").write_text(config)
        _make_control_plane(kubeadm, state)
        mark.write_text(key)
    state.kubeconfig.touch(mode=0o600)
    state.kubeconfig.write_text((state.pki / "super-admin.conf").read_text())
    return not is_fresh


def make_for_node(kubeadm: Path, state: State, plan: NodePlan) -> Path:
    """Return the kubelet's kubeconfig (user system:node:NAME), and create it if it is missing."""
    folder = state.pki / plan.name
    made = folder / "kubelet.conf"
    if not made.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        config = folder / "kubeadm.yaml"
        config.write_text(render_kubeadm(state.pki, plan.name))
        _kubeadm(kubeadm, config, "kubeconfig", "kubelet", "--kubeconfig-dir", str(folder))
    return made
