"""The environment of a scenario: an API server with Nodes, KWOK and the fakes, and the operator, within a block."""

import http.client
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from local import binaries
from local.bench import alone, audit, plane
from local.bench.plane import Plane
from local.bench.scale import kwok
from local.paths import REPOSITORY
from local.progress import Failure

Object = dict[str, Any]
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_S, _IDLE_S = 0.25, 20.0
#: Seconds after which a scene that does not come is a failure, with what was seen last: less than `local.rotate` has for the whole bench.
PATIENCE_S = 240.0
OPERATOR = "local.bench.scale.operator"
#: Where the simulation answers for every slurmrestd: an address of the loopback of its own, for the port is the Services'.
SIMULATION = "127.83.76.82"


@dataclass(frozen=True)
class Meter:
    """The operator's use so far: CPU seconds, and the time of the reading."""

    cpu: float
    at: float


class Stage:
    """The API server with the administrator's credentials, and the operator's process on the machine."""

    def __init__(self, server: Plane, pid: int, players: Sequence[subprocess.Popen[bytes]]) -> None:
        self.server, self.pid, self._players = server, pid, players
        config = json.loads(server.kubeconfig(plane.ADMIN).read_text())
        self._token = config["users"][0]["user"]["token"]
        address = urlsplit(config["clusters"][0]["cluster"]["server"]).netloc
        context = ssl._create_unverified_context()  # the server's certificate is its own
        self._connection = http.client.HTTPSConnection(address, timeout=60, context=context)
        self._asked = 0.0

    def send(self, verb: str, path: str, body: Object | None = None, kind: str = "application/json") -> Object:
        """Send one request and return the response; raises Failure if the server refuses it."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        if time.monotonic() - self._asked > _IDLE_S:
            self._connection.close()  # the server may have done so too
        self._asked = time.monotonic()
        self._connection.request(verb, path, body=json.dumps(body) if body else None, headers=headers)
        response = self._connection.getresponse()
        text = response.read()
        if response.status >= 300:
            raise Failure(f"{verb} {path}: {response.status} {text[:300]!r}")
        answer: Object = json.loads(text)
        return answer

    def wait(self, what: str, path: str, holds: Callable[[Object], bool], patience: float = PATIENCE_S) -> Object:
        """Read an object until `holds` is true for it, and return the object."""
        until = time.monotonic() + patience
        while not holds(current := self.send("GET", path)):
            self.check()
            if time.monotonic() > until:
                raise Failure(f"{what}: not after {patience:.0f} s: {json.dumps(current)[-1500:]}")
            time.sleep(_LOOK_S)
        return current

    def check(self) -> None:
        """Raise Failure if a process of the stage has ended."""
        if ended := next((each for each in self._players if each.poll() is not None), None):
            logs = [self.server.folder / f"{name}.log" for name in ("operator", "simulation", "kwok")]
            config = "\n".join(f"{log.name}: {log.read_text()[-800:]}" for log in logs)
            raise Failure(f"{ended.args!r} has ended with {ended.returncode}:\n{config}")

    def read(self) -> Meter:
        """Read the operator's CPU time."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return Meter((int(fields[11]) + int(fields[12])) / _TICKS, time.time())

    def peak(self) -> float:
        """Return the operator's peak resident memory so far, in MiB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    def requests(self, since: float) -> list[audit.Request]:
        """Return the operator's requests since a time, from the API server's audit log."""
        return audit.requests(audit.tail(self.server.audit_log, 0), plane.OPERATOR, since)


@contextmanager
def stage(nodes: int) -> Iterator[Stage]:
    """Run a stage with the given number of Nodes, all Ready."""
    with tempfile.TemporaryDirectory(prefix="soperator-scale-") as name, plane.running(Path(name)) as server:
        alone.install(server)
        with (
            _players(server) as players,
            alone.operator(server, OPERATOR, SOPERATOR_BENCH_SIMULATION=SIMULATION) as operator,
        ):
            made = Stage(server, operator.process.pid, [*players, operator.process])
            for number in range(nodes):
                made.send("POST", "/api/v1/nodes", {"kind": "Node", "metadata": {"name": f"node-{number}"}})
            made.wait("Nodes are ready", "/api/v1/nodes", lambda current: all(map(_is_ready, current["items"])))
            time.sleep(3.0)
            yield made


@contextmanager
def _players(server: Plane) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run KWOK and the fakes of `simulation`."""
    folder = server.folder
    command = kwok.command(binaries.folder() / "kwok", server.kubeconfig(plane.KWOK), folder)
    path = f"{REPOSITORY}:{REPOSITORY / 'src'}"
    env = os.environ | {"KUBECONFIG": str(server.kubeconfig(plane.SIMULATION)), "PYTHONPATH": path}
    words = [sys.executable, "-m", "local.bench.scale.simulation", SIMULATION]
    players = [plane.start(folder, "kwok", command), plane.start(folder, "simulation", words, env)]
    try:
        yield players
    finally:
        for player in players:
            plane.end(player)


def _is_ready(node: Object) -> bool:
    found = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in found)
