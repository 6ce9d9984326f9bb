"""The simulated parts of a Kubernetes cluster: `python -m local.bench.scale.simulation ADDRESS`.

It assigns pods to Nodes in turn, and gives each StatefulSet and Deployment of a cluster one pod and reports it as ready. The slurmrestd of
every cluster answers at ADDRESS, on the port of its Service: `local.bench.scale.operator` directs the operator's process to it, and the
Host header of a request names the cluster. A worker registers with its cluster's Slurm when its pod is ready.
"""

import asyncio
import json
import sys
import time
from collections import deque
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from local.bench.scale.slurm import Slurm
from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.errors import Conflict, NotFound
from soperator.kube.kinds import Kind
from soperator.kube.transport import Call
from soperator.kube.views import Custom, Meta, Pod
from soperator.render.parts import labels, names
from soperator.runtime.cache.informer import Informer, InformerSource
from soperator.runtime.cache.store import Changed, Store

_OURS = f"{labels.MANAGED_BY}={labels.MANAGER}"
_AT_ONCE = 8


class Town:
    """The simulated components; `free` are the Nodes in the order in which they receive pods."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._slurm: dict[tuple[str, str], Slurm] = {}
        self._free: deque[str] = deque()
        self._waiting: asyncio.Queue[Pod] = asyncio.Queue()
        self._bound: set[str] = set()
        self._made: set[str] = set()
        self._group = asyncio.TaskGroup()

    async def run(self, address: str) -> None:
        """Run until cancelled."""
        pods: Store[Pod] = Store()
        nodes: Store[Meta] = Store()
        reading = Informer(self._api, InformerSource(kinds.NODE, Meta), nodes)
        reading.listen(self._see_node)
        watching = Informer(self._api, InformerSource(kinds.POD, Pod, None, _OURS), pods)
        watching.listen(self._see)
        others = [self._workloads(kind) for kind in (kinds.STATEFULSET, kinds.DEPLOYMENT)]
        server = await asyncio.start_server(self._serve, address, names.REST_PORT)
        async with server, self._group as group:
            for keep in (reading.run, watching.run, *(each.run for each in others)):
                group.create_task(keep())
            for _ in range(_AT_ONCE):
                group.create_task(self._bind())

    def _workloads(self, kind: Kind) -> Informer[Custom]:
        found = Informer(self._api, InformerSource(kind, Custom, None, _OURS), Store())
        found.listen(lambda change: self._start(kind, change.new) if change.new else None)
        return found

    def _see_node(self, change: Changed[Meta]) -> None:
        if change.new and not change.old:
            self._free.append(change.new.metadata.name)

    def _see(self, change: Changed[Pod]) -> None:
        pod = change.new
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        if not pod.spec.node_name and pod.metadata.uid not in self._bound:
            self._bound.add(pod.metadata.uid)
            self._waiting.put_nowait(pod)
        elif labels.NODESET in pod.metadata.labels and any(
            each.type == "Ready" and each.status == "True" for each in pod.status.conditions
        ):
            self.slurm(pod.metadata.namespace, pod.metadata.labels[labels.CLUSTER]).register(
                pod.spec.hostname, time.time()
            )

    def slurm(self, namespace: str, cluster: str) -> Slurm:
        """Return the fake Slurm of a cluster."""
        return self._slurm.setdefault((namespace, cluster), Slurm(changed=int(time.time())))

    async def _bind(self) -> None:
        """Assign pods to Nodes, as the scheduler does."""
        while True:
            meta = (await self._waiting.get()).metadata
            node = self._free[0]
            self._free.rotate(-1)
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta.name}, "target": {"name": node}}
            path = kinds.POD.path(meta.namespace, meta.name, "binding")
            headers = {"Content-Type": "application/json"}
            with suppress(NotFound, Conflict):
                await self._api.transport.send(
                    Call("create", kinds.POD, "POST", path, {}, json.dumps(body).encode(), headers)
                )

    def _start(self, kind: Kind, workload: Custom) -> None:
        if workload.metadata.uid not in self._made:
            self._made.add(workload.metadata.uid)
            self._group.create_task(self._run(kind, workload))

    async def _run(self, kind: Kind, workload: Custom) -> None:
        """Create the pod of a StatefulSet or Deployment with one replica, as its controller does."""
        meta, template = workload.metadata, json.loads(bytes(workload.spec))["template"]
        name = {"name": f"{meta.name}-0", "namespace": meta.namespace}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"] | name, "spec": template["spec"]}
        pod["metadata"].pop("creationTimestamp", None)
        await self._api.create(kinds.POD, pod)
        body: dict[str, Any] = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "status": {"replicas": 1, "readyReplicas": 1, "observedGeneration": meta.generation},
        }
        await self._api.apply_status(kind, body)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                status, text = self._answer(head[0], fields["host"], body)
                writer.write(b"HTTP/1.1 %d said\r\nContent-Length: %d\r\n\r\n" % (status, len(text)) + text)
                await writer.drain()
        writer.close()

    def _answer(self, line: str, host: str, body: bytes) -> tuple[int, bytes]:
        verb, target, _ = line.split(" ")
        url = urlsplit(target)
        service, namespace, _ = host.partition(":")[0].split(".")
        slurm = self.slurm(namespace, service.removesuffix("-rest"))
        parser, path = url.path.removeprefix("/slurm/").split("/", 1)
        if path == "ping/":
            return (200 if parser == "v0.0.42" else 404), b"{}"
        return slurm.answer(verb, path, dict(parse_qsl(url.query)), json.loads(body or b"{}"), time.time())


async def _main(address: str) -> None:
    async with Api.connect(user_agent="simulation", field_manager="simulation") as api:
        await Town(api).run(address)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
