"""Restores the objects of a cluster while its deletion waits for jobs.

Jobs may run for days after somebody has deleted their SlurmCluster or NodeSet, and need slurmctld, Services, keys and files as before. So the
operator restores what a person deletes or changes in that time, as in any other pass. But it begins no change: an object whose applied version
differs from the current spec, or from this operator's rendering, stays unchanged; no object is removed, and Slurm gets no other configuration.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from soperator.api.base import Problem
from soperator.api.slurmcluster import MOST_CONTROLLERS
from soperator.kube import kinds
from soperator.kube.errors import KubeError
from soperator.kube.views import Custom
from soperator.policy.cluster.images import Stage
from soperator.reconcile import anchor, finalizers, inputs
from soperator.reconcile.cluster import (
    accounting,
    config_files,
    images,
    jail,
    slurm_config,
    user_rest_api,
)
from soperator.reconcile.context import Operator
from soperator.reconcile.keys import key_files
from soperator.render.cluster import login
from soperator.render.cluster.objects import render_cluster
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster, NodeSet, Object
from soperator.render.slurm_conf import health_checks, slurm_conf
from soperator.render.worker import pod
from soperator.runtime.apply import Owner
from soperator.runtime.controller import PermanentError
from soperator.slurm.settings.state import ConfigState

#: Seconds until the next try to put back what cannot be put back.
_SOON = 5.0


@dataclass(frozen=True)
class RenderInputs:
    """The inputs of the objects of a cluster besides its spec: images, jail, configuration, and whether the jail has every mount point."""

    stage: Stage
    filling: jail.JailStatus
    config: slurm_config.ConfigStatus
    pointed: bool


def objects(operator: Operator, cluster: Cluster, basis: RenderInputs) -> list[Object]:
    """Return the objects that a cluster must have, except keys, configuration and Jobs."""
    step, had_login, record = basis.filling.step, jail.has_login(operator, cluster), basis.stage.record
    of_rest, of_login = (images.with_images(cluster, each) for each in (record.workers, record.login))
    shown = login.closed(of_login) if had_login and not step.login else of_login
    opens, named = (
        had_login or (step.login and basis.pointed),
        _addresses(operator, cluster, basis.config),
    )
    made = render_cluster(cluster, operator.defaults, opens, basis.config.state, (of_rest, shown), named)
    return made + accounting.objects(operator, images.with_images(cluster, {"slurm": basis.stage.slurmdbd}))


async def of_cluster(operator: Operator, obj: Custom, read: Cluster | Sequence[Problem]) -> tuple[str, float | None]:
    """Restore what is missing in a cluster whose deletion waits.

    Returns a message about what cannot be restored, and the seconds until the next attempt.
    """
    key = (obj.metadata.namespace, obj.metadata.name)
    try:
        held = await anchor.hold(operator, key)
        if not isinstance(read, Cluster):
            return f"deleted objects are not restored: {read[0]}", None
        cluster = replace(inputs.sized(operator, read), anchor=held)
        await key_files.settle(operator, obj, cluster)
        if problems := operator.namespaces.view(key[0]).problems(key[1]) or slurm_conf.too_large(cluster):
            return f"deleted objects are not restored: {problems[0]}", None
        await _put_back(operator, obj, cluster)
        users = await user_rest_api.settle(operator, cluster)
    except (PermanentError, KubeError) as error:
        return f"not all deleted objects are restored: {error}", _SOON
    return users.why, users.again or None


async def of_nodeset(operator: Operator, obj: Custom, cluster: Cluster, nodeset: NodeSet) -> str:
    """Restore the objects that the remaining workers mount; return why that is impossible, empty on success."""
    plans = {names.jail_plan(cluster.name, nodeset.name, each) for each in inputs.worker_set(operator, nodeset).plans}
    plan, owner = pod.render_plan(cluster, nodeset), Owner.from_metadata(kinds.NODESET, obj.metadata, cluster.anchored)
    made = [*([plan] if plan["metadata"]["name"] in plans else []), *health_checks.render(cluster, nodeset)]
    try:
        await operator.applier.repair_children(owner, made, finalizers.is_collected(obj.metadata))
    except (PermanentError, KubeError) as error:
        return f"not all deleted objects are restored: {error}"
    return ""


async def _put_back(operator: Operator, obj: Custom, cluster: Cluster) -> None:
    is_collected = finalizers.is_collected(obj.metadata)
    config_now = slurm_config.ConfigStatus(state=await _files(operator, cluster, is_collected))
    stage = images.stage(operator, obj, cluster)
    cluster = images.with_images(cluster, stage.wanted)
    pointed = not inputs.point_wait(operator, cluster, inputs.members(operator, cluster))
    basis = RenderInputs(stage, jail.jail_status(operator, obj, cluster), config_now, pointed)
    # Not the claim: slurmctld would start with an empty one, and end the jobs that it does not know.
    made = [each for each in objects(operator, cluster, basis) if each["kind"] != kinds.PVC.kind]
    await operator.applier.repair_children(
        Owner.from_metadata(kinds.SLURMCLUSTER, obj.metadata, cluster.anchored), made, is_collected
    )


async def _files(operator: Operator, cluster: Cluster, is_collected: bool) -> ConfigState:
    """Return the record of Slurm's files, after restoring them. Their owner is not restored while the garbage collector removes it."""
    state = config_files.state(operator, cluster)
    if is_collected and state.generation:
        return state
    state, _ = await config_files.restore(operator, cluster, await slurm_config.running(operator, cluster))
    return state


def _addresses(operator: Operator, cluster: Cluster, settled: slurm_config.ConfigStatus) -> int:
    """Return the number of slurmctlds whose host names must resolve: those of backups stay longer than their pods.

    Slurm resolves all names before it connects to one of them, and retries a missing one for seconds, so that not even a reconfigure would get
    through. So a backup's name is removed only when no daemon has it in its configuration any more.
    """
    rest = [each.metadata.annotations.get(labels.CONFIG) for each in operator.stores.role_pods(cluster.key, "rest")]
    is_forgotten = settled.is_as_wanted and settled.read == settled.daemons and set(rest) <= {settled.state.good}
    if is_forgotten:
        return cluster.spec.controller.replicas
    services = operator.stores.children[kinds.SERVICE]
    named = [
        number
        for number in range(MOST_CONTROLLERS)
        if services.get(cluster.namespace, names.controller_address(cluster.name, number))
    ]
    return max(cluster.spec.controller.replicas, *(number + 1 for number in named), 0)
