"""``python3 -m local.discovery STATE PORT``: serves the cluster's pods as targets to the local Prometheus.

Debian builds Prometheus without its Kubernetes service discovery. This server implements HTTP service discovery (`http_sd_configs`)
instead, with the labels of `kubernetes_sd_config` for the role pod, so that the same relabelling applies as on any cluster. Source:
Prometheus' configuration page, `kubernetes_sd_config` and `http_sd_config`.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from local.api import Api
from local.paths import State
from local.progress import Failure

_META = "__meta_kubernetes_"


def targets(pods: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return one target for each port of each container of the pods with an address, and one for a container without ports."""
    for pod in pods:
        address, spec = pod["status"].get("podIP"), pod["spec"]
        if not address:
            continue
        for kind in ("initContainers", "containers"):
            for container in spec.get(kind, ()):
                own = _of_pod(pod) | {f"{_META}pod_container_name": container["name"]}
                own[f"{_META}pod_container_init"] = str(kind == "initContainers").lower()
                ports: list[dict[str, Any]] = container.get("ports") or [{}]
                yield from (_target(address, port, own) for port in ports)


def _of_pod(pod: dict[str, Any]) -> dict[str, str]:
    meta, status = pod["metadata"], pod["status"]
    labels = {f"{_META}pod_label_{_plain(name)}": value for name, value in meta.get("labels", {}).items()}
    return labels | {
        f"{_META}namespace": meta["namespace"],
        f"{_META}pod_name": meta["name"],
        f"{_META}pod_node_name": pod["spec"].get("nodeName", ""),
        f"{_META}pod_phase": status.get("phase", ""),
    }


def _target(address: str, port: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    if not port:
        return {"targets": [address], "labels": labels}
    number = str(port["containerPort"])
    own = {f"{_META}pod_container_port_name": port.get("name", ""), f"{_META}pod_container_port_number": number}
    return {"targets": [f"{address}:{number}"], "labels": labels | own}


def _plain(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


def serve(api: Api, port: int) -> None:
    """Serve until a signal ends the process, on the loopback only."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                found = list(targets((api.get("/api/v1/pods") or {})["items"]))
            except (OSError, Failure) as error:  # Prometheus keeps what it was told last
                self.send_error(503, str(error))
                return
            body = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Suppress the log line of a request."""

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(Api(State(Path(sys.argv[1])).pki), int(sys.argv[2]))
