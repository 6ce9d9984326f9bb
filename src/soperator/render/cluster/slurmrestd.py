"""The slurmrestd through which the operator reads and drains Slurm's nodes.

It listens only on its pod's loopback, behind nginx (images/proxy/operator.conf): slurmrestd has 124 connections and keeps idle ones, so every client
that reaches it could block the operator, and not every cluster's network enforces NetworkPolicies (docs/decisions/0099).
"""

from soperator.api.common import Resources
from soperator.render.parts import labels, names, pod
from soperator.render.parts.model import Cluster, Defaults, Object
from soperator.render.parts.strategic_merge import strategic


def render_rest(cluster: Cluster, defaults: Defaults, generation: str = "") -> list[Object]:
    """Return the Deployment and the Service of slurmrestd, which restarts when slurmctld runs with another generation."""
    return [_deployment(cluster, defaults, generation), _service(cluster)]


def url(namespace: str, cluster: str) -> str:
    """Return the URL of slurmrestd inside the Kubernetes cluster."""
    return f"http://{names.rest(cluster)}.{namespace}.svc:{names.REST_PORT}"


def _deployment(cluster: Cluster, defaults: Defaults, generation: str) -> Object:
    selector = labels.role(cluster.name, "rest")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": pod.metadata(cluster, names.rest(cluster.name), "rest"),
        "spec": {
            "replicas": cluster.spec.rest.replicas,
            "selector": {"matchLabels": selector},
            "template": strategic(
                {
                    "metadata": {"labels": labels.recommended(selector), "annotations": {labels.CONFIG: generation}},
                    "spec": _pod(cluster, defaults),
                },
                cluster.spec.rest.pod_template,
            ),
        },
    }


def _pod(cluster: Cluster, defaults: Defaults) -> Object:
    return pod.leaving_lost_nodes(pod.base(cluster, defaults, cluster.spec.rest.scheduling)) | {
        # It would wait for idle connections to close, which is not worth the time.
        "terminationGracePeriodSeconds": 5,
        "initContainers": [slurmrestd(cluster, defaults, names.REST_LOCAL_PORT, cluster.spec.rest.resources)],
        "containers": [_proxy(cluster, defaults)],
        "volumes": [pod.config_map("config", names.config(cluster.name)), pod.empty("proxy", sizeLimit="2Gi")],
    }


def slurmrestd(cluster: Cluster, defaults: Defaults, port: int, resources: Resources, plugins: str = "") -> Object:
    """Return the sidecar with slurmrestd on the pod's loopback; the readiness probe of nginx reaches through to slurmrestd."""
    probe = {"exec": {"command": ["bash", "-c", f": < /dev/tcp/127.0.0.1/{port}"]}, "timeoutSeconds": 5}
    return pod.container(cluster, "slurmrestd", pod.slurm_image(cluster, defaults), resources) | {
        "restartPolicy": "Always",
        "args": ["slurmrestd"],
        "env": pod.env(SOPERATOR_LISTEN=f"127.0.0.1:{port}", **({"SOPERATOR_REST": plugins} if plugins else {})),
        "securityContext": pod.unprivileged(pod.REST_UID),
        "volumeMounts": [pod.mount("config", "/etc/slurm", readOnly=True)],
        "startupProbe": probe | {"periodSeconds": 1, "failureThreshold": 120},
        "livenessProbe": probe | {"periodSeconds": 20, "failureThreshold": 6},
    }


def _proxy(cluster: Cluster, defaults: Defaults) -> Object:
    ready = {"httpGet": {"path": "/readyz", "port": names.REST_READY_PORT}, "timeoutSeconds": 6}
    return pod.container(cluster, "proxy", cluster.spec.images.proxy or defaults.proxy, Resources()) | {
        "args": ["operator"],
        "ports": [{"name": "rest", "containerPort": names.REST_PORT}],
        "securityContext": pod.unprivileged(pod.PROXY_UID),
        "volumeMounts": [pod.mount("proxy", "/run/proxy")],
        "startupProbe": ready | {"periodSeconds": 1, "failureThreshold": 120},
        "readinessProbe": ready | {"periodSeconds": 5, "failureThreshold": 3},
        "livenessProbe": pod.tcp_probe(names.REST_READY_PORT, 10, 6),
    }


def _service(cluster: Cluster) -> Object:
    port = {"name": "rest", "port": names.REST_PORT, "targetPort": names.REST_PORT}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pod.metadata(cluster, names.rest(cluster.name), "rest"),
        "spec": {"selector": labels.role(cluster.name, "rest"), "ports": [port]},
    }
