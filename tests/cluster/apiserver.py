"""A kube-apiserver with its etcd, alone on the loopback, for tests that need its schemas, CEL and defaulting but no Nodes.

It starts in a few seconds from the binaries that `make cluster` built, keeps everything in one temporary folder, and ends with the
test session by the process ids that it started.
"""

import json
import secrets
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from local import binaries as local_binaries


def binaries() -> Path | None:
    """The folder with etcd and kube-apiserver, or None where nothing was built."""
    folder = local_binaries.folder()
    return folder if (folder / "kube-apiserver").exists() and (folder / "etcd").exists() else None


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nothing listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextmanager
def running(folder: Path, programs: Path) -> Iterator[Path]:
    """An API server for the length of the block; gives the path of a kubeconfig with all rights."""
    client, peer, port = free_ports(3)
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f'{token},tester,tester,"system:masters"\n')
    subprocess.run(["openssl", "genrsa", "-out", str(folder / "sa.key"), "2048"], check=True, capture_output=True)
    etcd = _start(folder, "etcd", _etcd(programs, folder, client, peer))
    server = _start(folder, "kube-apiserver", _apiserver(programs, folder, client, port))
    try:
        _wait(f"https://127.0.0.1:{port}/readyz", token, server, folder / "kube-apiserver.log")
        yield _kubeconfig(folder, port, token)
    finally:
        for process in (server, etcd):  # nothing of theirs is worth an orderly end
            process.kill()
            process.wait()


def _start(folder: Path, name: str, command: list[str]) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)


def _etcd(programs: Path, folder: Path, client: int, peer: int) -> list[str]:
    here, there = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    return [
        f"{programs}/etcd",
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls={here}",
        f"--advertise-client-urls={here}",
        f"--listen-peer-urls={there}",
        f"--initial-advertise-peer-urls={there}",
        f"--initial-cluster=default={there}",
        "--unsafe-no-fsync",
        "--log-level=error",
    ]


def _apiserver(programs: Path, folder: Path, client: int, port: int) -> list[str]:
    return [
        f"{programs}/kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{client}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}/certs",
        f"--token-auth-file={folder}/tokens.csv",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://tests",
        f"--service-account-key-file={folder}/sa.key",
        f"--service-account-signing-key-file={folder}/sa.key",
        "--disable-admission-plugins=ServiceAccount",
    ]


def _wait(url: str, token: str, process: subprocess.Popen[bytes], log: Path) -> None:
    context = ssl._create_unverified_context()
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        with suppress(OSError, urllib.error.HTTPError), urllib.request.urlopen(request, timeout=5, context=context):
            return
        time.sleep(0.3)
    raise RuntimeError(f"kube-apiserver did not become ready; the end of its log:\n{log.read_text()[-2000:]}")


def _kubeconfig(folder: Path, port: int, token: str) -> Path:
    path = folder / "kubeconfig"
    cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    path.write_text(json.dumps(config))
    return path
