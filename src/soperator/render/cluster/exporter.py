"""The exporter of a cluster, if its spec has one; it reads slurmrestd, and has no rights in Kubernetes or Slurm.

The key that signs tokens makes its owner root in Slurm, so the container that answers HTTP and reads users' texts does not have it. A second
container has the key; it does not listen on the network, and writes tokens that live a few minutes (agents/tokens). The tokens are for slurmrestd's
own user, which has the view of an ordinary user.

slurmrestd does not know the users of the jail, whose names are labels. A separate container reads them, and has only the jail.
"""

from soperator.api.common import Resources
from soperator.api.fields.change import seconds
from soperator.api.fields.metrics import ExporterSpec
from soperator.checks.node_plan import SILENCE
from soperator.render.cluster import slurmrestd
from soperator.render.cluster.keys import REST_FILE
from soperator.render.cluster.network import policy, scraped
from soperator.render.cluster.slurmctld import USERS, identity, users_volumes
from soperator.render.jail import per_node_root
from soperator.render.parts import labels, names, pod
from soperator.render.parts.model import Cluster, Defaults, Object
from soperator.render.parts.strategic_merge import strategic
from soperator.slurm.conf import settings

ROLE = "exporter"
_TOKEN = f"{pod.PRIVATE}/token"
_PYTHON = ("python3", "-m")
#: Seconds between two reads of the jail's users; until then a new user appears as a uid.
_EVERY = "10"


def render_exporter(cluster: Cluster, defaults: Defaults) -> list[Object]:
    """Return the Deployment, the Service and the NetworkPolicy; empty without an exporter."""
    if cluster.spec.metrics.exporter is None:
        return []
    selector = labels.role(cluster.name, ROLE)
    wall = policy(cluster, names.exporter(cluster.name), selector, scraped(cluster, names.METRICS_PORT))
    return [_deployment(cluster, defaults), _service(cluster), wall]


def _spec(cluster: Cluster) -> ExporterSpec:
    return cluster.spec.metrics.exporter or ExporterSpec()


def _deployment(cluster: Cluster, defaults: Defaults) -> Object:
    selector = labels.role(cluster.name, ROLE)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": pod.metadata(cluster, names.exporter(cluster.name), ROLE),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},  # two would count everything twice
            "selector": {"matchLabels": selector},
            "template": strategic(
                {"metadata": {"labels": labels.recommended(selector)}, "spec": _pod(cluster, defaults)},
                _spec(cluster).pod_template,
            ),
        },
    }


def _pod(cluster: Cluster, defaults: Defaults) -> Object:
    said = _spec(cluster)
    return pod.reads_secrets(pod.leaving_lost_nodes(pod.base(cluster, defaults, said.scheduling))) | {
        "terminationGracePeriodSeconds": 5,
        "initContainers": [
            *per_node_root.users_of_the_image(cluster, defaults),
            identity(cluster, defaults, _EVERY),
            _signer(cluster, defaults),
        ],
        "containers": [_exporter(cluster, defaults)],
        "volumes": [
            *users_volumes(cluster),
            pod.keys(names.jwt_key(cluster.name)),
            pod.empty("token", medium="Memory", sizeLimit="1Mi"),
        ],
    }


def _signer(cluster: Cluster, defaults: Defaults) -> Object:
    """Return the container with the key; the exporter starts when a token exists."""
    command = ["soperator.agents.tokens", "--key", f"{pod.KEYS}/{REST_FILE}", "--user", _user(cluster), "--to", _TOKEN]
    return pod.container(cluster, "token", _image(cluster, defaults), Resources()) | {
        "restartPolicy": "Always",
        "command": [*_PYTHON, *command],
        "securityContext": pod.unprivileged(pod.AGENT_UID),
        "volumeMounts": [pod.mount("keys", pod.KEYS, readOnly=True), pod.mount("token", pod.PRIVATE)],
        "startupProbe": {"exec": {"command": ["test", "-s", _TOKEN]}, "periodSeconds": 1, "failureThreshold": 120},
    }


def _exporter(cluster: Cluster, defaults: Defaults) -> Object:
    said = _spec(cluster)
    probe = {"httpGet": {"path": "/healthz", "port": "http"}, "timeoutSeconds": 5}
    command = [
        *("soperator.agents.exporter", "--slurmrestd", slurmrestd.url(cluster.namespace, cluster.name)),
        *("--cluster", cluster.name, "--user", _user(cluster), "--token", _TOKEN, "--port", str(names.METRICS_PORT)),
        *("--users", f"{USERS}/passwd", "--silence", f"{SILENCE * seconds(cluster.spec.health.interval):.0f}"),
    ]
    options = [*([] if said.nodes else ["--no-nodes"]), *(["--private"] if _is_private(cluster) else [])]
    return pod.container(cluster, "exporter", _image(cluster, defaults), said.resources) | {
        "command": [*_PYTHON, *command, *options],
        "ports": [{"name": "http", "containerPort": names.METRICS_PORT}],
        "securityContext": pod.unprivileged(pod.AGENT_UID),
        "volumeMounts": [pod.mount("token", pod.PRIVATE, readOnly=True), pod.mount("users", USERS, readOnly=True)],
        "readinessProbe": probe | {"periodSeconds": 5},
        "livenessProbe": probe | {"periodSeconds": 10, "failureThreshold": 6},
    }


def _image(cluster: Cluster, defaults: Defaults) -> str:
    """Return the agents' image, which is the operator's own image."""
    return cluster.spec.images.agents or defaults.agents


def _user(cluster: Cluster) -> str:
    """Return the user of the token: SlurmUser if Slurm hides other users' jobs, because the exporter counts all jobs."""
    return "slurm" if _is_private(cluster) else "slurmrest"


def _is_private(cluster: Cluster) -> bool:
    return any(each.key.lower() == "privatedata" for each in settings(cluster.spec.config.extra_lines.slurm))


def _service(cluster: Cluster) -> Object:
    port = {"name": "http", "port": names.METRICS_PORT, "targetPort": "http"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pod.metadata(cluster, names.exporter(cluster.name), ROLE),
        "spec": {"selector": labels.role(cluster.name, ROLE), "ports": [port]},
    }
