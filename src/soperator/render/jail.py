"""The jail's claim, and the Job that fills it once. How a node mounts the jail is the mount plan's (`plan`)."""

from soperator.api.common import Resources
from soperator.render import names, pod, rights
from soperator.render.model import Cluster, Defaults, Object


def render_claim(cluster: Cluster) -> list[Object]:
    """The jail's claim where the spec names none. It has no owner: deleting the cluster keeps the users' files."""
    ref = cluster.spec.jail.claim
    if ref.name or cluster.spec.jail.per_node:
        return []
    return [_claim(cluster, names.jail_claim(cluster.name), "ReadWriteMany", owned=False)]


def jail_claim(cluster: Cluster) -> str:
    """The name of the claim with the jail."""
    return cluster.spec.jail.claim.name or names.jail_claim(cluster.name)


def _claim(cluster: Cluster, name: str, mode: str, owned: bool) -> Object:
    ref = cluster.spec.jail.claim if mode == "ReadWriteMany" else cluster.spec.controller.state
    spec: Object = {"accessModes": [mode], "resources": {"requests": {"storage": ref.size}}}
    if ref.storage_class_name:
        spec["storageClassName"] = ref.storage_class_name
    meta = pod.metadata(cluster, name, "storage", owned)
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def render_state_claim(cluster: Cluster) -> list[Object]:
    """The claim of slurmctld's state where the spec names none."""
    if cluster.spec.controller.state.name:
        return []
    return [_claim(cluster, names.state_claim(cluster.name), "ReadWriteOnce", owned=True)]


def render_populate(cluster: Cluster, defaults: Defaults) -> list[Object]:
    """The Job that fills an empty jail and seals it; it finds out by itself that there is nothing to do."""
    if not cluster.spec.jail.has_job:
        return []
    return [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": pod.metadata(cluster, names.populate(cluster.name), "populate"),
            "spec": {
                "backoffLimit": 3,
                "template": {
                    "metadata": {"labels": _populate_labels(cluster)},
                    "spec": _populate_pod(cluster, defaults),
                },
            },
        }
    ]


def _populate_labels(cluster: Cluster) -> dict[str, str]:
    labels: dict[str, str] = pod.metadata(cluster, "", "populate")["labels"]
    return labels


def _populate_pod(cluster: Cluster, defaults: Defaults) -> Object:
    agent = cluster.spec.images.populate or defaults.populate
    jail = cluster.spec.jail.image or defaults.jail
    script = pod.mount("script", "/soperator")
    claim = pod.mount("jail", pod.JAIL)
    spec = pod.base(cluster, defaults, cluster.spec.login.scheduling) | {
        "restartPolicy": "OnFailure",
        "hostUsers": not cluster.spec.security.user_namespace,
        "initContainers": [
            _as_root(pod.container(cluster, "script", agent, Resources()), [script])
            | {"command": ["cp", "/usr/share/soperator/copy.sh", "/soperator/copy.sh"]},
            _as_root(pod.container(cluster, "copy", jail, Resources()), [script, claim])
            | {"command": ["sh", "/soperator/copy.sh"]},
        ],
        "containers": [
            _as_root(pod.container(cluster, "seal", agent, Resources()), [claim])
            | {
                "command": ["python3", "-m", "soperator.agents.populate", "seal", "--claim", pod.JAIL],
                "env": pod.env(SOPERATOR_JAIL_IMAGE=jail),
            }
        ],
        "volumes": [pod.claim("jail", jail_claim(cluster)), pod.empty("script")],
    }
    spec.pop("subdomain")
    return spec


def _as_root(container: Object, mounts: list[Object]) -> Object:
    return container | {"securityContext": pod.file_maker(*rights.POPULATE), "volumeMounts": mounts}
