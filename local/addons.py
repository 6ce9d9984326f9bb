"""The objects without which a cluster is not useful: permissions for the clients of kubelets, and a DNS server.

CoreDNS is an ordinary Deployment. Its probes have short intervals and no delay, because a cluster for one test should not wait for its DNS.
"""

from typing import Any

from local.plan import DNS_SERVICE, DOMAIN

Object = dict[str, Any]

RBAC = "/apis/rbac.authorization.k8s.io/v1"
SYSTEM = "/api/v1/namespaces/kube-system"
DEPLOYMENTS = "/apis/apps/v1/namespaces/kube-system/deployments"
LABELS = {"k8s-app": "kube-dns"}
DNS_IMAGE = "localhost/soperator/coredns:1"
COREFILE = f"""\
.:53 {{
    errors
    health :8080
    ready :8181
    kubernetes {DOMAIN} in-addr.arpa ip6.arpa {{
        pods insecure
        ttl 5
    }}
    forward . /etc/resolv.conf {{
        max_concurrent 1000
    }}
    cache 5
    loop
    reload
    loadbalance
}}
"""


def binding(name: str, role: str, to: Object) -> Object:
    """Return a ClusterRoleBinding."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [to],
    }


def subject(kind: str, name: str) -> Object:
    """Return a subject: the ``User`` or the ``Group`` that a client certificate names."""
    return {"kind": kind, "apiGroup": "rbac.authorization.k8s.io", "name": name}


def role(name: str, *rules: Object) -> Object:
    """Return a ClusterRole."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": list(rules),
    }


def render_rights() -> list[tuple[str, Object]]:
    """Yield the path and the object of each permission that components need before they start.

    The API server is a client of kubelets (exec, logs); kube-proxy uses its Node's credentials; CoreDNS reads Services. Kubelets may read
    all claims, because the Node authorizer learns of a pod shortly after the pod's kubelet does, and a kubelet retries a refused request
    only after 10 to 15 s.
    """
    dns = role(
        "system:coredns",
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    )
    claims = role(
        "soperator-local:claims", {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["get"]}
    )
    apiserver = subject("User", "kube-apiserver-kubelet-client")
    account = {"kind": "ServiceAccount", "namespace": "kube-system", "name": "coredns"}
    bindings = f"{RBAC}/clusterrolebindings"
    return [
        (bindings, binding("soperator-local:exec", "system:kubelet-api-admin", apiserver)),
        (bindings, binding("soperator-local:kube-proxy", "system:node-proxier", subject("Group", "system:nodes"))),
        (f"{RBAC}/clusterroles", claims),
        (bindings, binding("soperator-local:claims", "soperator-local:claims", subject("Group", "system:nodes"))),
        (f"{RBAC}/clusterroles", dns),
        (bindings, binding("system:coredns", "system:coredns", account)),
    ]


def _container() -> Object:
    probe = {"timeoutSeconds": 5, "failureThreshold": 5, "successThreshold": 1}
    return {
        "name": "coredns",
        "image": DNS_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "30Mi"}, "limits": {"memory": "170Mi"}},
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "initialDelaySeconds": 60, **probe},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1, **probe},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }


def _deployment() -> Object:
    """Return the Deployment of CoreDNS: two replicas on different Nodes, so that names still resolve while one Node is off."""
    wait = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}
    pod = {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", **wait},
            {"key": "node.kubernetes.io/unreachable", **wait},
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": LABELS},
            }
        ],
        "containers": [_container()],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "coredns", "labels": LABELS},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": pod},
        },
    }


def render_dns() -> list[tuple[str, Object]]:
    """Return the path and the object of each part of CoreDNS."""
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]
    metadata = {"name": "coredns"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "labels": LABELS},
        "spec": {"clusterIP": str(DNS_SERVICE), "selector": LABELS, "ports": ports},
    }
    return [
        (f"{SYSTEM}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        (
            f"{SYSTEM}/configmaps",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"Corefile": COREFILE}},
        ),
        (f"{SYSTEM}/services", service),
        (DEPLOYMENTS, _deployment()),
    ]
