"""Describes the state of pods as messages.

Kubernetes reports why a pod does not run in six places. `trouble` reads them in the order in which a pod starts, and returns the first cause; an
empty text means that there is none.
"""

import re
import signal
from collections.abc import Iterable

from soperator.kube import kinds
from soperator.kube.objects import Node
from soperator.kube.views import ConditionView, ContainerStatus, Pod, Terminated, WaitingState
from soperator.policy.cluster.conditions import Role
from soperator.policy.workers.pod_condition import as_text
from soperator.policy.workers.types import WorkerPod
from soperator.render.parts import labels, names
from soperator.runtime.cache.store import Store
from soperator.slurm import daemon_log, hostlist

_NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_FAILING = (
    *_NO_IMAGE,
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
)
#: An image in the kubelet's message about it.
_PULLED = re.compile(r'(?:image|pull) "([^"]+)"')
#: The containers of a worker that run the NodeSet's image.
_OF_NODESET = ("slurmd", "jail", "usage")
#: The message for a pod whose status has no cause.
STARTING = "it is starting"
_GIVES_WAY = "its pod gives way"
#: A container that a signal ended has this and the signal's number as its exit code.
_SIGNALLED = 128
#: The reasons of containerd and the kubelet for a container whose end they did not observe.
_UNSEEN = ("Unknown", "ContainerStatusUnknown")


def is_ready(pod: Pod) -> bool:
    """Return whether the pod is ready and not being deleted."""
    ready = any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
    return ready and pod.metadata.deletion_timestamp is None


def is_first_start(pod: Pod) -> bool:
    """Return whether the pod starts for the first time: it was never ready before, and nothing needs a person."""
    if is_ready(pod) or pod.metadata.deletion_timestamp is not None or is_failing(pod):
        return False
    since = next((each.last_transition_time for each in pod.status.conditions if each.type == "Ready"), None)
    began = [each.state.running.started_at for each in pod.status.container_statuses if each.state.running]
    return not any(since and each and since > each for each in began)


def is_running(pod: Pod, container: str) -> bool:
    """Return whether a container of the pod runs, ready or not."""
    return any(each.name == container and each.state.running for each in pod.status.container_statuses)


def has_run(pod: Pod, container: str) -> bool:
    """Return whether a container was ever started in this pod."""
    found = next((each for each in pod.status.container_statuses if each.name == container), None)
    if found is None:
        return is_ready(pod)
    return bool(found.state.running or found.state.terminated or found.last_state.terminated)


def began(pod: Pod, container: str) -> float:
    """Return when a running container was started, in seconds since 1970; 0 if it does not run."""
    found = next((each.state.running for each in pod.status.container_statuses if each.name == container), None)
    return found.started_at.timestamp() if found and found.started_at else 0.0


def trouble(pod: Pod, nodes: Store[Node]) -> str:
    """Return why a pod is not ready, as a message without a full stop; empty for a ready one."""
    if is_ready(pod):
        return ""
    return f"pod {pod.metadata.name}: {_cause(pod, nodes)}"


def role(pods: Iterable[Pod], wanted: int, nodes: Store[Node]) -> Role:
    """Return the number of a role's ready pods, and why the first of the others is not ready."""
    found = list(pods)
    troubles = [text for text in (trouble(pod, nodes) for pod in found) if text]
    ready = min(wanted, sum(map(is_ready, found)))
    return Role(ready, wanted, troubles[0] if troubles else missing(wanted - len(found)))


def missing(count: int) -> str:
    """Return why a role lacks pods although no pod has a fault: `count` of them are not created yet. Empty if none is missing."""
    return f"{count} {'pod is' if count == 1 else 'pods are'} not created yet" if count > 0 else ""


def worker(pod: Pod, nodes: Store[Node]) -> WorkerPod | None:
    """Return a worker's pod as the policy reads it; None for a pod without an index, which is not a worker."""
    index = index_of(pod, pod.metadata.labels.get(labels.NODESET, ""))
    if index is None:
        return None
    made = pod.metadata.creation_timestamp
    return WorkerPod(
        index=index,
        template=pod.metadata.annotations.get(labels.TEMPLATE, ""),
        phase=pod.status.phase or "Pending",
        deleting=pod.metadata.deletion_timestamp is not None,
        ready=is_ready(pod),
        trouble=trouble(pod, nodes),
        failing=is_failing(pod),
        born=made.timestamp() if made else 0.0,
        machine=pod.spec.node_name,
        leave=_GIVES_WAY if _gives_way(pod) else "",
        protected=pod.metadata.labels.get(labels.PROTECTED) == "true",
        noted=pod.metadata.annotations.get(labels.DRAINED, ""),
        reported=_condition_text(pod),
        ready_since=_ready_since(pod),
        uid=pod.metadata.uid,
        version=pod.metadata.resource_version,
    )


def index_of(pod: Pod, nodeset: str) -> int | None:
    """Return the index of a NodeSet's worker from the host name of its pod, which nobody can edit; None for a pod that is not a worker of it."""
    prefix = f"{nodeset}-"
    return hostlist.number(pod.spec.hostname.removeprefix(prefix)) if pod.spec.hostname.startswith(prefix) else None


def mislabelled(pod: Pod) -> list[str]:
    """Return the uid of a worker's NodeSet, found by owner, name and host name, if the pod's labels are wrong; empty if they are right."""
    owner = next((each for each in pod.metadata.owner_references if each.kind == kinds.NODESET.kind), None)
    index = index_of(pod, owner.name) if owner else None
    if owner is None or index is None:
        return []
    said = pod.metadata.labels
    cluster = said.get(labels.CLUSTER, "")
    marks = {**labels.worker(cluster, owner.name), labels.INDEX: str(index)}
    is_right = marks.items() <= said.items() and pod.metadata.name == names.worker_pod(cluster, owner.name, index)
    return [] if is_right else [owner.uid]


def _gives_way(pod: Pod) -> bool:
    """Return whether somebody has deleted the pod, and Kubernetes waits for its node to be drained."""
    return pod.metadata.deletion_timestamp is not None and labels.GIVES_WAY in pod.metadata.annotations


def in_service(pod: Pod) -> ConditionView | None:
    """Return the pod's condition with the state of its Slurm node."""
    return next((each for each in pod.status.conditions if each.type == labels.IN_SERVICE), None)


def _ready_since(pod: Pod) -> float:
    since = next((each.last_transition_time for each in pod.status.conditions if each.type == "Ready"), None)
    return since.timestamp() if since else 0.0


def _condition_text(pod: Pod) -> str:
    condition = in_service(pod)
    return as_text(condition.reason, condition.message) if condition else ""


def is_jail_sick(pod: Pod) -> bool:
    """Return whether the container that checks the jail reports that job steps would fail, after it had reported success since its start.

    A container that has just started is unready too, but its pod has not been ready since then.
    """
    status = next((each for each in pod.status.container_statuses if each.name == "jail"), None)
    if status is None or status.ready or not status.state.running or pod.metadata.deletion_timestamp is not None:
        return False
    began = status.state.running.started_at
    ceased = [each.last_transition_time for each in pod.status.conditions if each.type == "Ready"]
    return any(began and each and each > began for each in ceased)


def last_words(pod: Pod, container: str = "") -> str:
    """Return the last message of a container of an ended pod: of the container that failed, or of the named one.

    It may quote a program or a server that others run, and a terminal would execute control sequences in the condition with it.
    """
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        end = status.state.terminated
        if end and (status.name == container or (not container and end.exit_code)):
            return _printable(end.message.strip())
    return ""


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in text)


def is_failing(pod: Pod) -> bool:
    """Return whether a container cannot be started, or ends again and again."""
    waiting = [each.state.waiting for each in (*pod.status.init_container_statuses, *pod.status.container_statuses)]
    return any(each and each.reason in _FAILING for each in waiting)


def _cause(pod: Pod, nodes: Store[Node]) -> str:
    node = nodes.get("", pod.spec.node_name) if pod.spec.node_name else None
    if pod.spec.node_name and (node is None or not is_node_ready(node)):
        return f"its Node {pod.spec.node_name} is {'NotReady' if node else 'gone'}"
    if pod.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    unscheduled = next(
        (each for each in pod.status.conditions if each.type == "PodScheduled" and each.status == "False"), None
    )
    if unscheduled:
        return f"no Node takes it: {unscheduled.message}"
    if is_jail_sick(pod):
        return "the probe of its jail fails"
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if text := _container(status):
            return text + _remedy(pod, status)
    if pod.status.phase in ("Failed", "Succeeded"):
        return f"it ended ({pod.status.reason or pod.status.phase}) {pod.status.message}".strip()
    return STARTING


def _container(status: ContainerStatus) -> str:
    waiting, ended = status.state.waiting, status.state.terminated or status.last_state.terminated
    if waiting and waiting.reason not in ("", "PodInitializing", "ContainerCreating"):
        why = f": {_printable(waiting.message)}" if waiting.message else ""
        last = f"; it {_end(ended)}" if ended and (ended.message or ended.exit_code > _SIGNALLED) else ""
        return f"container {status.name} waits, {waiting.reason}{_image(waiting)}{why}{last}"
    if status.state.terminated and status.state.terminated.exit_code:
        return f"container {status.name} {_end(status.state.terminated)}"
    if status.state.running and not status.ready and status.restart_count:
        return f"container {status.name} has restarted {status.restart_count} times and is not ready yet"
    return ""


def _image(waiting: WaitingState) -> str:
    """Return the image that cannot be pulled, from the message, which has other text before it or repeats it; empty without one."""
    found = _PULLED.search(waiting.message) if waiting.reason in _NO_IMAGE else None
    return f" of {found[1]}" if found else ""


def _end(end: Terminated) -> str:
    """Return how a container ended: by which signal, or with which exit code and message. A daemon's log is not used as the message."""
    oom = f" ({end.reason})" if end.reason == "OOMKilled" else ""
    if end.exit_code - _SIGNALLED in set(signal.Signals):
        return f"was killed by {signal.Signals(end.exit_code - _SIGNALLED).name}{oom}"
    if end.reason in _UNSEEN:
        return "ended with its Node"
    last = next(reversed(end.message.strip().splitlines()), "")
    said = daemon_log.cause(end.message) or last
    return f"ended with {end.exit_code}{oom}{f': {_printable(said)}' if said else ''}"


def _remedy(pod: Pod, status: ContainerStatus) -> str:
    """Return the field that names the image of a container whose image cannot be pulled; empty for other faults."""
    waiting, said = status.state.waiting, pod.metadata.labels
    if not waiting or waiting.reason not in _NO_IMAGE:
        return ""
    nodeset = said.get(labels.NODESET)
    field = f"spec.image of NodeSet {nodeset} or " if nodeset and status.name in _OF_NODESET else ""
    fills = said.get(labels.ROLE) == "populate" or status.name in ("jail-copy", "users")
    jail = "spec.jail.image or " if fills else ""
    return f"; correct {field}{jail}spec.images of SlurmCluster {said.get(labels.CLUSTER)}, or make the image pullable (spec.images.pullSecrets)"


def is_node_ready(node: Node) -> bool:
    """Return whether Kubernetes calls the Node ready."""
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
