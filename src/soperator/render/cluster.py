"""All objects of a SlurmCluster, in an order that a reader and an API server both like: what is mounted before who mounts it."""

from soperator.render import config, controller, jail, login, network, rest
from soperator.render.model import Cluster, Defaults, Object


def render_cluster(cluster: Cluster, defaults: Defaults, jail_ready: bool) -> list[Object]:
    """Everything that a cluster owns but its keys and the populate Job; login waits for the jail, which it mounts as its root."""
    return [
        *jail.render_claim(cluster),
        *jail.render_state_claim(cluster),
        config.render_config(cluster),
        *network.render_network(cluster),
        *controller.render_controller(cluster, defaults),
        *rest.render_rest(cluster, defaults),
        *[each for each in login.render_login(cluster, defaults) if jail_ready or each["kind"] != "StatefulSet"],
    ]
