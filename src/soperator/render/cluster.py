"""All objects of a SlurmCluster, in an order that a reader and an API server both like: what is mounted before who mounts it."""

from soperator.render import config, controller, jail, login, network, rest
from soperator.render.model import Cluster, Defaults, Object


def render_cluster(
    cluster: Cluster,
    defaults: Defaults,
    jail_ready: bool,
    rest_of: Cluster | None = None,
    login_of: Cluster | None = None,
) -> list[Object]:
    """Everything that a cluster owns but its keys and the populate Job; login waits for the jail, which it mounts as its root.

    While new images are on their way, `rest_of` and `login_of` are the same cluster with those that slurmrestd and login have so far.
    """
    return [
        *jail.render_claim(cluster),
        *jail.render_state_claim(cluster),
        config.render_config(cluster),
        *network.render_network(cluster),
        *controller.render_controller(cluster, defaults),
        *rest.render_rest(rest_of or cluster, defaults),
        *[
            each
            for each in login.render_login(login_of or cluster, defaults)
            if jail_ready or each["kind"] != "StatefulSet"
        ],
    ]
