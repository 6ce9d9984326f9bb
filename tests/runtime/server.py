"""A real kube-apiserver and etcd of the test's own, on loopback ports and in a temporary folder.

Compaction is off except when a test asks for it, and the watch cache is off for ConfigMaps, so that watches on them are
etcd's own and expire exactly when etcd is compacted.
"""

import json
import os
import socket
import ssl
import subprocess
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from soperator.kube.api import Api
from soperator.kube.watch import Timing

ADMIN, GUEST = "admin-token", "guest-token"


def find_binaries() -> Path | None:
    """Return the newest folder with kube-apiserver and etcd in the cache, or None."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "soperator" / "bin"
    folders = [path.parent for path in cache.glob("*/kube-apiserver") if (path.parent / "etcd").exists()]
    return max(folders, key=lambda path: path.stat().st_mtime, default=None)


def free_port() -> int:
    """Return a loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def client(url: str, token: str = ADMIN) -> httpx2.AsyncClient:
    """Return an HTTP client with a token; the server's certificate is its own."""
    return httpx2.AsyncClient(base_url=url, verify=False, trust_env=False, headers={"Authorization": f"Bearer {token}"})


@dataclass
class ControlPlane:
    """The two processes; `port` is the API server's."""

    binaries: Path
    folder: Path
    port: int = field(default_factory=free_port)
    etcd_port: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"https://127.0.0.1:{self.port}"

    def api(self, port: int | None = None, timing: Timing | None = None, token: str = ADMIN) -> Api:
        """Return a client, by way of another port if given."""
        return Api(client(f"https://127.0.0.1:{port or self.port}", token), timing=timing)

    def start(self) -> None:
        """Start both and wait until the API server is ready."""
        self._spawn(
            "etcd",
            f"--data-dir={self.folder}/etcd",
            f"--listen-client-urls=http://127.0.0.1:{self.etcd_port}",
            f"--advertise-client-urls=http://127.0.0.1:{self.etcd_port}",
            f"--listen-peer-urls=http://127.0.0.1:{free_port()}",
            "--unsafe-no-fsync=true",
        )
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f'{ADMIN},admin,1,"system:masters"\n{GUEST},guest,2,"system:authenticated"\n')
        key = self.folder / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        self.start_apiserver()

    def start_apiserver(self) -> None:
        """Start the API server and wait until it is ready."""
        self._spawn(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--etcd-compaction-interval=0",
            "--watch-cache-sizes=configmaps#0",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder}/certs",
            f"--token-auth-file={self.folder}/tokens.csv",
            "--authorization-mode=AlwaysAllow",
            "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://tests",
            f"--service-account-key-file={self.folder}/sa.key",
            f"--service-account-signing-key-file={self.folder}/sa.key",
            "--shutdown-delay-duration=0s",
            "--endpoint-reconciler-type=none",
        )
        self._wait_ready()

    def stop_apiserver(self) -> None:
        """Kill the API server, as a crash would."""
        process = self.processes.pop("kube-apiserver")
        process.kill()
        process.wait()

    def start_collector(self) -> None:
        """Start a kube-controller-manager that does nothing but collect garbage."""
        conf = self.folder / "kubeconfig"
        conf.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
            f"clusters: [{{name: c, cluster: {{server: '{self.url}', insecure-skip-tls-verify: true}}}}]\n"
            f"users: [{{name: u, user: {{token: {ADMIN}}}}}]\n"
            "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
        )
        self._spawn(
            "kube-controller-manager",
            f"--kubeconfig={conf}",
            "--controllers=garbage-collector-controller",
            "--leader-elect=false",
            "--secure-port=0",
        )

    def stop_process(self, name: str) -> None:
        """Kill one of the processes."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Kill what runs."""
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()

    def compact(self) -> None:
        """Make etcd forget all history."""
        latest = self._etcd("kv/range", {"key": "AA=="})["header"]["revision"]
        self._etcd("kv/compaction", {"revision": latest, "physical": True})

    def log(self, name: str) -> str:
        """Return the end of a process's log."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]

    def _etcd(self, call: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.etcd_port}/v3/{call}", json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=5) as response:
            answer: dict[str, dict[str, str]] = json.load(response)
            return answer

    def _spawn(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen([self.binaries / name, *arguments], stdout=log, stderr=log)

    def _wait_ready(self) -> None:
        trust = ssl._create_unverified_context()
        request = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {ADMIN}"})
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}:\n{self.log(name)}")
            try:
                with urllib.request.urlopen(request, timeout=5, context=trust):
                    return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"the API server is not ready after 60 s:\n{self.log('kube-apiserver')}")
