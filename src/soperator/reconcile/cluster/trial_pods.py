"""Observes and deletes trial pods, in which a slurmctld tries a configuration or an image."""

from collections.abc import Iterable

from soperator.kube import kinds
from soperator.kube.api import Deletion
from soperator.kube.views import Pod
from soperator.policy.cluster.slurm_config import Trial
from soperator.reconcile import pod_status
from soperator.reconcile.context import Operator
from soperator.render.parts.model import Object
from soperator.render.slurm_conf import trial
from soperator.runtime.apply import refuse_foreign_name
from soperator.slurm import daemon_log


def trial_of(operator: Operator, pod: Pod) -> Trial:
    """Return the result of the slurmctld in a trial pod; one that passed reports its version."""
    ended = next((each.state.terminated for each in pod.status.container_statuses if each.state.terminated), None)
    said = ended.message.strip() if ended else ""
    if pod.status.phase == "Succeeded":
        return Trial("passed", version=said[:63])
    if pod.status.phase == "Failed" and ended and ended.exit_code == trial.REFUSED:
        return Trial("refused", daemon_log.cause(said) or said[:600])
    return Trial("lost" if pod.status.phase == "Failed" else "", pod_status.trouble(pod, operator.stores.nodes))


async def create(operator: Operator, body: Object) -> None:
    """Create a trial pod; raises ApplyRefused if a foreign pod has its name."""
    meta = body["metadata"]
    await refuse_foreign_name(operator.api, kinds.POD, (meta["namespace"], meta["name"]))
    await operator.api.apply(kinds.POD, body)


async def remove(operator: Operator, found: Iterable[Pod]) -> None:
    """Delete the pods for which no deletion was requested yet."""
    for each in found:
        meta = each.metadata
        if meta.deletion_timestamp is None:
            await operator.api.delete(kinds.POD, meta.namespace, meta.name, Deletion(uid=meta.uid))
