"""A pod that is not ready, in a sentence."""

import msgspec
import pytest

from soperator.control import pods
from soperator.kube.views import Pod
from soperator.runtime.store import Store


def told(state, last=None):
    """What is said of a pod with one container."""
    status = {"name": "slurmctld", "ready": False, "restartCount": 1, "state": state, "lastState": last or {}}
    raw = {"metadata": {"name": "p", "namespace": "n"}, "status": {"phase": "Running", "containerStatuses": [status]}}
    return pods.trouble(msgspec.convert(raw, Pod), Store()).removeprefix("pod p: container slurmctld ")


LOG = "y_select: part_data_cre\nslurmctld: error: Unable to open\nslurmctld: fatal: no state\n"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ({"exitCode": 137, "reason": "Error", "message": LOG}, "was killed by SIGKILL"),
        ({"exitCode": 137, "reason": "OOMKilled"}, "was killed by SIGKILL (OOMKilled)"),
        ({"exitCode": 192, "reason": "Error"}, "was killed by SIGRTMAX"),
        ({"exitCode": 250, "reason": "Error"}, "ended with 250"),
        ({"exitCode": 255, "reason": "Unknown", "message": LOG}, "ended with its Node"),
        ({"exitCode": 1, "reason": "Error", "message": LOG}, "ended with 1: Unable to open; no state"),
        (
            {"exitCode": 1, "reason": "Error", "message": "one\nsoperator: name a role\n"},
            "ended with 1: soperator: name a role",
        ),
        ({"exitCode": 1, "reason": "Error"}, "ended with 1"),
    ],
)
def test_a_container_that_ended_is_told_with_its_signal_or_its_last_words(end, said):
    """Never with lines of a log, of which Kubernetes keeps the last two thousand characters."""
    assert told({"terminated": end}) == said


def test_a_container_that_waits_is_told_with_its_former_end():
    """The end is the cause, the waiting only Kubernetes' patience."""
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    assert told(waits, {"terminated": {"exitCode": 1, "message": "fatal: no key"}}) == (
        "waits, CrashLoopBackOff: back-off 10s; it ended with 1: no key"
    )
    assert told(waits, {"terminated": {"exitCode": 0}}) == "waits, CrashLoopBackOff: back-off 10s"


def ready(status, since, began, **waits):
    """A pod whose container began at this minute, and whose readiness is so since another."""
    state = {"waiting": waits} if waits else {"running": {"startedAt": f"2026-01-01T00:0{began}:00Z"}}
    condition = {"type": "Ready", "status": status, "lastTransitionTime": f"2026-01-01T00:0{since}:00Z"}
    said = {"conditions": [condition], "containerStatuses": [{"name": "slurmd", "ready": False, "state": state}]}
    return msgspec.convert({"metadata": {"name": "p", "namespace": "n"}, "status": said}, Pod, strict=False)


def test_a_pod_comes_up_until_it_is_ready_for_the_first_time():
    """Not one that was ready since its container began, nor one whose container needs a person."""
    assert pods.comes_up(ready("False", since=1, began=2))
    assert not pods.comes_up(ready("True", since=3, began=2))
    assert not pods.comes_up(ready("False", since=3, began=2))
    assert not pods.comes_up(ready("False", since=1, began=2, reason="ImagePullBackOff", message="no"))
