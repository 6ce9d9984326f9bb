"""examples/logs/collector.yaml in a real OpenTelemetry collector: lines of real daemons go in, and what comes out has the right fields.

The API server is made up, for of Kubernetes only the labels of pods matter. Where the collector is not built, which `make test-logs` does, they are
skipped.
"""

import json
import os
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from local import collector
from soperator.render.parts import labels

ROOT = Path(__file__).parents[2]
LINES = yaml.safe_load((Path(__file__).parent / "lines.yaml").read_text())
OPERATOR = (
    '{"time": "2026-11-22T09:58:00Z", "level": "warning", "message": "cannot take the lease", "key": "slurm/demo"}'
)
#: A line that the runtime has cut in two, and a pod of somebody else.
CUT = ["slurmstepd: [9.0] error: one", " and two"]

pytestmark = pytest.mark.skipif(collector.find() is None, reason="no collector: make test-logs builds it")


def uid(pod: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, pod))


def role(pod: str) -> str:
    return pod.split("-")[1]


def pod_labels(name: str) -> dict[str, str]:
    if not name.startswith("demo-"):
        return {"app.kubernetes.io/name": name.partition("-")[0]}
    if role(name) == "worker":
        return labels.worker("demo", "worker") | {labels.INDEX: name.rpartition("-")[2]}
    return labels.role("demo", role(name))


class Kubernetes(BaseHTTPRequestHandler):
    """Lists pods; a watch of them never says anything."""

    pods: ClassVar[tuple[str, ...]] = ()

    def do_GET(self) -> None:
        if "watch=" in self.path:
            self.send_error(422 if "sendInitialEvents" in self.path else 410)
            return
        metadata = [
            {"name": each, "namespace": "slurm", "uid": uid(each), "labels": pod_labels(each)} for each in self.pods
        ]
        items = [{"metadata": each, "spec": {"nodeName": "node-1"}, "status": {}} for each in metadata]
        body = json.dumps(
            {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class Backend(BaseHTTPRequestHandler):
    """Takes what the collector sends."""

    got: ClassVar[list[tuple[dict[str, Any], dict[str, Any]]]] = []

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for each in said["resourceLogs"]:
            resource = plain(each["resource"])
            self.got.extend((resource, record) for scope in each["scopeLogs"] for record in scope["logRecords"])
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def plain(said: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in said.get("attributes", ())}


def write(folder: Path, pod: str, container: str, lines: list[tuple[str, str]]) -> None:
    """As a kubelet lays them, in the runtime's format: time, stream, F for a full line and P for a part."""
    path = folder / f"slurm_{pod}_{uid(pod)}" / container / "0.log"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"2026-11-22T09:51:57.123456789Z stderr {kind} {line}\n" for kind, line in lines))


def serve(handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    made = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    return made


@pytest.fixture(scope="module")
def records(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[tuple[str, str, str], tuple[dict[str, Any], dict[str, Any]]]]:
    """Every record that came out, by pod, container and body."""
    root = tmp_path_factory.mktemp("collector")
    for pod, containers in LINES.items():
        for container, lines in containers.items():
            write(root / "pods", pod, container, [("F", each["line"]) for each in lines])
    write(root / "pods", "soperator-1", "operator", [("F", OPERATOR)])
    write(root / "pods", "demo-worker-1", "slurmd", [("P", CUT[0]), ("F", CUT[1])])
    write(root / "pods", "other-0", "main", [("F", "JobId=1 is no job of ours")])
    Kubernetes.pods = tuple({path.name.split("_")[1] for path in (root / "pods").iterdir()})
    wanted = sum(len(lines) for each in LINES.values() for lines in each.values()) + 3
    Backend.got.clear()
    api, backend = serve(Kubernetes), serve(Backend)
    running = start(root, api.server_port, backend.server_port)
    try:
        end = time.monotonic() + 60
        while len(Backend.got) < wanted and time.monotonic() < end and running.poll() is None:
            time.sleep(0.05)
        assert len(Backend.got) == wanted, (root / "log").read_text()[-3000:]
        yield {
            (resource["k8s.pod.name"], resource["k8s.container.name"], record["body"]["stringValue"]): (
                resource,
                record,
            )
            for resource, record in Backend.got
        }
    finally:
        running.terminate()
        running.wait()
        api.shutdown()
        backend.shutdown()


def start(root: Path, api: int, backend: int) -> "subprocess.Popen[bytes]":
    """The collector with the example's configuration; the test sets what a cluster would, and JSON, which Python reads."""
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{api}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    kubeconfig = {
        "clusters": [cluster],
        "contexts": [context],
        "current-context": "c",
        "users": [{"name": "u", "user": {}}],
    }
    (root / "kubeconfig").write_text(json.dumps(kubeconfig))
    own = {
        "exporters": {"otlphttp": {"encoding": "json", "compression": "none"}},
        "service": {"telemetry": {"metrics": {"level": "none"}}},
    }
    (root / "own.yaml").write_text(json.dumps(own))
    variables = {
        "PODS": f"{root}/pods",
        "AUTH_TYPE": "kubeConfig",
        "KUBECONFIG": f"{root}/kubeconfig",
        "K8S_NODE_NAME": "node-1",
        "OTLP_ENDPOINT": f"http://127.0.0.1:{backend}",
    }
    words = [
        str(collector.find()),
        "--config",
        str(ROOT / "examples/logs/collector.yaml"),
        "--config",
        str(root / "own.yaml"),
    ]
    with (root / "log").open("wb") as log:
        return subprocess.Popen(words, env=os.environ | variables, stdout=log, stderr=log)


CASES = [
    (pod, container, each)
    for pod, containers in LINES.items()
    for container, lines in containers.items()
    for each in lines
]


@pytest.mark.parametrize(("pod", "container", "case"), CASES, ids=[each[2]["line"][:60] for each in CASES])
def test_a_line_of_a_daemon_has_its_fields_and_stays_as_it_was(records, pod, container, case):
    """Cluster, role and node by the pod's labels; daemon, job, step and severity by the line."""
    resource, record = records[pod, container, case["line"]]
    fields = plain(record)
    assert (resource["slurm.cluster"], resource["slurm.role"]) == ("demo", role(pod))
    assert resource.get("slurm.node") == ("worker-0" if role(pod) == "worker" else None)
    assert fields["slurm.daemon"] == case.get("daemon", container)
    assert fields.get("slurm.job.id") == case.get("job")
    assert fields.get("slurm.step.id") == case.get("step")
    severity = case.get("severity", "info")
    numbers = {"info": 9, "note": 9, "warning": 13, "error": 17, "fatal": 21}
    assert (record["severityText"], record["severityNumber"]) == (severity, numbers[severity])
    assert int(record["timeUnixNano"]) % 10**9 == 123456789


def test_the_fields_of_our_own_lines_are_the_records(records):
    """The message is the body."""
    _, record = records["soperator-1", "operator", "cannot take the lease"]
    assert (record["severityText"], record["severityNumber"], plain(record)["key"]) == ("warning", 13, "slurm/demo")


def test_a_line_that_was_cut_is_one_again(records):
    """The runtime cuts after 16 KiB."""
    resource, record = records["demo-worker-1", "slurmd", "".join(CUT)]
    assert (resource["slurm.node"], plain(record)["slurm.job.id"]) == ("worker-1", "9")


def test_pods_of_others_pass_without_fields_of_ours(records):
    """Whatever their lines look like."""
    resource, record = records["other-0", "main", "JobId=1 is no job of ours"]
    assert not any(each.startswith("slurm.") for each in [*resource, *plain(record)])
    assert "severityNumber" not in record
