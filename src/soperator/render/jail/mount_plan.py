"""The mount plan: the mounts of a login or worker node for the jail, in order, each with its purpose.

A plan is data: an ordered list of mounts that follows from the specs of the cluster and the NodeSet. The C helper in the pod executes exactly these
lines and verifies the result; `soperator explain jail` prints them; nothing else mounts anything into the jail (docs/explain/jail.md). Two rules hold
for every plan, and have tests: a folder is mounted before the mounts inside it, and no line needs a write to the shared root, because everything
private to a node is mounted over it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soperator.api.common import Submount
from soperator.render.jail import gpu_driver, gres, submounts
from soperator.render.parts import pod, sssd
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.parts.paths import BUNDLE
from soperator.slurm.quantity import quantity

ROOT = f"{pod.JAIL}/root"

_SPOOL = "/var/spool/slurmd"
_LOGIN_SHM = "64Mi"
_KNOWN_HOSTS = "/run/soperator/known_hosts"
_CONTAINERS = "/run/soperator/containers"


@dataclass(frozen=True)
class Mount:
    """One mount of the jail: kind and options as docs/explain/pods.md lists them; `why` is its purpose, for people."""

    kind: str
    source: str
    target: str
    options: tuple[str, ...]
    why: str

    @property
    def is_mount(self) -> bool:
        """Whether the line is a mount; other lines are properties of the job's view."""
        return self.kind not in ("gpus", "path")

    def __str__(self) -> str:
        """Return the line of the plan file."""
        return "\t".join((self.kind, self.source or "-", self.target, ",".join(self.options) or "-", self.why))


_JOBS_TMP = Mount("scratch", "/mnt/tmp", "/tmp", ("nosuid", "nodev"), "temporary files of one job, gone with it")
#: An emptyDir is writable for every uid, without the sticky bit: a user could replace munged's socket by his own, and slurmd would trust it.
#: connect(2) needs no writable mount.
_MUNGE = Mount("bind", "/run/munge", "/run/munge", ("ro", "nosuid", "nodev", "noexec"), "munged's socket")
_NODES_TMP = Mount("bind", "/mnt/tmp", "/tmp", ("nosuid", "nodev"), "temporary files stay on this node")
#: slurmstepd makes the cgroups of a step from inside the jail. They belong to root, so that no ordinary user writes them.
_CGROUPS = Mount(
    "bind", "/sys/fs/cgroup", "/sys/fs/cgroup", ("nosuid", "nodev", "noexec"), "cgroups of this node's jobs"
)


def worker_plan(cluster: Cluster, nodeset: NodeSet) -> list[Mount]:
    """Return the mounts of a NodeSet's nodes, in mount order."""
    own = [*_base(cluster, nodeset.spec.shm_size, _JOBS_TMP), *_worker(cluster), *_gpus(nodeset), *_driver(nodeset)]
    return _with(own, submounts.of_worker(cluster, nodeset), cluster)


def login_plan(cluster: Cluster) -> list[Mount]:
    """Return the mounts of a login node, in mount order."""
    own = [*_base(cluster, _LOGIN_SHM, _NODES_TMP), *_login()]
    return _with(own, submounts.of_login(cluster), cluster)


def text(mounts: Iterable[Mount]) -> str:
    """Return the plan file."""
    return "".join(f"{mount}\n" for mount in mounts)


def short(*texts: str) -> str:
    """Return a short hash of the texts; a new hash means a new plan and new pods."""
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


def holder(mounts: Sequence[Mount], target: str) -> Mount:
    """Return the mount that contains a path of the jail: the deepest one above it."""
    above = [each for each in mounts if each.is_mount and is_below(target, each.target)]
    return max(above, key=lambda each: len(each.target.rstrip("/")))


def is_below(path: str, above: str) -> bool:
    """Return whether a path is below another one; no path is below itself."""
    return path != above and path.startswith(above.rstrip("/") + "/")


def _with(own: Sequence[Mount], placed: Sequence[submounts.NumberedSubmount], cluster: Cluster) -> list[Mount]:
    """Return the node's own mounts, followed by the submounts; a submount may replace /tmp."""
    taken = {each.submount.path for each in placed}
    return [
        *(each for each in own if each.target not in taken or not each.is_mount),
        *(_submount(each, cluster) for each in placed),
    ]


def _sssd() -> Mount:
    why = "SSSD's sockets, for users of the directory"
    return Mount("bind", sssd.PIPES, sssd.PIPES, ("ro", "nosuid", "nodev", "noexec"), why)


def _base(cluster: Cluster, shm_size: str, tmp: Mount) -> list[Mount]:
    munge = cluster.spec.auth.type == "munge"
    return [
        Mount("root", ROOT, "/", (), "a root of this node's own" if cluster.spec.jail.per_node else "the shared root"),
        Mount("proc", "", "/proc", ("nosuid", "nodev", "noexec"), "processes of this job"),
        Mount("sys", "/sys", "/sys", ("ro", "nosuid", "nodev", "noexec"), "the machine, read-only"),
        Mount("dev", "/dev", "/dev", (f"size={int(quantity(shm_size))}",), "devices of this pod, private /dev/shm"),
        Mount("tmpfs", "", "/run", ("nosuid", "nodev", "mode=755", "size=67108864"), "runtime files of this node"),
        tmp,
        Mount("bind", BUNDLE, BUNDLE, ("ro", "nodev"), "Slurm's commands and plugins, from the image"),
        Mount("bind", "/etc/resolv.conf", "/etc/resolv.conf", ("ro",), "names of this Kubernetes cluster"),
        Mount("bind", "/etc/hosts", "/etc/hosts", ("ro",), "this pod's own address"),
        Mount("bind", "/run/slurm", "/run/slurm", ("ro",), "configuration and socket of slurmd or sackd"),
        Mount("bind", _KNOWN_HOSTS, _KNOWN_HOSTS, ("ro", "optional"), "by which ssh knows the cluster's nodes"),
        *([_sssd()] if sssd.is_used(cluster) else []),
        *([_MUNGE] if munge else []),
    ]


def _worker(cluster: Cluster) -> list[Mount]:
    """Return the mounts that slurmd shares with a job.

    Its copy of the configuration names plugins that it loads outside the jail, so a job's root must not be able to write it.
    """
    conf = f"{_SPOOL}/conf-cache"
    return [
        Mount("bind", _SPOOL, _SPOOL, ("nosuid", "nodev"), "batch scripts, which slurmd writes here"),
        Mount("bind", conf, conf, ("ro", "nosuid", "nodev"), "slurmd's configuration"),
        Mount(
            "bind",
            "/mnt/tmp/containers",
            _CONTAINERS,
            ("nosuid", "nodev"),
            "images of containers, unpacked once on this node",
        ),
        *([_CGROUPS] if cluster.spec.jobs.limits == "Cgroup" else []),
    ]


def _gpus(nodeset: NodeSet) -> list[Mount]:
    """Return the lines for devices that a job's /dev has only if Slurm allocated them to the job; the number at the end of the name identifies
    each.
    """
    pattern = gres.DEVICES.get(nodeset.spec.gpu.vendor)
    return [Mount("gpus", pattern, "/dev", (), "of the pod's GPUs those of the job")] if pattern else []


def _driver(nodeset: NodeSet) -> list[Mount]:
    if not gpu_driver.has_driver(nodeset.spec):
        return []
    why = f"GPU driver of this node, {gpu_driver.described(nodeset.spec)}"
    return [
        Mount("rbind", gpu_driver.GATHERED, gpu_driver.TARGET, ("ro", "nosuid", "nodev"), why),
        Mount(
            "path", "LD_LIBRARY_PATH", f"{gpu_driver.TARGET}/lib", (), "before a driver that somebody put into the jail"
        ),
        Mount("path", "PATH", f"{gpu_driver.TARGET}/bin", ("last",), "tools of the driver"),
    ]


def _login() -> list[Mount]:
    small = ("nosuid", "nodev", "noexec", "mode=755", "size=65536")
    pam, keys = "/etc/soperator/ssh/soperator-sshd.pam", "/run/soperator/hostkeys"
    return [
        Mount("tmpfs", "", "/run/sshd", small, "where sshd locks itself up"),
        Mount("bind", "/etc/soperator/ssh", "/run/soperator/ssh", ("ro",), "configuration of sshd"),
        Mount("bind", keys, keys, ("ro",), "host keys of sshd, for root alone"),
        Mount("bind", pam, "/etc/pam.d/soperator-sshd", ("ro",), "what sshd asks PAM"),
    ]


def _submount(placed: submounts.NumberedSubmount, cluster: Cluster) -> Mount:
    each: Submount = placed.submount
    options = ("ro",) if each.read_only else ()
    why = f"submount of {placed.owner}: {submounts.described(each)}"
    if each.tmpfs:
        size = f"size={int(quantity(each.tmpfs.size))}"
        return Mount("tmpfs", "", each.path, (*options, "nosuid", "nodev", "mode=1777", size), why)
    if each.per_job:
        own = ("nosuid", "nodev", f"owner={_owner(cluster)}")
        return Mount("scratch", placed.folder, each.path, own, f"{why}, a folder for each job")
    # Others write to a folder of the Node too, and their setuid bits must have no effect in the jail.
    if each.host_path or "hostPath" in (each.volume or {}):
        options = (*options, "nosuid")
    return Mount("rbind", placed.folder, each.path, (*options, "nodev"), why)


def _owner(cluster: Cluster) -> str:
    """Return the owner of jobs' folders on shared storage: ids of jobs repeat in other clusters, the UID of the cluster does not."""
    return f"{cluster.name}.{cluster.uid}" if cluster.uid else cluster.name
