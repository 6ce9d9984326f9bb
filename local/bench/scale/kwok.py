"""KWOK as the kubelets of all Nodes: its Stages for pods and Nodes, and its start.

Nodes have no Leases: at a thousand Nodes these would be a hundred writes a second that no program here reads. A watch of Nodes receives
each kubelet's report every five minutes, as in a real cluster.
"""

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

#: A Stage waits for a time between the two, so that Nodes report one by one: every 300 s on average.
_DELAYS = ("durationMilliseconds", "jitterDurationMilliseconds")
_REPORT_MS = (30_000, 570_000)
_STATUSES = """
%(name)s:
{{ range .spec.%(containers)s }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
"""
_POD = (
    """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
hostIP: 10.0.0.1
podIP: 127.0.0.1
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
"""
    + _STATUSES % {"name": "containerStatuses", "containers": "containers"}
    + _STATUSES % {"name": "initContainerStatuses", "containers": "initContainers"}
)
_NODE = """
{{ $now := Now }}
phase: Running
addresses:
- {type: InternalIP, address: 10.0.0.1}
- {type: Hostname, address: {{ .metadata.name | Quote }}}
allocatable: {cpu: 64, memory: 256Gi, pods: 110}
capacity: {cpu: 64, memory: 256Gi, pods: 110}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $.metadata.creationTimestamp | Quote }}
{{ end }}
"""
_ALIVE: Json = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
_DELETED: Json = {"key": ".metadata.deletionTimestamp", "operator": "Exists"}
_PENDING: Json = {"key": ".status.phase", "operator": "In", "values": ["Pending"]}
_IS_READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'
_NOT_READY: Json = {"key": _IS_READY, "operator": "NotIn", "values": ["True"]}
_READY: Json = {"key": _IS_READY, "operator": "In", "values": ["True"]}


def command(binary: Path, kubeconfig: Path, folder: Path) -> list[str]:
    """Return the command, and write its configuration into the folder."""
    config = folder / "kwok.yaml"
    config.write_text("\n---\n".join(json.dumps(each) for each in stages()))
    flags = [f"--kubeconfig={kubeconfig}", f"--config={config}", "--node-lease-duration-seconds=0"]
    return [str(binary), "--manage-all-nodes", *flags]


def stages() -> list[Json]:
    """Return every Stage: a pod with a Node becomes ready, a deleted pod is removed, a Node is ready and reports its status."""
    report = _stage("node-report", "Node", [_READY], {"statusTemplate": _NODE})
    report["spec"]["delay"] = dict(zip(_DELAYS, _REPORT_MS, strict=True))
    return [
        _stage("pod-ready", "Pod", [_ALIVE, _PENDING, _NOT_READY], {"statusTemplate": _POD}),
        _stage("pod-delete", "Pod", [_DELETED], {"delete": True}),
        _stage("node-ready", "Node", [_NOT_READY], {"statusTemplate": _NODE}),
        report,
    ]


def _stage(name: str, kind: str, matches: list[Json], becomes: Json) -> Json:
    spec = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": matches},
        "next": becomes,
    }
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}
