"""What slurmrestd of 24.11 cannot do, done by a command inside a pod.

To requeue a job, by scontrol beside slurmctld: the REST has a flag for federations, which cancels, and a node set DOWN requeues but leaves the
job's processes behind. To hear which configuration slurmctld runs with, by scontrol too. To have a slurmd register, by SIGHUP to it: slurmctld
does not know whom to ask.
An exec that fails has told nothing, and counts as not done.
"""

from collections.abc import Awaitable, Callable

from soperator.decide.configuration import Heard
from soperator.kube import exec as remote
from soperator.kube.api import Api
from soperator.kube.errors import KubeError
from soperator.render import names
from soperator.render.model import Cluster
from soperator.slurmrest.client import SlurmError

_SCONTROL = "/opt/soperator/bin/scontrol"
#: A command that is executed in a container has the container's environment, and not that of the entry script.
_KEYS = "SLURM_SACK_KEY=/run/soperator/keys/slurm.key SLURM_SACK_JWKS=/run/soperator/keys/slurm.jwks"
_AS_SLURM = f'[ "$SOPERATOR_AUTH" != slurm ] || export {_KEYS}; exec "$0" "$@"'


#: One line for the files that the pod sees, and one for what slurmctld says: the generation that stands in SlurmctldParameters.
_LOOK = r"""
[ "$SOPERATOR_AUTH" != slurm ] || export SLURM_SACK_KEY=/run/soperator/keys/slurm.key
sed -n 's/^SlurmctldParameters=.*generation=\([0-9a-f]*\).*/mounted \1/p' /etc/slurm/slurm.conf | tail -n 1
timeout 5 "$0" show config 2>/dev/null | sed -n 's/^SlurmctldParameters .*generation=\([0-9a-f]*\).*/running \1/p'
"""

Look = Callable[[Api, str, str], Awaitable[Heard | None]]


async def look(api: Api, namespace: str, pod: str) -> Heard | None:
    """What a pod of slurmctld sees of its files, and what slurmctld says; None where it could not be asked. Never raises."""
    try:
        done = await remote.exec(
            api, remote.Target(namespace, pod, "slurmctld"), ["sh", "-c", _LOOK, _SCONTROL], seconds=15
        )
    except KubeError:
        return None
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    return Heard(said.get("mounted", ""), said.get("running", ""))


async def requeue(api: Api, cluster: Cluster, job: int) -> None:
    """Let a batch job wait for its turn again, from the first pod of slurmctld in which that can be done; raises SlurmError."""
    refusals: list[SlurmError] = []
    for number in range(cluster.spec.controller.replicas):
        target = remote.Target(cluster.namespace, names.controller_host(cluster.name, number), "slurmctld")
        try:
            return await _run(
                api, target, f"scontrol requeue {job}", ["sh", "-c", _AS_SLURM, _SCONTROL, "requeue", str(job)]
            )
        except SlurmError as error:
            refusals.append(error)
    raise refusals[0]


async def register(api: Api, namespace: str, pod: str) -> None:
    """Let the slurmd of a worker's pod read its configuration and register, beside running jobs; raises SlurmError."""
    await _run(api, remote.Target(namespace, pod, "slurmd"), "SIGHUP to slurmd", ["sh", "-c", "kill -HUP 1"])


async def _run(api: Api, target: remote.Target, what: str, command: list[str]) -> None:
    try:
        done = await remote.exec(api, target, command, seconds=20)
    except KubeError as error:
        raise SlurmError(f"{what}: {error}") from error
    if done.code:
        raise SlurmError(f"{what}: {(done.stderr or done.stdout).strip() or f'exit code {done.code}'}")
