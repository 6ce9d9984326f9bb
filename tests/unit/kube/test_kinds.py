"""Kinds, views and errors as values."""

import msgspec
import pytest

from soperator.kube.errors import Expired, Invalid, TooBusy, error_of, explain
from soperator.kube.kinds import ALL, DEPLOYMENT, NODE, POD, SLURMCLUSTER, kind_of
from soperator.kube.objects import Job, Node, PersistentVolumeClaim, Secret, Service, Workload
from soperator.kube.views import Custom, Pod


def test_paths_are_those_of_the_api() -> None:
    """Core and named groups, cluster-wide kinds, objects and subresources."""
    assert POD.path() == "/api/v1/pods"
    assert POD.path("ns", "a", "exec") == "/api/v1/namespaces/ns/pods/a/exec"
    assert DEPLOYMENT.path("ns") == "/apis/apps/v1/namespaces/ns/deployments"
    assert NODE.path("ignored", "n") == "/api/v1/nodes/n"
    assert SLURMCLUSTER.path("ns", "c", "status").startswith("/apis/slurm.soperator.io/v1alpha1/namespaces/ns/")
    with pytest.raises(ValueError, match="needs a namespace"):
        POD.path(None, "a")


def test_every_kind_is_found_by_its_type() -> None:
    """An object's apiVersion and kind lead to its kind, and unknown ones to an error."""
    for kind in ALL:
        assert kind_of({"apiVersion": kind.api_version, "kind": kind.kind}) is kind
    with pytest.raises(ValueError, match="v2 Pod is an unknown kind"):
        kind_of({"apiVersion": "v2", "kind": "Pod"})


def test_a_pod_is_read_by_its_few_fields() -> None:
    """Names with capitals, null timestamps and unknown fields are no trouble."""
    raw = b"""{"metadata": {"name": "p", "creationTimestamp": null, "managedFields": [{"fieldsV1": {}}]},
        "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
        "status": {"podIP": "10.0.0.1", "phase": "Pending", "containerStatuses": [
            {"name": "c", "restartCount": 3, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}}"""
    pod = msgspec.json.decode(raw, type=Pod)
    assert (pod.spec.node_name, pod.status.pod_ip) == ("n", "10.0.0.1")
    status = pod.status.container_statuses[0]
    assert status.state.waiting is not None
    assert (status.restart_count, status.state.waiting.reason) == (3, "ImagePullBackOff")


@pytest.mark.parametrize("view", [Pod, Node, PersistentVolumeClaim, Workload, Job, Service, Custom, Secret])
def test_an_object_without_anything_is_readable(view: type) -> None:
    """No view demands more than Kubernetes promises."""
    assert msgspec.json.decode(b'{"metadata": {}}', type=view).metadata.name == ""


def test_secret_data_is_decoded() -> None:
    """The base64 of the API is not the caller's business."""
    assert msgspec.json.decode(b'{"data": {"k": "aGk="}}', type=Secret).data == {"k": b"hi"}


def test_both_shapes_of_410_are_expired() -> None:
    """The HTTP status and the object of an ERROR event become one type."""
    body = b'{"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}'
    assert isinstance(error_of(410, b""), Expired)
    assert isinstance(error_of(0, body), Expired)


def test_retry_after_comes_from_header_or_body() -> None:
    """Seconds in either place are read, and nonsense is ignored."""
    assert error_of(429, b"", "3").retry_after == 3.0
    assert error_of(429, b'{"details": {"retryAfterSeconds": 2}}').retry_after == 2.0
    assert error_of(503, b"not json", "Wed, 21 Oct 2026 07:28:00 GMT").retry_after is None
    assert isinstance(error_of(503, b""), TooBusy)


def test_a_refusal_is_explained_by_field() -> None:
    """People read which field of which object, and why."""
    body = b'{"reason": "Invalid", "details": {"causes": [{"field": "spec.a", "message": "too big"}]}}'
    error = error_of(422, body)
    assert isinstance(error, Invalid)
    assert explain(error, "Job/x") == "Job/x is refused: spec.a: too big"
