"""Reads failures of image pulls from Events, before the pod's status has them.

The kubelet writes why a container waits when it next syncs the pod. After an init container that has run, the sync after a failed pull comes only 10
to 15 s later (pkg/kubelet/pod_workers.go, backOffPeriod with its jitter), while the Event exists at once. So the operator reads the Events of a
starting pod a few times in its first seconds, and shows the pod with the status that the kubelet will soon write.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.errors import KubeError
from soperator.kube.objects import ObservedEvent
from soperator.kube.views import (
    ContainerState,
    ContainerStatus,
    Pod,
    WaitingState,
)
from soperator.reconcile import pod_status

#: When the Events of a pod are read, in seconds since it was first seen: a pull that fails does so after 2 to 3 s.
MOMENTS = (1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)
_UNTOLD = ("", "PodInitializing", "ContainerCreating")


@dataclass
class PodEvents:
    """The Events of starting pods; `clock` in seconds."""

    clock: Callable[[], float]
    _first: dict[str, float] = field(default_factory=dict)
    _asked: dict[str, int] = field(default_factory=dict)
    _heard: dict[str, ContainerStatus] = field(default_factory=dict)

    async def with_events(self, api: Api, pod: Pod) -> Pod:
        """Return the pod, with the message of an Event about an image if its own status has none yet. Never raises."""
        uid = pod.metadata.uid
        if not is_starting(pod):
            self.forget(uid)
            return pod
        age = self.clock() - self._first.setdefault(uid, self.clock())
        due = sum(1 for each in MOMENTS if each <= age)
        if due > self._asked.get(uid, 0) and uid not in self._heard:
            self._asked[uid] = due
            if found := await _failed_pull(api, pod):
                self._heard[uid] = found
        return shown(pod, self._heard[uid]) if uid in self._heard else pod

    def wait(self, pod: Pod) -> float | None:
        """Return the seconds until the next read of the pod's Events is due; None if none is needed."""
        uid = pod.metadata.uid
        if uid not in self._first or uid in self._heard:
            return None
        age = self.clock() - self._first[uid]
        return next((max(0.1, each - age) for each in MOMENTS[self._asked.get(uid, 0) :]), None)

    @property
    def known(self) -> frozenset[str]:
        """The remembered pods, by uid."""
        return frozenset(self._first)

    def forget(self, uid: str) -> None:
        """Forget a pod that has started, or that no longer exists."""
        for each in (self._first, self._asked, self._heard):
            each.pop(uid, None)


def is_starting(pod: Pod) -> bool:
    """Return whether a pod is scheduled and its start is stuck without a reason in its status."""
    return (
        bool(pod.spec.node_name)
        and pod.status.phase in ("", "Pending")
        and pod.metadata.deletion_timestamp is None
        and not pod_status.is_failing(pod)
    )


def shown(pod: Pod, heard: ContainerStatus) -> Pod:
    """Return the pod with a container's status from an Event, if its own status has no reason."""

    def with_reason(status: ContainerStatus) -> ContainerStatus:
        waiting = status.state.waiting
        return heard if status.name == heard.name and waiting and waiting.reason in _UNTOLD else status

    of_init, of_others = (
        tuple(map(with_reason, each)) for each in (pod.status.init_container_statuses, pod.status.container_statuses)
    )
    status = msgspec.structs.replace(pod.status, init_container_statuses=of_init, container_statuses=of_others)
    return msgspec.structs.replace(pod, status=status)


async def _failed_pull(api: Api, pod: Pod) -> ContainerStatus | None:
    """Return the last container whose image cannot be pulled, according to an Event."""
    fields = f"involvedObject.uid={pod.metadata.uid},type=Warning"
    try:
        found = (await api.list(kinds.SAID, ObservedEvent, pod.metadata.namespace, fields=fields)).items
    except KubeError:
        return None
    failed = [each for each in found if each.reason == "Failed" and each.message.startswith("Failed to pull image")]
    if not failed:
        return None
    last = failed[-1]
    name = last.involved_object.field_path.partition("{")[2].rstrip("}")
    why = last.message.partition('": ')[2] or last.message
    return ContainerStatus(name=name, state=ContainerState(waiting=WaitingState("ErrImagePull", why)))
