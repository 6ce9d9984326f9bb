"""What slurmrestd of 24.11 cannot do, done by scontrol inside the controller's pod.

That is to requeue a job: its REST has a flag for federations, which cancels, and a node set DOWN requeues but leaves the job's processes behind.
An exec that fails has told nothing, and counts as not done.
"""

from soperator.kube import exec as remote
from soperator.kube.api import Api
from soperator.kube.errors import KubeError
from soperator.render import names
from soperator.render.model import Cluster
from soperator.slurmrest.client import SlurmError

_SCONTROL = "/opt/soperator/bin/scontrol"
#: A command that is executed in a container has the container's environment, and not that of the entry script.
_AS_SLURM = '[ "$SOPERATOR_AUTH" != slurm ] || export SLURM_SACK_KEY=/run/soperator/keys/slurm.key; exec "$0" "$@"'


async def requeue(api: Api, cluster: Cluster, job: int) -> None:
    """Let a batch job wait for its turn again; raises SlurmError."""
    target = remote.Target(cluster.namespace, f"{names.controller(cluster.name)}-0", "slurmctld")
    command = ["sh", "-c", _AS_SLURM, _SCONTROL, "requeue", str(job)]
    try:
        done = await remote.exec(api, target, command, seconds=20)
    except KubeError as error:
        raise SlurmError(f"scontrol requeue {job}: {error}") from error
    if done.code:
        raise SlurmError(f"scontrol requeue {job}: {(done.stderr or done.stdout).strip() or f'exit code {done.code}'}")
