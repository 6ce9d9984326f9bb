"""All objects of a SlurmCluster in one list, mounted objects before the pods that mount them, so that a first apply needs no retry."""

from collections.abc import Iterable
from dataclasses import replace

from soperator.render.cluster import (
    database,
    exporter,
    login,
    network,
    slurmctld,
    slurmdbd,
    slurmrestd,
    user_rest_api,
)
from soperator.render.jail import claims, gres
from soperator.render.parts.model import (
    Cluster,
    Defaults,
    NodeSet,
    Object,
)
from soperator.render.slurm_conf import job_limits, power_saving
from soperator.slurm.settings.state import ConfigState


def with_members(cluster: Cluster, nodesets: Iterable[NodeSet], checked: bool = False) -> Cluster:
    """Return the cluster with the inputs that its configuration takes from its accepted NodeSets, and whether a HealthCheck refers to it."""
    specs = {each.name: each.spec for each in nodesets}
    return replace(
        cluster,
        shares=job_limits.shares(specs),
        gpus=gres.counted(specs),
        checked=checked,
        sleeps=power_saving.timeouts(specs),
    )


def after_start(cluster: Cluster) -> Cluster:
    """Return the cluster after its complete start: slurm.conf names slurmdbd if accounting is on."""
    return replace(cluster, accounted=cluster.spec.accounting is not None)


def render_cluster(
    cluster: Cluster,
    defaults: Defaults,
    jail_ready: bool,
    state: ConfigState | None = None,
    of: tuple[Cluster, Cluster] | None = None,
    addresses: int = 0,
) -> list[Object]:
    """Return all objects of a cluster except its keys, its configuration (described by `state`) and the populate Job.

    Login waits for the jail, which it mounts as its root. During a rollout of new images, `of` has the cluster with slurmrestd's current images, and
    with those of login. `addresses` is the minimum number of slurmctlds with a Service.
    """
    of_rest, of_login = of or (cluster, cluster)
    known = state or ConfigState()
    return [
        *claims.render_claim(cluster),
        *claims.render_state_claim(cluster),
        *network.render_network(cluster, defaults.operator_namespace),
        *slurmctld.render_controller(cluster, defaults, known.fixed, addresses),
        *slurmrestd.render_rest(of_rest, defaults, known.good or known.generation),
        *user_rest_api.render_rest_users(of_rest, defaults, state),
        *exporter.render_exporter(of_rest, defaults),
        *network.render_usage(cluster),
        *[each for each in login.render_login(of_login, defaults) if jail_ready or each["kind"] != "StatefulSet"],
    ]


def render_accounted(cluster: Cluster, defaults: Defaults, secrets: str = "") -> list[Object]:
    """Return the objects of slurmdbd and its database, if accounting is on; `secrets` are the versions of the Secrets that both read at their
    start.
    """
    if cluster.spec.accounting is None:
        return []
    return [
        *database.render_database(cluster, defaults, secrets),
        *slurmdbd.render_accounting(cluster, defaults, secrets),
    ]
