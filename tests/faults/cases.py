"""The table of faults: all of them for `make chaos`, some for `make test`."""

from tests.faults import daemons, machines, operator
from tests.faults.case import Case

CASES = (
    Case("operator killed when a pod was created", operator.created),
    Case("operator killed when a node was drained", operator.drained),
    Case("operator killed when a pod was deleted", operator.deleted),
    Case("slurmrestd hangs", daemons.rest_hung, says="slurmrestd"),
    Case("slurmrestd is slow", daemons.rest_slow),
    Case("slurmrestd answers 500", daemons.rest_broken, says="HTTP 500"),
    Case("pod of slurmctld deleted", daemons.controller_replaced),
    Case("API server restarted", machines.api_restarted),
    Case("network of a Node cut", machines.network_cut, says="is NotReady", within=50, recovers=120),
    Case("image that cannot be pulled", machines.unpullable, says="it stopped, for pod"),
)
#: What `make test` plays, in about two minutes: one of each kind.
FEW = (
    "operator killed when a pod was created",
    "operator killed when a node was drained",
    "slurmrestd answers 500",
    "pod of slurmctld deleted",
    "API server restarted",
    "network of a Node cut",
    "image that cannot be pulled",
)


def named(name: str) -> Case:
    """The case of a name."""
    return next(case for case in CASES if case.name == name)
