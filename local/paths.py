"""Where things lie: what a cluster may forget (the state), and what makes the next start fast (the cache)."""

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
        """Held by a command that changes the cluster."""
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
        """What hostPath volumes of the demo hold: it belongs to the cluster's objects and goes with them."""
        return self.root / "storage"

    @property
    def records(self) -> Path:
        """One JSON file per running process, and what must be put back at the end."""
        return self.root / "records"

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.root / "logs"

    @property
    def audit_log(self) -> Path:
        """Every request to the API server, one JSON object a line."""
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
    """Let one command at a time pass; the lock goes with the process that holds it, however it ends."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another command to let go of {file}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
