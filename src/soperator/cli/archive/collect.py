"""Collects the contents of a support archive: objects, events, logs, Slurm's files and answers, the operator's metrics, and the explanations.

A part that cannot be read adds a line to errors.txt, and the others are collected: people need an archive when something is broken. The
size and the number of logs are limited, so that the archive of a cluster with a thousand nodes has tens of megabytes.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from soperator.cli.archive.redaction import clean_object
from soperator.cli.support.errors import CliError
from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.errors import ApiError, KubeError
from soperator.kube.kinds import Kind
from soperator.kube.objects import Secret
from soperator.kube.transport import Call
from soperator.kube.views import Custom

if TYPE_CHECKING:
    from soperator.reconcile.io.slurm_exec import Run

Json = dict[str, Any]
LOG_LINES, LOG_BYTES, MOST_LOGS = 5000, 1 << 20, 60
_SIDE_BY_SIDE = 8
_MOST_TEXT = 8 << 20
_OURS = (kinds.HEALTHCHECK, kinds.SLURMACCOUNT, kinds.SLURMQOS, kinds.SLURMBACKUP)
_CHILDREN = (
    kinds.STATEFULSET,
    kinds.DEPLOYMENT,
    kinds.JOB,
    kinds.SERVICE,
    kinds.CONFIGMAP,
    kinds.PVC,
    kinds.PDB,
    kinds.NETWORKPOLICY,
)
OPERATOR = "app.kubernetes.io/name=soperator,app.kubernetes.io/component=operator"
#: Slurm's answers by the name of the file, each a command beside slurmctld.
_ANSWERS: Mapping[str, str] = {
    "config.txt": "scontrol show config",
    "nodes.txt": "scontrol show node",
    "partitions.txt": "scontrol show partition",
    "jobs.txt": "scontrol show job",
    "reservations.txt": "scontrol show reservation",
    "topology.txt": "scontrol show topology",
    "ping.txt": "scontrol ping",
    "reasons.txt": "sinfo --list-reasons --long",
    "queue.txt": "squeue --long",
    "sdiag.txt": "sdiag",
    "licenses.txt": "scontrol show licenses",
}


@dataclass
class ArchiveContent:
    """The files of the archive by their paths, and the errors of parts that could not be read."""

    files: dict[str, bytes] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def add(self, path: str, content: bytes | str) -> None:
        """Add a file; a file without content is left out."""
        if content:
            self.files[path] = content.encode() if isinstance(content, str) else content

    async def attempt(self, what: str, part: Awaitable[None]) -> None:
        """Collect one part; an error of Kubernetes or Slurm adds a line to errors.txt."""
        from soperator.slurmrest.client import SlurmError

        try:
            await part
        except (KubeError, SlurmError, CliError, TimeoutError) as error:
            self.errors.append(f"{what}: {error}")


@dataclass(frozen=True)
class ArchiveSource:
    """The source of the archive; `run` executes commands in pods."""

    api: Api
    cluster: Custom
    run: "Run"

    @property
    def namespace(self) -> str:
        """The namespace of the cluster."""
        return self.cluster.metadata.namespace

    @property
    def selector(self) -> str:
        """The selector of the cluster's own objects."""
        from soperator.render.parts import labels

        return f"{labels.CLUSTER}={self.cluster.metadata.name}"


async def collect(source: ArchiveSource) -> ArchiveContent:
    """Return all files about a cluster that can be read."""
    made = ArchiveContent()
    pods: list[Json] = []
    operator: list[Json] = []
    await made.attempt("pods", _pods(source, pods, operator))
    made.add("objects/pods.json", _as_json(pods))
    made.add("objects/operator.json", _as_json(operator))
    parts: list[tuple[str, Awaitable[None]]] = [
        ("objects", _own_objects(source, made)),
        *((kind.kind, _children(source, made, kind)) for kind in _CHILDREN),
        ("Secrets", _secret_names(source, made)),
        ("events", _objects(made, source.api, kinds.SAID, source.namespace, "objects/events.json")),
        ("Nodes", _objects(made, source.api, kinds.NODE, None, "objects/nodes.json")),
        ("Kubernetes' version", _version(source.api, made)),
        *((f"Slurm: {command}", _answer(source, made, name, command)) for name, command in _ANSWERS.items()),
        ("explanations", _explanations(source, made)),
        *((f"operator's metrics of {_name(each)}", _metrics(source.api, made, each)) for each in operator),
    ]
    gate = asyncio.Semaphore(_SIDE_BY_SIDE)
    parts += [(f"log of {path}", _log(source.api, made, path, call)) for path, call in _log_calls([*operator, *pods])]
    await asyncio.gather(*(_gated(gate, made.attempt(what, part)) for what, part in parts))
    return made


async def secret_values(api: Api, namespaces: Iterable[str]) -> list[bytes]:
    """Return the content of every Secret of the namespaces; raises KubeError if the user may not read them."""
    found = [each for name in sorted(set(namespaces)) for each in (await api.list(kinds.SECRET, Secret, name)).items]
    return [content for each in found for content in each.data.values()]


async def _gated(gate: asyncio.Semaphore, part: Awaitable[None]) -> None:
    async with gate:
        await part


async def _list(api: Api, kind: Kind, namespace: str | None, selector: str = "") -> list[Json]:
    """Return whole objects, page by page."""
    found: list[Json] = []
    token = ""
    while True:
        params = {
            "limit": "500",
            **({"labelSelector": selector} if selector else {}),
            **({"continue": token} if token else {}),
        }
        call = Call("list", kind, "GET", kind.path(namespace), params, headers={"Accept": "application/json"})
        page = msgspec.json.decode((await api.transport.send(call)).content)
        found += [{"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in page.get("items") or ()]
        token = (page.get("metadata") or {}).get("continue", "")
        if not token:
            return found


async def _pods(source: ArchiveSource, pods: list[Json], operator: list[Json]) -> None:
    pods += await _list(source.api, kinds.POD, source.namespace, source.selector)
    operator += await _list(source.api, kinds.POD, None, OPERATOR)


async def _objects(made: ArchiveContent, api: Api, kind: Kind, namespace: str | None, path: str) -> None:
    made.add(path, _as_json(await _list(api, kind, namespace)))


async def _own_objects(source: ArchiveSource, made: ArchiveContent) -> None:
    from soperator.cli.support.find_cluster import members_of

    whole = await _list(source.api, kinds.SLURMCLUSTER, source.namespace)
    made.add(
        "objects/slurmcluster.json", _as_json([each for each in whole if _name(each) == source.cluster.metadata.name])
    )
    mine = {each.metadata.name for each in await members_of(source.api, source.cluster)}
    sets = await _list(source.api, kinds.NODESET, source.namespace)
    made.add("objects/nodesets.json", _as_json([each for each in sets if _name(each) in mine]))
    for kind in _OURS:
        made.add(f"objects/{kind.plural}.json", _as_json(await _list(source.api, kind, source.namespace)))


async def _children(source: ArchiveSource, made: ArchiveContent, kind: Kind) -> None:
    found = await _list(source.api, kind, source.namespace, source.selector)
    made.add(f"objects/{kind.plural}.json", _as_json(found))
    if kind is kinds.CONFIGMAP:
        for each in found:
            for key, text in (each.get("data") or {}).items():
                made.add(f"files/{_name(each)}/{key}", str(text))


async def _secret_names(source: ArchiveSource, made: ArchiveContent) -> None:
    """Record the names, types and keys of the Secrets, without content."""
    made.add("objects/secrets.json", _as_json(await _list(source.api, kinds.SECRET, source.namespace)))


async def _version(api: Api, made: ArchiveContent) -> None:
    call = Call("get", kinds.NAMESPACE, "GET", "/version")
    made.add("versions/kubernetes.json", (await api.transport.send(call)).content)


async def _answer(source: ArchiveSource, made: ArchiveContent, name: str, command: str) -> None:
    from soperator.cli.support.find_cluster import as_cluster
    from soperator.reconcile.io.slurm_exec import PodExec

    program, *words = command.split()
    script = f'timeout 15 /opt/soperator/bin/{program} "$@" | head -c {_MOST_TEXT}'
    inside = PodExec(source.api, source.run)
    made.add(f"slurm/{name}", await inside.beside_slurmctld(as_cluster(source.cluster), command, script, words))


async def _explanations(source: ArchiveSource, made: ArchiveContent) -> None:
    from soperator.cli.cluster.status import gather, screen
    from soperator.cli.support.find_cluster import members_of
    from soperator.cli.why import notes, reasons

    lines = [*reasons("SlurmCluster", source.cluster), *notes("SlurmCluster", source.cluster)]
    lines += [text for each in await members_of(source.api, source.cluster) for text in reasons("NodeSet", each)]
    made.add("why.txt", "\n".join(lines or ["everything is available"]) + "\n")
    state = await gather(source.api, source.namespace, source.cluster.metadata.name, source.run)
    made.add("status.txt", "\n".join(screen(state)) + "\n")


async def _metrics(api: Api, made: ArchiveContent, pod: Json) -> None:
    path = kinds.POD.path(pod["metadata"]["namespace"], f"{_name(pod)}:8080", "proxy") + "/metrics"
    made.add(
        f"operator/{_name(pod)}/metrics.txt", (await api.transport.send(Call("get", kinds.POD, "GET", path))).content
    )


def _log_calls(pods: Sequence[Json]) -> list[tuple[str, Call]]:
    """Return the requests for logs by their paths in the archive: first pods of the operator and of roles with few pods, then pods that are not
    ready.
    """
    calls = []
    for pod in sorted(pods, key=_log_order)[:MOST_LOGS]:
        status = pod.get("status") or {}
        for each in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
            calls.append(_log_call(pod, each["name"], previous=False))
            if each.get("restartCount"):
                calls.append(_log_call(pod, each["name"], previous=True))
    return calls


def _log_order(pod: Json) -> tuple[bool, bool, str]:
    from soperator.render.parts import labels

    conditions = (pod.get("status") or {}).get("conditions") or ()
    is_ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
    return (pod["metadata"].get("labels") or {}).get(labels.ROLE) == "worker", is_ready, _name(pod)


def _log_call(pod: Json, container: str, previous: bool) -> tuple[str, Call]:
    params = {"container": container, "tailLines": str(LOG_LINES), "timestamps": "true"} | (
        {"previous": "true"} if previous else {}
    )
    path = f"logs/{_name(pod)}/{container}{'.previous' if previous else ''}.log"
    return path, Call("get", kinds.POD, "GET", kinds.POD.path(pod["metadata"]["namespace"], _name(pod), "log"), params)


async def _log(api: Api, made: ArchiveContent, path: str, call: Call) -> None:
    try:
        content = (await api.transport.send(call)).content
    except ApiError as error:
        raise CliError(error.message) from None
    if len(content) > LOG_BYTES:  # whole lines, so that no secret is cut in two
        content = content[-LOG_BYTES:].partition(b"\n")[2]
    made.add(path, content)


def _name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def _as_json(objects: Sequence[Json]) -> bytes:
    """Return the objects as a list that jq and kubectl read, without the values that `redaction` removes."""
    if not objects:
        return b""
    return msgspec.json.format(
        msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": clean_object(list(objects))}), indent=1
    )
