"""The fields of each Service that a person configures."""

from soperator.api.validation.cel import Rule

SERVICE = (
    Rule(
        cel="self.type != 'ClusterIP' || self.nodePort == 0",
        message="nodePort works with type NodePort or LoadBalancer only: choose one of them, or remove nodePort",
        holds=lambda service: service.type != "ClusterIP" or service.node_port == 0,
        field="node_port",
    ),
)
