"""The checks of a Kubernetes cluster. Each is a pure function of the facts that returns one finding with its remedy; CHECKS lists them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from soperator.api.base import GROUP
from soperator.cli.preflight.facts import KubernetesFacts, Machine
from soperator.crdgen.columns import ALL

OLDEST, WITH_USER_NAMESPACES, KERNEL = (1, 30), (1, 33), (6, 3)
#: Drivers of file systems that several Nodes can mount for writing, and drivers of disks that one Node can.
_SHARED = re.compile(
    r"(^|[.\-])(efs|fsx|filestore|file|nfs|cephfs|lustre|beegfs|gpfs|spectrumscale|wekafs|weka|vast|juicefs|quobyte|glusterfs|moosefs)\b"
)
_DISKS = re.compile(r"(^|[.\-/])(ebs|pd|disk|rbd|local|local-path|topolvm|cinder|blockvolume)\b|no-provisioner")
_ENFORCE = "pod-security.kubernetes.io/enforce"


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class PreflightResult:
    """The result of one check: its name, its level, a sentence, and the remedy if there is one."""

    check: str
    level: Level
    message: str
    remedy: str = ""


def check_version(facts: KubernetesFacts) -> PreflightResult:
    """Return whether Kubernetes is new enough."""
    name = "Kubernetes"
    if facts.version is None:
        return _unread(name, facts, "version")
    found = _numbers(facts.version)
    if found < OLDEST:
        return PreflightResult(name, Level.FAIL, f"{facts.version} is older than 1.30", "upgrade Kubernetes")
    return PreflightResult(name, Level.OK, facts.version)


def check_machines(facts: KubernetesFacts) -> PreflightResult:
    """Return whether there are Nodes of the images' only architecture, amd64."""
    name = "Nodes"
    if facts.machines is None:
        return _unread(name, facts, "machines")
    fitting = _fitting(facts)
    if not fitting:
        return PreflightResult(
            name,
            Level.FAIL,
            f"none of {len(facts.machines)} Nodes has amd64",
            "add Nodes with amd64: the images are for it only",
        )
    others = len(facts.machines) - len(fitting)
    if others:
        remedy = "set scheduling.nodeSelector to kubernetes.io/arch: amd64 for each role and NodeSet"
        return PreflightResult(
            name, Level.WARN, f"{others} of {len(facts.machines)} Nodes have another architecture than amd64", remedy
        )
    return PreflightResult(name, Level.OK, f"{len(fitting)} with amd64")


def check_user_namespaces(facts: KubernetesFacts) -> PreflightResult:
    """Return whether pods can have user namespaces on every Node."""
    name = "User namespaces"
    if facts.machines is None:
        return _unread(name, facts, "machines")
    silent = [each for each in _fitting(facts) if not each.status.runtime_handlers]
    without = [each for each in _fitting(facts) if each.status.runtime_handlers and not each.has_user_namespaces]
    old = [each for each in _fitting(facts) if _numbers(each.status.node_info.kernel_version) < KERNEL]
    off = "or set spec.security.userNamespace: false, which removes one layer of isolation"
    if without:
        info = without[0].status.node_info
        message = f"{_named(without)} cannot start pods in user namespaces (kubelet {info.kubelet_version}, {info.container_runtime_version})"
        gate = (
            ""
            if _numbers(info.kubelet_version) >= WITH_USER_NAMESPACES
            else " and the feature gate UserNamespacesSupport"
        )
        return PreflightResult(name, Level.FAIL, message, f"use containerd 2.0 and runc 1.2 or newer{gate}, {off}")
    if old:
        message = f"{_named(old)} has Linux {old[0].status.node_info.kernel_version}, older than 6.3"
        return PreflightResult(name, Level.FAIL, message, f"use a newer kernel, {off}")
    if silent:
        message = f"{_named(silent)} does not report the features of its runtime (kubelet {silent[0].status.node_info.kubelet_version})"
        return PreflightResult(name, Level.WARN, message, f"start a pod with hostUsers: false on that Node, {off}")
    return PreflightResult(
        name,
        Level.OK,
        "every Node has user namespaces; only a pod shows whether the jail's file system supports idmapped mounts",
    )


def check_storage(facts: KubernetesFacts) -> PreflightResult:
    """Return whether there is storage that all Nodes can mount for the jail."""
    name = "Storage for the jail"
    if facts.claims is None or facts.classes is None:
        return _unread(name, facts, "claims" if facts.claims is None else "classes")
    shared = [each for each in facts.claims if "ReadWriteMany" in (each.status.access_modes or each.spec.access_modes)]
    bound = [each for each in shared if each.status.phase == "Bound"]
    if bound:
        return PreflightResult(name, Level.OK, f"claim {bound[0].metadata.name} is bound and ReadWriteMany")
    classes = [each.metadata.name for each in facts.classes if _SHARED.search(each.provisioner)]
    if classes:
        return PreflightResult(name, Level.OK, f"class {classes[0]} has a driver of a shared file system")
    unknown = [each for each in facts.classes if not _DISKS.search(each.provisioner)]
    if unknown:
        message = f"whether class {unknown[0].metadata.name} ({unknown[0].provisioner}) makes ReadWriteMany volumes is not known here"
        return PreflightResult(name, Level.WARN, message, "look into the driver's documentation")
    message = f"namespace {facts.namespace} has no ReadWriteMany claim, and no StorageClass has a driver of a shared file system"
    return PreflightResult(
        name,
        Level.FAIL,
        message,
        "install such a driver, or the chart slurm-cluster-storage over a folder or an NFS server that all Nodes have",
    )


def check_pod_security(facts: KubernetesFacts) -> PreflightResult:
    """Return whether Pod Security admits the pods."""
    name = "Pod Security"
    if "namespace" in facts.refused:
        return _unread(name, facts, "namespace")
    if facts.namespace_labels is None:
        return PreflightResult(
            name,
            Level.OK,
            f"namespace {facts.namespace} does not exist yet; a new one enforces nothing unless the cluster's default does",
        )
    level = facts.namespace_labels.get(_ENFORCE, "")
    if level in ("baseline", "restricted"):
        remedy = f"kubectl label namespace {facts.namespace} {_ENFORCE}=privileged --overwrite"
        return PreflightResult(
            name, Level.FAIL, f"namespace {facts.namespace} enforces {level}, and workers need SYS_ADMIN", remedy
        )
    return PreflightResult(name, Level.OK, f"namespace {facts.namespace} enforces {level or 'nothing by a label'}")


def check_definitions(facts: KubernetesFacts) -> PreflightResult:
    """Return whether the kinds are installed."""
    name = "Kinds"
    if facts.definitions is None:
        return _unread(name, facts, "definitions")
    installed = facts.definitions
    missing = [each.kind for each in ALL if f"{each.plural}.{GROUP}" not in installed]
    if len(missing) == len(ALL):
        remedy = "helm install soperator-crds charts/soperator-crds -n soperator-system --create-namespace"
        return PreflightResult(name, Level.WARN, "the kinds are not installed yet", remedy)
    if missing:
        return PreflightResult(
            name, Level.FAIL, f"{', '.join(missing)} is missing", "upgrade the chart soperator-crds to this version"
        )
    return PreflightResult(name, Level.OK, f"all {len(ALL)} are installed")


def check_operator(facts: KubernetesFacts) -> PreflightResult:
    """Return whether the operator runs, which also shows that its image can be pulled."""
    name = "Operator"
    if facts.operators is None:
        return _unread(name, facts, "operators")
    if not facts.operators:
        remedy = 'helm install soperator charts/soperator -n soperator-system --set images.prefix="$REGISTRY"'
        return PreflightResult(name, Level.WARN, "the operator is not installed yet", remedy)
    if any(each.status.available_replicas for each in facts.operators):
        return PreflightResult(name, Level.OK, f"it runs in namespace {facts.operators[0].metadata.namespace}")
    waits = [
        state.state.waiting
        for pod in facts.operator_pods
        for state in pod.status.container_statuses
        if state.state.waiting
    ]
    message = f"{waits[0].reason}: {waits[0].message}" if waits else "no pod of the operator is ready"
    return PreflightResult(
        name,
        Level.FAIL,
        message,
        "soperator logs operator; for an image set images.prefix and images.pullSecrets of the chart",
    )


#: Every check, in the order of an installation.
CHECKS: tuple[Callable[[KubernetesFacts], PreflightResult], ...] = (
    check_version,
    check_machines,
    check_user_namespaces,
    check_storage,
    check_pod_security,
    check_definitions,
    check_operator,
)


def _fitting(facts: KubernetesFacts) -> list[Machine]:
    return [each for each in facts.machines or () if each.status.node_info.architecture == "amd64"]


def _named(machines: list[Machine]) -> str:
    more = len(machines) - 1
    return f"Node {machines[0].metadata.name}{f' and {more} more' if more else ''}"


def _numbers(version: str) -> tuple[int, int]:
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _unread(check: str, facts: KubernetesFacts, what: str) -> PreflightResult:
    return PreflightResult(
        check,
        Level.WARN,
        f"the API server could not be read: {facts.refused.get(what, 'no answer')}",
        "ask a person with more rights to run this",
    )
