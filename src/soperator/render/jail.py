"""The jail: its claim, the Job that fills it once, and the plan by which a node mounts it.

A plan is data: an ordered list of mounts, each with the reason why it is there. The C helper in the pod executes exactly these lines
(docs/explain/pods.md has the format). No line writes to the shared root: what is private to a node is mounted over it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from soperator.api.common import Resources, Submount
from soperator.render import names, pod
from soperator.render.config import BUNDLE
from soperator.render.model import Cluster, Defaults, Object
from soperator.slurm.size import quantity

ROOT = f"{pod.JAIL}/root"


@dataclass(frozen=True)
class Mount:
    """One mount of the jail: kind and options as docs/explain/pods.md lists them."""

    kind: str
    source: str
    target: str
    options: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        """The line of the plan file."""
        return "\t".join((self.kind, self.source or "-", self.target, ",".join(self.options) or "-", self.why))


def mount_plan(role: str, submounts: Sequence[Submount], munge: bool, shm_size: str = "64Mi") -> list[Mount]:
    """The mounts of a `worker` or `login` pod, in the order in which they are made."""
    return [
        Mount("root", ROOT, "/", (), "the shared root"),
        Mount("proc", "", "/proc", ("nosuid", "nodev", "noexec"), "processes of this job"),
        Mount("sys", "/sys", "/sys", ("ro", "nosuid", "nodev", "noexec"), "the machine, read-only"),
        Mount("dev", "/dev", "/dev", (f"size={int(quantity(shm_size))}",), "devices of this pod, private /dev/shm"),
        Mount("tmpfs", "", "/run", ("nosuid", "nodev", "mode=755", "size=67108864"), "runtime files of this node"),
        Mount("bind", "/mnt/tmp", "/tmp", ("nosuid", "nodev"), "temporary files stay on this node"),
        Mount("bind", BUNDLE, BUNDLE, ("ro", "nodev"), "Slurm's commands and plugins, from the image"),
        Mount("bind", "/etc/resolv.conf", "/etc/resolv.conf", ("ro",), "names of this Kubernetes cluster"),
        Mount("bind", "/etc/hosts", "/etc/hosts", ("ro",), "this pod's own address"),
        Mount("bind", "/run/slurm", "/run/slurm", ("ro",), "configuration and socket of slurmd or sackd"),
        *([Mount("bind", "/run/munge", "/run/munge", (), "munged's socket")] if munge else []),
        *(_worker_mounts() if role == "worker" else _login_mounts()),
        *(_submount(number, each) for number, each in enumerate(_parents_first(submounts))),
    ]


def plan_text(mounts: Sequence[Mount]) -> str:
    """The plan file."""
    return "".join(f"{mount}\n" for mount in mounts)


def submount_volumes(submounts: Sequence[Submount]) -> tuple[list[Object], list[Object]]:
    """Volumes and volume mounts that bring submounts into the pod, where the plan picks them up."""
    volumes, mounts = [], []
    for number, each in enumerate(_parents_first(submounts)):
        if each.tmpfs:
            continue
        name = f"submount-{number}"
        volumes.append({"name": name, **_source(each)})
        sub_path = {"subPath": each.sub_path} if each.sub_path else {}
        mounts.append(pod.mount(name, f"/mnt/submounts/{number}", **sub_path))
    return volumes, mounts


def render_claim(cluster: Cluster) -> list[Object]:
    """The jail's claim where the spec names none. It has no owner: deleting the cluster keeps the users' files."""
    ref = cluster.spec.jail.claim
    if ref.name:
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
    if cluster.spec.jail.populate == "Never":
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
    context = {"runAsUser": 0, "runAsGroup": 0}
    return container | {"securityContext": context, "volumeMounts": mounts}


def _worker_mounts() -> list[Mount]:
    """What slurmd shares with a job. Its copy of the configuration names plugins that it loads outside the jail, so no root of a job may write it."""
    spool, conf = "/var/spool/slurmd", "/var/spool/slurmd/conf-cache"
    return [
        Mount("bind", spool, spool, ("nosuid", "nodev"), "batch scripts, which slurmd writes here"),
        Mount("bind", conf, conf, ("ro", "nosuid", "nodev"), "slurmd's configuration"),
    ]


def _login_mounts() -> list[Mount]:
    return [
        Mount(
            "tmpfs",
            "",
            "/run/sshd",
            ("nosuid", "nodev", "noexec", "mode=755", "size=65536"),
            "where sshd locks itself up",
        ),
        Mount("bind", "/etc/soperator/ssh", "/run/soperator/ssh", ("ro",), "configuration of sshd"),
        Mount(
            "bind", "/run/soperator/hostkeys", "/run/soperator/hostkeys", ("ro",), "host keys of sshd, for root alone"
        ),
        Mount(
            "bind", "/etc/soperator/ssh/soperator-sshd.pam", "/etc/pam.d/soperator-sshd", ("ro",), "what sshd asks PAM"
        ),
    ]


def _submount(number: int, each: Submount) -> Mount:
    options = ("ro",) if each.read_only else ()
    if each.tmpfs:
        size = f"size={int(quantity(each.tmpfs.size))}"
        return Mount("tmpfs", "", each.path, (*options, "nosuid", "nodev", "mode=1777", size), "submount")
    return Mount("rbind", f"/mnt/submounts/{number}", each.path, options, "submount")


def _source(each: Submount) -> Object:
    if each.claim:
        return {"persistentVolumeClaim": {"claimName": each.claim}}
    if each.host_path:
        return {"hostPath": {"path": each.host_path.path}}
    return dict(each.volume or {})


def _parents_first(submounts: Sequence[Submount]) -> list[Submount]:
    return sorted(submounts, key=lambda each: each.path.rstrip("/").split("/"))
