"""The Job that fills the jail, and executes requests to repair or replace it.

Each attempt is a separate pod, so that the log of a failed attempt stays readable. A pod is created only after the former one has ended, because two
must not write to one claim. An evicted pod does not count as an attempt, and a refusal that no retry can solve ends the Job at once.
"""

import hashlib
import json

from soperator.api.common import Resources
from soperator.api.slurmcluster import Refill
from soperator.render.jail.claims import jail_claim
from soperator.render.parts import (
    capabilities,
    labels,
    names,
    pod,
)
from soperator.render.parts.model import Cluster, Defaults, Object
from soperator.render.parts.strategic_merge import strategic

#: How copy.sh and seal end where another attempt will not fare better.
FINAL = 65


def jail_image(cluster: Cluster, defaults: Defaults) -> str:
    """Return the image that fills the jail."""
    return cluster.spec.jail.image or defaults.jail


def request(cluster: Cluster, carried_out: str) -> Refill:
    """Return the request that is not complete; empty if the present request is complete."""
    refill = cluster.spec.jail.refill
    return Refill() if refill.request == carried_out else refill


def render_populate(cluster: Cluster, defaults: Defaults, carried_out: str = "") -> list[Object]:
    """Return the Job for the present request, or without one for a claim that may be empty; the Job itself detects a filled claim."""
    if not cluster.spec.jail.has_job:
        return []
    asked = request(cluster, carried_out)
    spec: Object = {
        "backoffLimit": 6,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [FINAL]}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]
        },
        "template": strategic(
            {"metadata": {"labels": _labels(cluster)}, "spec": _pod(cluster, defaults, asked)},
            cluster.spec.jail.pod_template,
        ),
    }
    meta = pod.metadata(cluster, names.populate(cluster.name), "populate")
    meta["annotations"] = {
        labels.TEMPLATE: hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16],
        labels.IMAGE: jail_image(cluster, defaults),
        **({labels.REQUEST: asked.request, labels.MODE: asked.mode} if asked.request else {}),
    }
    return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}]


def _labels(cluster: Cluster) -> dict[str, str]:
    return labels.role(cluster.name, "populate")


def _pod(cluster: Cluster, defaults: Defaults, asked: Refill) -> Object:
    agent, jail = cluster.spec.images.agents or defaults.agents, jail_image(cluster, defaults)
    script, claim = pod.mount("script", "/soperator"), pod.mount("jail", pod.JAIL)
    said = {"SOPERATOR_JAIL_IMAGE": jail}
    if asked.request:
        said |= {"SOPERATOR_REQUEST": asked.request, "SOPERATOR_MODE": asked.mode}
    keep = [word for path in asked.keep for word in ("--keep", path)] if asked.mode == "Overwrite" else []
    spec = pod.base(cluster, defaults, cluster.spec.login.scheduling) | {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,  # its steps are safe to be killed at any point
        "hostUsers": not cluster.spec.security.user_namespace,
        "initContainers": [
            _as_root(pod.container(cluster, "script", agent, Resources()), [script])
            | {"command": ["cp", "-r", "/usr/share/soperator/.", "/soperator"]},
            _as_root(pod.container(cluster, "copy", jail, Resources()), [script, claim])
            | {"command": ["sh", "/soperator/copy.sh"], "env": pod.env(**said)},
        ],
        "containers": [
            _as_root(pod.container(cluster, "seal", agent, Resources()), [claim])
            | {
                "command": ["python3", "-m", "soperator.agents.populate", "seal", "--claim", pod.JAIL, *keep],
                "env": pod.env(**said),
            }
        ],
        "volumes": [pod.claim("jail", jail_claim(cluster)), pod.empty("script", sizeLimit=pod.SMALL)],
    }
    spec.pop("subdomain")
    return spec


def _as_root(container: Object, mounts: list[Object]) -> Object:
    return container | {"securityContext": pod.file_maker(*capabilities.POPULATE), "volumeMounts": mounts}
