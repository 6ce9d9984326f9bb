"""Reads the facts about a Kubernetes cluster that the checks need, in eight requests. A fact that the user may not read is None."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from soperator.kube import kinds
from soperator.kube.api import Api
from soperator.kube.errors import ApiError, NotFound
from soperator.kube.kinds import Kind
from soperator.kube.objects import Deployment, PersistentVolumeClaim
from soperator.kube.transport import Call
from soperator.kube.views import Meta, ObjectMeta, Pod, View

T = TypeVar("T")
STORAGECLASS = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
_OPERATOR = "app.kubernetes.io/name=soperator"


class RuntimeFeatures(View, frozen=True):
    """The features of a Node's container runtime (KEP-127)."""

    user_namespaces: bool = False


class RuntimeHandler(View, frozen=True):
    """One runtime of a Node; the default one has no name."""

    name: str = ""
    features: RuntimeFeatures = RuntimeFeatures()


class MachineInfo(View, frozen=True):
    """The versions of a Node's programs."""

    architecture: str = ""
    kernel_version: str = ""
    kubelet_version: str = ""
    container_runtime_version: str = ""


class MachineStatus(View, frozen=True):
    """The part of a Node's status that the checks read."""

    node_info: MachineInfo = MachineInfo()
    runtime_handlers: tuple[RuntimeHandler, ...] = ()


class Machine(View, frozen=True):
    """A Kubernetes Node as the checks see it."""

    metadata: ObjectMeta = ObjectMeta()
    status: MachineStatus = MachineStatus()

    @property
    def has_user_namespaces(self) -> bool:
        """Return whether the Node's default runtime can start pods in user namespaces."""
        return any(each.features.user_namespaces for each in self.status.runtime_handlers if not each.name)


class StorageClassView(View, frozen=True):
    """A StorageClass: its driver."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""


@dataclass(frozen=True)
class KubernetesFacts:
    """The facts; None for each that Kubernetes refused.

    `namespace_labels` is None too if the namespace does not exist yet (`refused` distinguishes the two).
    """

    namespace: str
    version: str | None = None
    machines: tuple[Machine, ...] | None = None
    classes: tuple[StorageClassView, ...] | None = None
    claims: tuple[PersistentVolumeClaim, ...] | None = None
    namespace_labels: dict[str, str] | None = None
    definitions: frozenset[str] | None = None
    operators: tuple[Deployment, ...] | None = None
    operator_pods: tuple[Pod, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)


async def read_facts(api: Api, namespace: str) -> KubernetesFacts:
    """Return the facts; raises Unreachable and NoCluster, because no check is possible then."""
    refused: dict[str, str] = {}

    async def read(what: str, part: Awaitable[T]) -> T | None:
        try:
            return await part
        except ApiError as error:
            if not (isinstance(error, NotFound) and what == "namespace"):
                refused[what] = str(error)
            return None

    # Two groups: the types of more than six results are not known one by one.
    version, machines, classes, claims = await asyncio.gather(
        read("version", _version(api)),
        read("machines", api.list(kinds.NODE, Machine)),
        read("classes", api.list(STORAGECLASS, StorageClassView)),
        read("claims", api.list(kinds.PVC, PersistentVolumeClaim, namespace)),
    )
    labels, definitions, operators, pods = await asyncio.gather(
        read("namespace", api.get(kinds.NAMESPACE, Meta, None, namespace)),
        read("definitions", api.list(kinds.CRD, Meta)),
        read("operators", api.list(kinds.DEPLOYMENT, Deployment, None, _OPERATOR)),
        read("operators", api.list(kinds.POD, Pod, None, _OPERATOR)),
    )
    return KubernetesFacts(
        namespace,
        version,
        machines.items if machines else None,
        classes.items if classes else None,
        claims.items if claims else None,
        dict(labels.metadata.labels) if labels else None,
        frozenset(each.metadata.name for each in definitions.items) if definitions else None,
        operators.items if operators else None,
        pods.items if pods else (),
        refused,
    )


async def _version(api: Api) -> str:
    answer = await api.transport.send(Call("get", kinds.NAMESPACE, "GET", "/version"))
    found: dict[str, Any] = msgspec.json.decode(answer.content)
    return str(found.get("gitVersion", "")).removeprefix("v")
