"""The four programs of a control plane and their flags.

etcd stores the objects, and only the API server connects to it. The controller manager and the scheduler are clients of the API server like
all others. Every program trusts the one certificate authority of ``certs``.
"""

import json
from pathlib import Path

from local.paths import State
from local.plan import API_PORT, HOST, POD_NETWORK, SERVICE_NETWORK

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
ETCD_URL = "https://127.0.0.1:2379"
ETCD_PEER_URL = "https://127.0.0.1:2380"


def render_audit_policy() -> str:
    """Return an audit policy that logs every request when it is answered, without bodies, and a watch also when it begins."""
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    }
    return json.dumps(policy, indent=1)


def etcd(state: State) -> list[str]:
    """Return etcd's flags. etcd does not sync to disk, so it may lose data at a power failure; a test cluster accepts that."""
    pki = state.pki / "etcd"
    return [
        "--name=local",
        f"--data-dir={state.etcd}",
        f"--listen-client-urls={ETCD_URL}",
        f"--advertise-client-urls={ETCD_URL}",
        f"--listen-peer-urls={ETCD_PEER_URL}",
        f"--initial-advertise-peer-urls={ETCD_PEER_URL}",
        f"--initial-cluster=local={ETCD_PEER_URL}",
        "--unsafe-no-fsync",
        f"--cert-file={pki}/server.crt",
        f"--key-file={pki}/server.key",
        f"--trusted-ca-file={pki}/ca.crt",
        "--client-cert-auth",
        f"--peer-cert-file={pki}/peer.crt",
        f"--peer-key-file={pki}/peer.key",
        f"--peer-trusted-ca-file={pki}/ca.crt",
        "--peer-client-cert-auth",
        "--log-level=warn",
    ]


def apiserver(state: State) -> list[str]:
    """Return the API server's flags; it listens on the bridge only."""
    pki = state.pki
    return [
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        f"--secure-port={API_PORT}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--allow-privileged",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--etcd-servers={ETCD_URL}",
        f"--etcd-cafile={pki}/etcd/ca.crt",
        f"--etcd-certfile={pki}/apiserver-etcd-client.crt",
        f"--etcd-keyfile={pki}/apiserver-etcd-client.key",
        f"--kubelet-client-certificate={pki}/apiserver-kubelet-client.crt",
        f"--kubelet-client-key={pki}/apiserver-kubelet-client.key",
        "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={pki}/sa.pub",
        f"--service-account-signing-key-file={pki}/sa.key",
        f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki}/front-proxy-client.crt",
        f"--proxy-client-key-file={pki}/front-proxy-client.key",
        f"--audit-policy-file={state.config}/audit-policy.yaml",
        f"--audit-log-path={state.audit_log}",
        "--audit-log-maxsize=1000",
        "--audit-log-maxbackup=1",
    ]


def controller_manager(state: State, grace_period: str | None = None) -> list[str]:
    """Return the controller manager's flags; ``grace_period`` says when a silent Node counts as lost (``20s``)."""
    pki, kubeconfig = state.pki, f"{state.pki}/controller-manager.conf"
    flags = [
        "--bind-address=127.0.0.1",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--client-ca-file={pki}/ca.crt",
        f"--root-ca-file={pki}/ca.crt",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt",
        f"--service-account-private-key-file={pki}/sa.key",
        "--use-service-account-credentials",
        f"--cluster-cidr={POD_NETWORK}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--leader-elect=false",
        # By default its some forty controllers share 20 requests per second, and take four seconds to begin.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]
    return [*flags, f"--node-monitor-grace-period={grace_period}"] if grace_period else flags


def scheduler(state: State) -> list[str]:
    """Return the scheduler's flags."""
    kubeconfig = f"{state.pki}/scheduler.conf"
    return [
        "--bind-address=127.0.0.1",
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
    ]


def command(name: str, binaries: Path, state: State, grace_period: str | None = None) -> list[str]:
    """Return the whole command of one of ``NAMES``."""
    match name:
        case "etcd":
            flags = etcd(state)
        case "kube-apiserver":
            flags = apiserver(state)
        case "kube-controller-manager":
            flags = controller_manager(state, grace_period)
        case "kube-scheduler":
            flags = scheduler(state)
        case _:
            raise ValueError(f"{name!r} is not part of the control plane: {', '.join(NAMES)}")
    return [str(binaries / name), *flags]
