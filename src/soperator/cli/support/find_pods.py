"""Finds the pods and containers of a cluster by the names that people use: a role, a Slurm node, or a pod's name."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from soperator.cli.support.errors import CliError

if TYPE_CHECKING:
    from soperator.kube.api import Api
    from soperator.kube.exec import Result, Target
    from soperator.kube.views import Custom, Pod
    from soperator.reconcile.io.slurm_exec import Run

#: The container whose log people mean, by the role of the pod.
CONTAINERS: Mapping[str, str] = MappingProxyType(
    {
        "controller": "slurmctld",
        "login": "sshd",
        "rest": "slurmrestd",
        "rest-users": "slurmrestd",
        "accounting": "slurmdbd",
        "database": "mariadb",
        "exporter": "exporter",
        "worker": "slurmd",
        "populate": "copy",
        "mount-points": "mount-points",
        "trial": "slurmctld",
    }
)


async def pods_of_role(api: "Api", cluster: "Custom", role: str) -> "list[Pod]":
    """Return the pods of a role, ready ones first, then by name."""
    from soperator.kube.kinds import POD
    from soperator.kube.views import Pod
    from soperator.reconcile.pod_status import is_ready
    from soperator.render.parts import labels

    chosen = ",".join(f"{key}={value}" for key, value in labels.role(cluster.metadata.name, role).items())
    found = (await api.list(POD, Pod, cluster.metadata.namespace, labels=chosen)).items
    return sorted(found, key=lambda pod: (not is_ready(pod), pod.metadata.name))


def pod_of_node(cluster: "Custom", node: str) -> str:
    """Return the name of the pod of a Slurm node."""
    from soperator.render.parts import names

    return names.fit(f"{cluster.metadata.name}-{node}")


async def as_administrator(
    api: "Api", cluster: "Custom", script: str, words: Sequence[str], run: "Run | None" = None
) -> "Result":
    """Run a script on a login node as root, which is an administrator for Slurm, but not SlurmUser. Raises CliError and KubeError."""
    from soperator.kube.exec import exec as run_in_pod

    target = await login_container(api, cluster)
    return await (run or run_in_pod)(api, target, ["sh", "-c", script, "sh", *words])


async def login_container(api: "Api", cluster: "Custom") -> "Target":
    """Return the container of sshd in a login pod that is ready. Raises CliError."""
    from soperator.kube.exec import Target
    from soperator.reconcile.pod_status import is_ready

    for pod in await pods_of_role(api, cluster, "login"):
        if is_ready(pod):
            return Target(pod.metadata.namespace, pod.metadata.name, CONTAINERS["login"])
    name = cluster.metadata.name
    raise CliError(f"SlurmCluster {name}: no login pod is ready, and the command runs in one: see soperator why {name}")
