"""An API server with its etcd on the loopback, without controllers and Nodes, so that every change is the operator's."""

import json
import os
import secrets
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from local import binaries, controlplane
from local.progress import Failure

OPERATOR, ADMIN, KWOK, SIMULATION = "operator", "admin", "kwok", "simulation"


@dataclass(frozen=True)
class Plane:
    """A running API server; each user has its own kubeconfig, so that the audit log distinguishes the users."""

    folder: Path
    kubectl: Path

    @property
    def audit_log(self) -> Path:
        """The audit log: every request, one JSON object a line."""
        return self.folder / "audit.log"

    def kubeconfig(self, user: str) -> Path:
        """Return the kubeconfig of one of the users above."""
        return self.folder / f"{user}.kubeconfig"

    def run(self, *words: str, stdin: str | None = None) -> str:
        """Return what kubectl printed for the administrator."""
        env = os.environ | {"KUBECONFIG": str(self.kubeconfig(ADMIN)), "HOME": str(self.folder)}
        done = subprocess.run([self.kubectl, *words], input=stdin, capture_output=True, text=True, env=env, check=False)
        if done.returncode:
            raise Failure(f"kubectl {' '.join(words[:4])} ended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def free_port() -> int:
    """Return a port of the loopback on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(folder: Path) -> Iterator[Plane]:
    """Run an API server within the block."""
    programs = binaries.folder()
    client, peer, port = free_port(), free_port(), free_port()
    tokens = {user: secrets.token_hex(16) for user in (OPERATOR, ADMIN, KWOK, SIMULATION)}
    plane = Plane(folder, programs / "kubectl")
    _write_files(plane, tokens, port)
    commands = {
        "etcd": _etcd(programs, folder, client, peer),
        "kube-apiserver": _apiserver(programs, plane, client, port),
    }
    processes = [start(folder, name, command) for name, command in commands.items()]
    try:
        wait(f"https://127.0.0.1:{port}/readyz", processes[1], tokens[ADMIN])
        yield plane
    finally:
        for process in reversed(processes):
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Stop a process that we started."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait(url: str, process: subprocess.Popen[bytes], token: str = "") -> None:
    """Return as soon as the URL answers 200; raises Failure if the process ends or a minute has passed."""
    context = ssl._create_unverified_context()  # the server's certificate is its own
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        with suppress(OSError), urllib.request.urlopen(request, timeout=5, context=context):
            return
        time.sleep(0.005)
    raise Failure(f"{url} does not answer; pid {process.pid}, exit code {process.poll()}")


def start(folder: Path, name: str, command: list[str], env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a program whose output goes to NAME.log in the folder."""
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, env=env)


def _write_files(plane: Plane, tokens: Mapping[str, str], port: int) -> None:
    lines = [f'{token},{user},{user},"system:masters"\n' for user, token in tokens.items()]
    (plane.folder / "tokens.csv").write_text("".join(lines))
    (plane.folder / "audit-policy.yaml").write_text(controlplane.render_audit_policy())
    subprocess.run(["openssl", "genrsa", "-out", plane.folder / "sa.key", "2048"], check=True, capture_output=True)
    for user, token in tokens.items():
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "alone",
                    "cluster": {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True},
                }
            ],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "alone", "context": {"cluster": "alone", "user": user}}],
            "current-context": "alone",
        }
        plane.kubeconfig(user).write_text(json.dumps(config))


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


def _apiserver(programs: Path, plane: Plane, client: int, port: int) -> list[str]:
    folder = plane.folder
    return [
        f"{programs}/kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{client}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}/certs",
        f"--token-auth-file={folder}/tokens.csv",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://bench",
        f"--service-account-key-file={folder}/sa.key",
        f"--service-account-signing-key-file={folder}/sa.key",
        "--disable-admission-plugins=ServiceAccount",
        f"--audit-policy-file={folder}/audit-policy.yaml",
        f"--audit-log-path={plane.audit_log}",
    ]
