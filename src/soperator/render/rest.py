"""slurmrestd, by which the operator sees Slurm's nodes and drains them. It answers nobody without a token."""

from soperator.render import labels, names, pod
from soperator.render.model import Cluster, Defaults, Object


def render_rest(cluster: Cluster, defaults: Defaults, generation: str = "") -> list[Object]:
    """The Deployment and the Service of slurmrestd, which starts anew when slurmctld runs with another generation."""
    return [_deployment(cluster, defaults, generation), _service(cluster)]


def url(namespace: str, cluster: str) -> str:
    """The URL of slurmrestd inside the Kubernetes cluster."""
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
            "template": {
                "metadata": {"labels": selector, "annotations": {labels.CONFIG: generation}},
                "spec": _pod(cluster, defaults),
            },
        },
    }


def _pod(cluster: Cluster, defaults: Defaults) -> Object:
    image = pod.slurm_image(cluster, defaults)
    container = pod.container(cluster, "slurmrestd", image, cluster.spec.rest.resources) | {
        "args": ["slurmrestd"],
        "ports": [{"name": "rest", "containerPort": names.REST_PORT}],
        "securityContext": pod.unprivileged(pod.REST_UID),
        "volumeMounts": [pod.mount("config", "/etc/slurm", readOnly=True)],
        "startupProbe": pod.tcp_probe(names.REST_PORT, 1, 120),
        "readinessProbe": pod.tcp_probe(names.REST_PORT, 2, 5),
    }
    return pod.base(cluster, defaults, cluster.spec.rest.scheduling) | {
        # It waits for idle connections to close, and holds nothing worth waiting for.
        "terminationGracePeriodSeconds": 5,
        "containers": [container],
        "volumes": [pod.config_map("config", names.config(cluster.name))],
    }


def _service(cluster: Cluster) -> Object:
    port = {"name": "rest", "port": names.REST_PORT, "targetPort": names.REST_PORT}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pod.metadata(cluster, names.rest(cluster.name), "rest"),
        "spec": {"selector": labels.role(cluster.name, "rest"), "ports": [port]},
    }
