"""Views of the kinds other than Pod and our own; `views` has their common parts, and explains why views are partial."""

from datetime import datetime
from sys import intern

import msgspec

from soperator.api.fields.topology import UNREAD
from soperator.kube.views import ChildMeta, ConditionView, ObjectMeta, View


class Taint(View, frozen=True):
    """One taint of a Node."""

    key: str
    value: str = ""
    effect: str = ""


class Address(View, frozen=True):
    """One address of a Node."""

    type: str
    address: str


class NodeMeta(ObjectMeta, frozen=True):
    """The metadata of a Node, with only those labels that may describe its location, because a Node has dozens of others."""

    def __post_init__(self) -> None:
        """Drop the other labels; equal keys and values are stored once."""
        kept = {intern(key): intern(value) for key, value in self.labels.items() if not key.startswith(UNREAD)}
        msgspec.structs.force_setattr(self, "labels", kept)


class NodeCondition(View, frozen=True):
    """One condition of a Node, without its message: a Node has five or more, and the messages would cost memory."""

    type: str
    status: str
    last_transition_time: datetime | None = None


class NodeSpec(View, frozen=True):
    """The fields of a Node that prevent Pods from running on it."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class KubeNodeStatus(View, frozen=True):
    """The conditions and the addresses of a Node."""

    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[Address, ...] = ()


class Node(View, frozen=True):
    """A Kubernetes Node."""

    metadata: NodeMeta = NodeMeta()
    spec: NodeSpec = NodeSpec()
    status: KubeNodeStatus = KubeNodeStatus()


class ClaimSpec(View, frozen=True):
    """The requested size of a claim, and its volume."""

    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None


class ClaimStatus(View, frozen=True):
    """The phase of a claim, and its actual capacity."""

    phase: str = ""
    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()


class PersistentVolumeClaim(View, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: ChildMeta = ChildMeta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class WorkloadSpec(View, frozen=True):
    """The desired replicas; the API server sets the default."""

    replicas: int = 1


class WorkloadStatus(View, frozen=True):
    """The progress of a StatefulSet or Deployment: its generation and its replicas."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: tuple[ConditionView, ...] = ()


class Workload(View, frozen=True):
    """A StatefulSet or a Deployment."""

    metadata: ChildMeta = ChildMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


StatefulSet = Workload
Deployment = Workload


class JobSpec(View, frozen=True):
    """The number of successful Pods that a Job requires."""

    completions: int | None = None
    parallelism: int | None = None
    suspend: bool | None = None


class JobStatus(View, frozen=True):
    """The status of a Job: the numbers of its Pods by result, and its conditions."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[ConditionView, ...] = ()


class Job(View, frozen=True):
    """A Kubernetes Job."""

    metadata: ChildMeta = ChildMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class ServicePort(View, frozen=True):
    """One port of a Service."""

    name: str = ""
    port: int = 0
    node_port: int = 0


class ServiceSpec(View, frozen=True):
    """The type, the cluster IP and the ports of a Service."""

    type: str = ""
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    ports: tuple[ServicePort, ...] = ()


class Ingress(View, frozen=True):
    """One address of a load balancer."""

    ip: str = ""
    hostname: str = ""


class LoadBalancer(View, frozen=True):
    """The addresses of a Service of type LoadBalancer."""

    ingress: tuple[Ingress, ...] = ()


class ServiceStatus(View, frozen=True):
    """The status of a Service, with the addresses of its load balancer."""

    load_balancer: LoadBalancer = LoadBalancer()


class Service(View, frozen=True):
    """A Kubernetes Service."""

    metadata: ChildMeta = ChildMeta()
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


class ConfigMap(View, frozen=True):
    """A ConfigMap with its data, for single reads; caches only have `Meta`."""

    metadata: ChildMeta = ChildMeta()
    data: dict[str, str] = msgspec.field(default_factory=dict)


class Secret(View, frozen=True):
    """A Secret with its data, base64 decoded, for single reads; caches only have `Meta`."""

    metadata: ChildMeta = ChildMeta()
    type: str = ""
    data: dict[str, bytes] = msgspec.field(default_factory=dict)


class LeaseSpec(View, frozen=True):
    """The holder of a Lease, and its duration in seconds after the last renewal; times are RFC 3339 with microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(View, frozen=True):
    """A Lease of leader election."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


class EventTarget(View, frozen=True):
    """The object of an Event, and which part of it: `spec.containers{NAME}` for a container."""

    uid: str = ""
    field_path: str = ""


class WholePod(View, frozen=True):
    """A pod with its whole spec, for comparisons."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class ObservedEvent(View, frozen=True):
    """An Event of another component, such as the kubelet."""

    metadata: ObjectMeta = ObjectMeta()
    involved_object: EventTarget = EventTarget()
    reason: str = ""
    message: str = ""
    last_timestamp: datetime | None = None
