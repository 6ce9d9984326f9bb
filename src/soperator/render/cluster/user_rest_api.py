"""slurmrestd for users, separate from the operator's, so that load by users cannot block the operator.

slurmrestd listens only on its pod's loopback and has no key: slurmctld verifies each token. nginx in front of it terminates TLS, refuses requests
without a token, and limits slow and large requests (images/proxy). Kubernetes stops nginx first, so that slurmrestd answers pending requests.
"""

from soperator.api.common import Resources
from soperator.render.cluster.network import exposed, policy
from soperator.render.cluster.slurmrestd import slurmrestd
from soperator.render.parts import labels, names, pod
from soperator.render.parts.model import Cluster, Defaults, Object
from soperator.render.parts.strategic_merge import strategic
from soperator.render.slurm_conf.slurm_conf import LONGEST
from soperator.slurm.settings.state import ConfigState

ROLE = "rest-users"
_TLS = "/etc/soperator/tls"


def render_rest_users(cluster: Cluster, defaults: Defaults, state: ConfigState | None = None) -> list[Object]:
    """Return the Deployment, the Service, the NetworkPolicy and the PodDisruptionBudget; empty if users' REST is off.

    The operator creates them when slurmctld's configuration limits the tokens of `scontrol token`; they restart with each new configuration.
    """
    if cluster.spec.rest.users is None or (state is not None and LONGEST not in state.fixed):
        return []
    deployment = _deployment(cluster, defaults, state.generation if state else "")
    return [deployment, _service(cluster), _policy(cluster), _budget(cluster)]


def _deployment(cluster: Cluster, defaults: Defaults, generation: str) -> Object:
    selector = labels.role(cluster.name, ROLE)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": pod.metadata(cluster, names.rest_users(cluster.name), ROLE),
        "spec": {
            "replicas": cluster.spec.rest.users_or_default.replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "selector": {"matchLabels": selector},
            "template": strategic(
                {
                    "metadata": {"labels": labels.recommended(selector), "annotations": {labels.CONFIG: generation}},
                    "spec": _pod(cluster, defaults),
                },
                cluster.spec.rest.users_or_default.pod_template,
            ),
        },
    }


def _pod(cluster: Cluster, defaults: Defaults) -> Object:
    said = cluster.spec.rest.users_or_default
    volumes = [pod.config_map("config", names.config(cluster.name)), pod.empty("proxy", sizeLimit="2Gi")]
    plugins = "slurmctld,slurmdbd" if cluster.accounted else "slurmctld"
    spec = pod.leaving_lost_nodes(pod.base(cluster, defaults, said.scheduling))
    if said.tls.secret_name:
        volumes.append({"name": "tls", "secret": {"secretName": said.tls.secret_name, "defaultMode": pod.GROUP_READS}})
        # By fsGroup, because slurmrestd exits when it has group 0; no volume of this pod is the jail or another claim.
        spec = spec | {"securityContext": spec["securityContext"] | {"fsGroup": pod.PROXY_UID}}
    return spec | {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels.role(cluster.name, ROLE)},
            }
        ],
        "terminationGracePeriodSeconds": 60,
        "initContainers": [slurmrestd(cluster, defaults, names.REST_PORT, said.resources, plugins)],
        "containers": [_proxy(cluster, defaults)],
        "volumes": volumes,
    }


def _proxy(cluster: Cluster, defaults: Defaults) -> Object:
    is_tls = bool(cluster.spec.rest.users_or_default.tls.secret_name)
    image = cluster.spec.images.proxy or defaults.proxy
    ready = {"httpGet": {"path": "/readyz", "port": names.REST_READY_PORT}, "timeoutSeconds": 6}
    return pod.container(cluster, "proxy", image, Resources()) | {
        "env": pod.env(SOPERATOR_TLS=str(is_tls).lower()),
        "ports": [{"name": "rest", "containerPort": names.REST_USERS_PORT}],
        "securityContext": pod.unprivileged(pod.PROXY_UID),
        "volumeMounts": [
            pod.mount("proxy", "/run/proxy"),
            *([pod.mount("tls", _TLS, readOnly=True)] if is_tls else []),
        ],
        "startupProbe": ready | {"periodSeconds": 1, "failureThreshold": 120},
        "readinessProbe": ready | {"periodSeconds": 10, "failureThreshold": 2},
        "livenessProbe": pod.tcp_probe(names.REST_USERS_PORT, 10, 6),
    }


def _service(cluster: Cluster) -> Object:
    said = cluster.spec.rest.users_or_default
    port = {"name": "https" if said.tls.secret_name else "http", "targetPort": "rest"}
    return exposed(cluster, names.rest_users(cluster.name), ROLE, said.service, port)


def _policy(cluster: Cluster) -> Object:
    """Return the admitted peers; clients from outside Kubernetes reach the Service with any address."""
    said = cluster.spec.rest.users_or_default
    peers = [*said.allow_from] or ([{"namespaceSelector": {}}] if said.service.type == "ClusterIP" else [])
    rule: Object = {"ports": [{"port": names.REST_USERS_PORT, "protocol": "TCP"}]}
    selector = labels.role(cluster.name, ROLE)
    return policy(cluster, names.rest_users(cluster.name), selector, rule | ({"from": peers} if peers else {}))


def _budget(cluster: Cluster) -> Object:
    """Return the PodDisruptionBudget that allows the eviction of one pod at a time, also of a single one, because its successor starts within
    seconds.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": pod.metadata(cluster, names.rest_users(cluster.name), ROLE),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels.role(cluster.name, ROLE)}},
    }
