"""The folders of the local cluster: the state, which may be deleted, and the cache, which makes the next start fast."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.progress import say

REPOSITORY = Path(__file__).resolve().parent.parent
GO_SOURCES = Path(__file__).resolve().parent / "go"
DEFAULT_STATE = REPOSITORY / ".local"


def cache() -> Path:
    """Return the folder that survives ``down`` and that ``clean`` removes."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "soperator"


@dataclass(frozen=True)
class State:
    """The files of one running cluster, all under ``root``."""

    root: Path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's credentials (group system:masters)."""
        return self.root / "kubeconfig"

    @property
    def env(self) -> Path:
        """Lines for a shell to source: KUBECONFIG and PATH."""
        return self.root / "env"

    @property
    def lock(self) -> Path:
        """The lock of commands that change the cluster."""
        return self.root / "lock"

    @property
    def pki(self) -> Path:
        """Keys and certificates, kept from one start to the next."""
        return self.root / "pki"

    @property
    def etcd(self) -> Path:
        """The cluster's objects; gone after ``down``."""
        return self.root / "etcd"

    @property
    def config(self) -> Path:
        """Rendered configuration files of the control plane."""
        return self.root / "config"

    @property
    def storage(self) -> Path:
        """The content of the demo's hostPath volumes; it is deleted with the cluster's objects."""
        return self.root / "storage"

    @property
    def records(self) -> Path:
        """One JSON file per running process, and the settings to restore at the end."""
        return self.root / "records"

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.root / "logs"

    @property
    def audit_log(self) -> Path:
        """The audit log: every request to the API server, one JSON object a line."""
        return self.root / "audit.log"

    def node(self, name: str) -> Path:
        """Return the folder of one Node: its rendered configuration, its kubelet's directory, its /var/log."""
        return self.root / "nodes" / name

    def log(self, component: str) -> Path:
        """Return the log of one component (``node-1/kubelet`` lies in a folder of its own)."""
        return self.logs / f"{component}.log"


def image_store(node: str) -> Path:
    """Return the folder that is the Node's /var/lib/containerd: its images, kept while the cluster is down."""
    return cache() / "nodes" / node


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold a lock, so that one command runs at a time; the kernel releases it when the process ends."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting until another command releases {file}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
