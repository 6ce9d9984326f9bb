"""Mount points that a jail may lack, and the Job that creates them.

A mount needs an existing folder. The populate Job creates the folders that every node needs. The path of a submount is the author's choice, and a
node must not write to the shared root. So one Job creates the paths of the specs that may not exist, before any pod mounts them (decision 17). An
annotation of the Job lists its paths, so that a spec with fewer paths needs no new Job.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from soperator.api.common import Resources, Submount
from soperator.render.jail import claims as jail_claims
from soperator.render.jail import submounts
from soperator.render.jail.mount_plan import (
    ROOT,
    Mount,
    holder,
    login_plan,
    worker_plan,
)
from soperator.render.parts import labels, names, pod
from soperator.render.parts.model import (
    Cluster,
    Defaults,
    NodeSet,
    Object,
)
from soperator.render.parts.strategic_merge import strategic

#: Mount points that the populate Job creates (`soperator.agents.populate`); a person who fills the jail by other means creates them too.
MADE = (
    *("/dev", "/proc", "/sys", "/run", "/tmp", "/mnt", "/home", "/opt/soperator", "/var/spool/slurmd", "/var/tmp"),
    *("/etc/hosts", "/etc/resolv.conf", "/etc/pam.d/soperator-sshd"),
)
CLAIMS = "/mnt/claims"


@dataclass(frozen=True, order=True)
class Point:
    """A mount point in the format of `soperator.agents.mountpoints`: `path` below `base` in the Job's pod, `target` in the jail."""

    base: str
    path: str
    target: str

    @property
    def key(self) -> str:
        """A short name that depends only on the path."""
        return hashlib.sha256(f"{self.base} {self.path}".encode()).hexdigest()[:8]


def points(cluster: Cluster, nodesets: Sequence[NodeSet]) -> list[Point]:
    """Return the mount points that the plans need on shared storage and that the populate Job does not create."""
    return [each for each in _points(cluster, nodesets) if each.base != ROOT or not cluster.spec.jail.per_node]


def own_points(cluster: Cluster, nodesets: Sequence[NodeSet]) -> list[Point]:
    """Return the mount points that a pod creates in its own root."""
    return [each for each in _points(cluster, nodesets) if each.base == ROOT and cluster.spec.jail.per_node]


def _points(cluster: Cluster, nodesets: Sequence[NodeSet]) -> list[Point]:
    plans = [(login_plan(cluster), submounts.of_login(cluster))]
    plans += [(worker_plan(cluster, each), submounts.of_worker(cluster, each)) for each in nodesets]
    return sorted({point for plan, placed in plans for point in _of_plan(plan, placed)})


def keys(needed: Sequence[Point]) -> frozenset[str]:
    """Return the annotation of a Job for these points: the Job has created them if its own annotation contains them all."""
    return frozenset(each.key for each in needed)


def render_mount_points(
    cluster: Cluster, nodesets: Sequence[NodeSet], defaults: Defaults, fill: str = ""
) -> list[Object]:
    """Return the Job that creates the plans' mount points; none if they need none. `fill` identifies the fill of the jail that the Job changes."""
    needed = points(cluster, nodesets)
    if not needed:
        return []
    meta = pod.metadata(cluster, names.mount_points(cluster.name), "mount-points")
    meta["annotations"] = {labels.POINTS: " ".join(sorted(keys(needed))), labels.FILL: fill}
    template = {
        "metadata": {"labels": meta["labels"], "annotations": meta["annotations"]},
        "spec": _pod(cluster, needed, defaults),
    }
    spec = {"backoffLimit": 2, "template": strategic(template, cluster.spec.jail.pod_template)}
    return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}]


def _is_ours(submount: Submount) -> bool:
    """Return whether mount points can be created beforehand in a mount: not if it is read-only or new for each job."""
    return bool(submount.claim_name) and not submount.read_only and not submount.per_job


def _of_plan(plan: Sequence[Mount], placed: Sequence[submounts.NumberedSubmount]) -> list[Point]:
    """Return the points of one plan that the populate Job does not create: in the shared root, or in a claim that users may write to."""
    claims = {each.submount.path: each for each in placed if _is_ours(each.submount)}
    found = []
    for number, each in enumerate(plan):
        if number == 0 or not each.is_mount or each.target in MADE:
            continue
        under = holder(plan[:number], each.target)
        if under.kind == "root":
            found.append(Point(ROOT, each.target.removeprefix("/"), each.target))
        elif under.target in claims:
            above = claims[under.target].submount
            inside = [above.sub_path.strip("/"), each.target.removeprefix(f"{under.target}/")]
            found.append(Point(f"{CLAIMS}/{above.claim_name}", "/".join(filter(None, inside)), each.target))
    return found


def _pod(cluster: Cluster, needed: Sequence[Point], defaults: Defaults) -> Object:
    agent = cluster.spec.images.agents or defaults.agents
    claims = sorted({each.base.removeprefix(f"{CLAIMS}/") for each in needed if each.base != ROOT})
    made = pod.container(cluster, "mount-points", agent, Resources()) | {
        "command": ["python3", "-m", "soperator.agents.mountpoints", json.dumps([asdict(each) for each in needed])],
        "securityContext": pod.file_maker("DAC_OVERRIDE"),
        "volumeMounts": [
            *([] if cluster.spec.jail.per_node else [pod.mount("jail", pod.JAIL)]),
            *(pod.mount(f"claim-{number}", f"{CLAIMS}/{claim}") for number, claim in enumerate(claims)),
        ],
    }
    spec = pod.base(cluster, defaults, cluster.spec.login.scheduling) | {
        "restartPolicy": "Never",
        "hostUsers": not cluster.spec.security.user_namespace,
        "containers": [made],
        "volumes": [
            *([] if cluster.spec.jail.per_node else [pod.claim("jail", jail_claims.jail_claim(cluster))]),
            *(pod.claim(f"claim-{number}", claim) for number, claim in enumerate(claims)),
        ],
    }
    spec.pop("subdomain")
    return spec
