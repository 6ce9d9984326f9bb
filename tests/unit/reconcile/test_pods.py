"""A pod that is not ready, in a sentence."""

import msgspec
import pytest

from soperator.kube.views import (
    ContainerState,
    ContainerStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    WaitingState,
)
from soperator.reconcile import pod_status
from soperator.render.parts import labels
from soperator.runtime.cache.store import Store


def reported(state, last=None):
    """What is said of a pod with one container."""
    status = {"name": "slurmctld", "ready": False, "restartCount": 1, "state": state, "lastState": last or {}}
    raw = {"metadata": {"name": "p", "namespace": "n"}, "status": {"phase": "Running", "containerStatuses": [status]}}
    return pod_status.trouble(msgspec.convert(raw, Pod), Store()).removeprefix("pod p: container slurmctld ")


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
    assert reported({"terminated": end}) == said


def test_what_others_have_written_cannot_write_to_a_terminal():
    """A store's answer to restic is in the message of the container, and so in a condition."""
    message = "soperator: StoreDenied: \x1b]0;title\x07 \x1b[2Jno"
    raw = {
        "metadata": {"name": "p"},
        "status": {"containerStatuses": [{"state": {"terminated": {"exitCode": 1, "message": message}}}]},
    }
    raw["status"]["containerStatuses"][0] |= {"name": "backup", "ready": False, "restartCount": 0}
    assert pod_status.last_words(msgspec.convert(raw, Pod)) == "soperator: StoreDenied: ?]0;title? ?[2Jno"
    assert reported({"terminated": {"exitCode": 1, "message": message}}).isprintable()


def test_a_container_that_waits_is_told_with_its_former_end():
    """The end is the cause, the waiting only Kubernetes' patience."""
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    assert reported(waits, {"terminated": {"exitCode": 1, "message": "fatal: no key"}}) == (
        "waits, CrashLoopBackOff: back-off 10s; it ended with 1: no key"
    )
    assert reported(waits, {"terminated": {"exitCode": 0}}) == "waits, CrashLoopBackOff: back-off 10s"


def ready(status, since, began, **waits):
    """A pod whose container began at this minute, and whose readiness is so since another."""
    state = {"waiting": waits} if waits else {"running": {"startedAt": f"2026-01-01T00:0{began}:00Z"}}
    condition = {"type": "Ready", "status": status, "lastTransitionTime": f"2026-01-01T00:0{since}:00Z"}
    said = {"conditions": [condition], "containerStatuses": [{"name": "slurmd", "ready": False, "state": state}]}
    return msgspec.convert({"metadata": {"name": "p", "namespace": "n"}, "status": said}, Pod, strict=False)


def test_a_pod_comes_up_until_it_is_ready_for_the_first_time():
    """Not one that was ready since its container began, nor one whose container needs a person."""
    assert pod_status.is_first_start(ready("False", since=1, began=2))
    assert not pod_status.is_first_start(ready("True", since=3, began=2))
    assert not pod_status.is_first_start(ready("False", since=3, began=2))
    assert not pod_status.is_first_start(ready("False", since=1, began=2, reason="ImagePullBackOff", message="no"))


@pytest.mark.parametrize("container", ["slurmd", "jail", "usage"])
def test_the_remedy_for_a_wrong_image_names_the_nodeset_for_each_container_that_has_its_image(container):
    """All three run the same image, and which of them fails first is chance."""
    waiting = ContainerStatus(
        name=container, state=ContainerState(waiting=WaitingState(reason="ErrImagePull", message="not found"))
    )
    meta = ObjectMeta(name="demo-w-0", labels={labels.NODESET: "w", labels.CLUSTER: "demo", labels.ROLE: "worker"})
    said = pod_status.trouble(
        Pod(metadata=meta, status=PodStatus(phase="Pending", container_statuses=(waiting,))), Store()
    )
    assert "correct spec.image of NodeSet w or spec.images of SlurmCluster demo" in said


@pytest.mark.parametrize("index", ["007", "-1", "x", "", "\u0663"])
def test_a_label_that_is_no_index_of_ours_makes_no_worker(index):
    """Whoever labels a pod with 007 has not made worker 7."""
    assert pod_status.worker(Pod(metadata=ObjectMeta(name="p", labels={labels.INDEX: index})), Store()) is None


@pytest.mark.parametrize(
    ("host", "index"), [("worker-3", 3), ("worker-03", None), ("other-3", None), ("worker-a-3", None), ("", None)]
)
def test_the_index_of_a_worker_is_that_of_its_host_name(host, index):
    """Labels may be edited, the host name of a pod cannot be."""
    pod = Pod(
        metadata=ObjectMeta(name="demo-worker-3", labels={labels.NODESET: "worker", labels.INDEX: "7"}),
        spec=PodSpec(hostname=host),
    )
    found = pod_status.worker(pod, Store())
    assert (found.index if found else None) == index
