"""Objects such as an operator applies."""

from typing import Any

from soperator.kube.kinds import (
    CONFIGMAP,
    DEPLOYMENT,
    JOB,
    NETWORKPOLICY,
    PDB,
    PVC,
    ROLE,
    ROLEBINDING,
    SECRET,
    SERVICE,
    SERVICEACCOUNT,
    STATEFULSET,
    Kind,
)
from soperator.kube.objects import Deployment, Job, PersistentVolumeClaim, Service, StatefulSet
from soperator.kube.views import Meta
from tests.unit.objects import make

VIEWS: dict[Kind, Any] = {
    CONFIGMAP: Meta,
    SECRET: Meta,
    SERVICEACCOUNT: Meta,
    ROLE: Meta,
    ROLEBINDING: Meta,
    PDB: Meta,
    NETWORKPOLICY: Meta,
    PVC: PersistentVolumeClaim,
    SERVICE: Service,
    STATEFULSET: StatefulSet,
    DEPLOYMENT: Deployment,
    JOB: Job,
}
TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1000m"}}}]},
}


def workload(kind: Kind, name: str, replicas: int = 1, **spec: Any) -> dict[str, Any]:
    """Return a StatefulSet or Deployment."""
    return make(
        kind,
        name,
        "",
        spec={"replicas": replicas, "selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE, **spec},
    )


def job(command: str) -> dict[str, Any]:
    """Return a Job."""
    container = {"name": "c", "image": "i", "command": [command]}
    return make(JOB, "fill", "", spec={"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}})


def children() -> list[dict[str, Any]]:
    """Return twenty-five children of twelve kinds."""
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    objects = [
        *(make(CONFIGMAP, f"conf-{number}", "", data={"slurm.conf": "x" * 2000}) for number in range(6)),
        *(make(SECRET, f"key-{number}", "", data={"key": "aGk="}, type="Opaque") for number in range(5)),
        *(
            make(SERVICE, f"svc-{number}", "", spec={"selector": {"a": "b"}, "ports": [{"port": 80}]})
            for number in range(4)
        ),
        make(SERVICEACCOUNT, "sa", "", automountServiceAccountToken=False),
        make(ROLE, "role", "", rules=[rule]),
        make(
            ROLEBINDING,
            "binding",
            "",
            roleRef={"apiGroup": ROLE.group, "kind": "Role", "name": "role"},
            subjects=[{"kind": "ServiceAccount", "name": "sa"}],
        ),
        make(PDB, "pdb", "", spec={"minAvailable": "50%", "selector": {"matchLabels": {"app": "x"}}}),
        make(NETWORKPOLICY, "policy", "", spec={"podSelector": {}, "policyTypes": ["Ingress"]}),
        make(
            PVC, "claim", "", spec={"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1024Mi"}}}
        ),
        workload(STATEFULSET, "controller", serviceName="svc-0"),
        workload(STATEFULSET, "login", serviceName="svc-1"),
        workload(DEPLOYMENT, "rest"),
        job("fill"),
    ]
    for each in objects:
        del each["metadata"]["namespace"]
    return objects
