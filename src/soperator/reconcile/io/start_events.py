"""Reads from Events why a scheduled pod does not start: a volume cannot be mounted, the sandbox cannot be created, a device cannot be prepared.

The kubelet and the attach controller write these causes only into Events, so without them a status would always report only that the pod is starting.
Events are read only for pods that a status reports as starting, after some seconds, and then at growing intervals.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.errors import KubeError
from soperator.kube.objects import ObservedEvent
from soperator.kube.views import Pod
from soperator.reconcile.pod_status import STARTING
from soperator.runtime.cache.store import Store

#: Seconds since a pod was first seen starting after which its Events are read; later they are read every _PERIOD seconds.
MOMENTS = (5.0, 8.0, 13.0, 25.0)
_PERIOD = 30.0
#: For how many pods of one status Events are read.
_MOST = 4
#: The most characters of an Event's message that a sentence takes over.
_LENGTH = 90
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_NAMED = re.compile(rf"pod ([a-z0-9][a-z0-9.-]*): {STARTING}")
_REASONS = {
    "FailedMount": "a volume cannot be mounted",
    "FailedMapVolume": "a volume cannot be mounted",
    "FailedAttachVolume": "a volume cannot be attached",
    "FailedCreatePodSandBox": "its sandbox cannot be created",
    "NetworkNotReady": "its sandbox cannot be created",
    "FailedPrepareDynamicResources": "its devices cannot be prepared",
}


@dataclass
class _Start:
    """A starting pod: the time of its start, the time of the next read of its Events, and their message."""

    since: float
    due: float
    cause: str = ""


@dataclass
class StartEvents:
    """The messages of Events about starting pods; `clock` in seconds."""

    clock: Callable[[], float]
    _starts: dict[str, _Start] = field(default_factory=dict)

    async def read_due(self, api: Api, pods: Store[Pod], namespace: str, texts: Iterable[str]) -> float | None:
        """Read the Events that are due for the pods that `texts` report as starting; return the seconds until the next read. Never raises."""
        named = sorted({name for text in texts for name in _NAMED.findall(text)})[:_MOST]
        found = [pod for name in named if (pod := pods.get(namespace, name)) is not None]
        waits = [await self._read_due(api, pod) for pod in found]
        return min(waits, default=None)

    def completed(self, pods: Store[Pod], namespace: str, text: str) -> str:
        """Return the text, with the cause from Events added for each pod that it reports as starting."""

        def cause(match: re.Match[str]) -> str:
            pod = pods.get(namespace, match[1])
            start = self._starts.get(pod.metadata.uid) if pod else None
            return f"pod {match[1]}: {start.cause}" if start and start.cause else match[0]

        return _NAMED.sub(cause, text)

    @property
    def known(self) -> frozenset[str]:
        """The remembered pods, by uid."""
        return frozenset(self._starts)

    def forget(self, uid: str) -> None:
        """Forget a pod that no longer exists."""
        self._starts.pop(uid, None)

    async def _read_due(self, api: Api, pod: Pod) -> float:
        now = self.clock()
        start = self._starts.setdefault(pod.metadata.uid, _Start(now, now + MOMENTS[0]))
        if now >= start.due:
            start.cause = await _cause(api, pod)
            now = self.clock()
            later = (start.since + each for each in MOMENTS if start.since + each > now)
            start.due = next(later, now + _PERIOD)
        return max(0.1, start.due - now)


async def _cause(api: Api, pod: Pod) -> str:
    """Return the message of the last Event of a failure, as part of a sentence; empty if there is none, or if it cannot be read."""
    fields = f"involvedObject.uid={pod.metadata.uid},type=Warning"
    try:
        found = (await api.list(kinds.SAID, ObservedEvent, pod.metadata.namespace, fields=fields)).items
    except KubeError:
        return ""
    failed = [each for each in found if each.reason in _REASONS]
    if not failed:
        return ""
    last = max(failed, key=lambda each: each.last_timestamp or _LONG_AGO)
    return f"{_REASONS[last.reason]}: {_short(last.message)}"


def _short(message: str) -> str:
    """Return the part of an Event's message that has the cause, on one line."""
    line = " ".join(message.split()).rpartition("desc = ")[2]
    line = re.sub(r'^MountVolume\.\w+ failed for volume "([^"]*)" ?: ', r"\1: ", line)
    return line if len(line) <= _LENGTH else f"{line[: _LENGTH - 1].rstrip()}…"
