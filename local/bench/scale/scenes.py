"""The scenarios of the bench, and their measurements."""

import json
import time
from collections.abc import Callable, Sequence

from local.bench import audit, record
from local.bench.record import Run
from local.bench.scale.figures import FILE
from local.bench.scale.stage import Object, Stage, stage
from local.progress import say

GROUP = "/apis/slurm.soperator.io/v1alpha1"
IMAGE = "localhost/soperator/slurm:other"
QUIET_S, IDLE_S, REPLACE_S = 30.0, 60.0, 10.0
REPLACED = 3
_CLUSTERS, _EACH = 50, 3


def grow(workers: int) -> None:
    """Create one cluster; at a thousand workers also measure an idle minute and a rollout, and at five thousand the loss of a pod."""
    with stage(nodes=workers) as scene:
        seen = record.current_scene()
        began, at = scene.read(), time.time()
        _apply(scene, ["bench"], workers)
        _until(scene, "bench", lambda status: _all_idle(status, workers))
        ended, found = scene.read(), scene.requests(at)
        pods = [each.ended for each in found if each.resource == "pods" and each.is_creation]
        parts = {f"requests: {verb}": float(count) for verb, count in sorted(audit.by_verb(found).items())}
        measured = {
            "created": max(pods) - at,
            "ready": ended.at - at,
            "cpu": ended.cpu - began.cpu,
            "rss": scene.peak(),
            "requests": float(len(found)),
        }
        _keep(f"grow-{workers}", measured, seen, parts)
        if workers == 1000:
            _idle(scene, workers)
            _roll(scene, workers)
        if workers == 5000:
            for number in range(REPLACED):
                _replace(scene, workers, number * 1000)


def fifty() -> None:
    """Create fifty small clusters at once, each in its own namespace."""
    with stage(nodes=_CLUSTERS) as scene:
        seen = record.current_scene()
        names = [f"bench-{number}" for number in range(_CLUSTERS)]
        began, at = scene.read(), time.time()
        _apply(scene, names, _EACH)
        for name in names:
            _until(scene, name, lambda status: _all_idle(status, _EACH))
        ended, found = scene.read(), scene.requests(at)
        children = sum(each.is_creation for each in found)
        measured = {
            "ready": ended.at - at,
            "cpu": ended.cpu - began.cpu,
            "rss": scene.peak(),
            "requests": float(len(found)),
            "above": float(len(found) - children) / _CLUSTERS,
        }
        parts = {f"requests: {verb}": float(count) for verb, count in sorted(audit.by_verb(found).items())}
        _keep("fifty", measured, seen, parts | {"children": float(children)})
        _idle(scene, _CLUSTERS)


def _idle(scene: Stage, count: int) -> None:
    time.sleep(QUIET_S)
    seen, began = record.current_scene(), scene.read()
    time.sleep(IDLE_S)
    ended = scene.read()
    found = [each for each in scene.requests(began.at) if each.began <= ended.at]
    took = ended.at - began.at
    answered = [each for each in found if each.subresource != "exec"]  # KWOK answers none, so they are asked again
    measured = {"cpu": 100 * (ended.cpu - began.cpu) / took, "requests": len(answered) * 60 / took}
    parts = {f"requests: {verb}": float(count) for verb, count in sorted(audit.by_verb(found).items())}
    _keep(f"idle-{count}", measured, seen, parts)


def _roll(scene: Stage, workers: int) -> None:
    seen, began, at = record.current_scene(), scene.read(), time.time()
    path = f"{GROUP}/namespaces/bench/nodesets/worker"
    scene.send("PATCH", path, {"spec": {"image": IMAGE}}, "application/merge-patch+json")
    _until(scene, "bench", lambda status: status.get("updatedReplicas") == workers and _all_idle(status, workers))
    ended, found = scene.read(), scene.requests(at)
    measured = {"done": ended.at - at, "cpu": ended.cpu - began.cpu, "requests": float(len(found))}
    parts = {f"requests: {verb}": float(count) for verb, count in sorted(audit.by_verb(found).items())}
    _keep(f"roll-{workers}", measured | {"rss": scene.peak()}, seen, parts)


def _replace(scene: Stage, workers: int, number: int) -> None:
    time.sleep(QUIET_S)
    path = f"/api/v1/namespaces/bench/pods/bench-worker-{number}"
    old = scene.send("GET", path)["metadata"]["uid"]
    seen, began = record.current_scene(), scene.read()
    scene.send("DELETE", path)
    time.sleep(REPLACE_S)
    ended, found = scene.read(), scene.requests(began.at)
    new = scene.send("GET", path)
    assert new["metadata"]["uid"] != old, f"{path} is still the same pod"
    _until(scene, "bench", lambda status: _all_idle(status, workers))
    parts = {f"requests: {verb}": float(count) for verb, count in sorted(audit.by_verb(found).items())}
    _keep(f"replace-{workers}", {"cpu": 1000 * (ended.cpu - began.cpu), "requests": float(len(found))}, seen, parts)


def _apply(scene: Stage, names: Sequence[str], workers: int) -> None:
    """Apply a cluster and its NodeSet in each namespace, as `kubectl apply` does; the claims already exist."""
    scene.server.run(
        "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": _objects(names, workers)})
    )


def _objects(names: Sequence[str], workers: int) -> list[Object]:
    found: list[Object] = []
    for name in names:
        claims = [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"{name}-{what}", "namespace": name},
                "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
            }
            for what in ("jail", "state")
        ]
        jail = {"claim": {"name": f"{name}-jail"}, "populate": "Never"}
        cluster = {"jail": jail, "controller": {"state": {"name": f"{name}-state"}}}
        nodeset = {"clusterRef": {"name": name}, "replicas": workers, "updateStrategy": {"maxUnavailable": "10%"}}
        found += [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
            *claims,
            _ours("SlurmCluster", name, name, cluster),
            _ours("NodeSet", "worker", name, nodeset),
        ]
    return found


def _ours(kind: str, name: str, namespace: str, spec: Object) -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "slurm.soperator.io/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


def _until(scene: Stage, namespace: str, holds: Callable[[Object], bool]) -> None:
    """Wait until the status of a NodeSet, for the current generation, satisfies the condition."""

    def is_reported(seen: Object) -> bool:
        status = seen.get("status", {})
        return bool(status.get("observedGeneration") == seen["metadata"]["generation"] and holds(status))

    scene.wait(f"NodeSet {namespace}/worker", f"{GROUP}/namespaces/{namespace}/nodesets/worker", is_reported)


def _keep(scene: str, measured: dict[str, float], seen: record.Scene, parts: dict[str, float]) -> None:
    say(
        f"{scene}: "
        + ", ".join(f"{name} {value:.3g}" for name, value in measured.items())
        + f"; {parts}; load {seen.load}"
    )
    for name, value in measured.items():
        record.append(Run(f"{scene}.{name}", value, parts=parts, **seen.__dict__), FILE)


def _all_idle(status: Object, workers: int) -> bool:
    """Return whether Kubernetes reports every worker as ready and Slurm reports it as idle."""
    return bool(status.get("readyReplicas") == status.get("idle") == workers)
