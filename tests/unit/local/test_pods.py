"""A container's processes are found by its id, and a spoiled port answers as it was told to."""

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from local.pods import container_id, processes
from local.progress import Failure
from local.spoil import handler, rules

IDENTITY = "c0ffee" * 8


class OnePod:
    """An API server with one pod."""

    def get(self, path: str) -> dict[str, Any] | None:
        running = {"name": "slurmctld", "containerID": f"containerd://{IDENTITY}", "state": {"running": {}}}
        ended = {"name": "own-state", "containerID": "containerd://gone", "state": {"terminated": {}}}
        found = {"status": {"containerStatuses": [running], "initContainerStatuses": [ended]}}
        return found if path == "/api/v1/namespaces/slurm/pods/demo-controller-0" else None


def test_a_container_is_found_by_pod_and_name() -> None:
    """Its id is what the container runtime calls it."""
    assert container_id(OnePod(), "slurm/demo-controller-0", "slurmctld") == IDENTITY  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pod", "container"), [("slurm/nobody", "slurmctld"), ("slurm/demo-controller-0", "own-state")]
)
def test_what_does_not_run_is_told(pod: str, container: str) -> None:
    """A pod that is not there, and a container that has ended, are named."""
    with pytest.raises(Failure, match=r"nobody|own-state.*its running containers: slurmctld"):
        container_id(OnePod(), pod, container)  # type: ignore[arg-type]


def test_processes_are_those_of_the_cgroup(tmp_path: Path) -> None:
    """Those of other containers are left alone, and so is one that ended meanwhile."""
    for pid, group in (("7", f"0::/soperator/node-1/kubepods/pod1/{IDENTITY}\n"), ("8", "0::/soperator/node-1\n")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_text(group)
    (tmp_path / "9").mkdir()
    (tmp_path / "9" / "cgroup").mkdir()
    assert processes(IDENTITY, tmp_path) == [7]


class Service(BaseHTTPRequestHandler):
    """What is behind the spoiled port: it says what it was asked."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.end_headers()
        self.wfile.write(f"{self.path} {self.headers['X-Token']} {body.decode()}".encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(kind: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """A server on some port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(port: int) -> tuple[int, str]:
    """What is answered to a request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("POST", "/slurm/nodes", "body", {"X-Token": "t"})
    answer = connection.getresponse()
    said = answer.status, answer.read().decode()
    connection.close()
    return said


@pytest.mark.parametrize(("status", "said"), [(0, (201, "/slurm/nodes t body")), (500, (500, "spoiled on purpose\n"))])
def test_a_spoiled_port_answers_late_and_as_the_service_does_or_with_an_error(
    status: int, said: tuple[int, str]
) -> None:
    """Verb, path, headers and body reach the service, where its own answer is wanted."""
    with serving(Service) as service:
        spoiler = handler(service, 0.1, status)
        spoiler.log_message = Service.log_message  # type: ignore[method-assign]
        with serving(spoiler) as port:
            began = time.monotonic()
            assert ask(port) == said
            assert time.monotonic() - began >= 0.1


def test_the_rules_turn_new_connections_to_us_and_reset_old_ones() -> None:
    """Loopback, by which we ask the service itself, is left alone."""
    text = rules(6820)
    assert 'iifname != "lo" tcp dport 6820 redirect to :7820' in text
    assert 'iifname != "lo" tcp dport 6820 reject with tcp reset' in text
