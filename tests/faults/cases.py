"""The table of faults: all of them for `make chaos`, some for `make test`."""

from tests.faults import daemons, machines, operator
from tests.faults.case import Case

AWAY = "slurmctld 0/1 ready"
CASES = (
    Case("operator killed when a pod was created", operator.created),
    Case("operator killed when a node was drained", operator.drained, says="has the annotation"),
    Case("operator killed when a pod lost its protection", operator.marked, says="has the annotation"),
    Case("operator killed when a pod was deleted", operator.deleted),
    Case("operator killed when a pod was gone", operator.forgotten),
    Case("operator killed when a rollout began", operator.rolled),
    Case(
        "operator killed when jobs were warned",
        operator.warned,
        is_slow=True,
        requeues=True,
        spares_shell=False,
        recovers=200,
    ),
    Case("operator killed when slurm.conf was written", operator.configured, is_slow=True),
    Case("slurmrestd hangs", daemons.rest_hung, says="slurmrestd"),
    Case("slurmrestd is slow", daemons.rest_slow),
    Case("slurmrestd answers 500", daemons.rest_broken, says="HTTP 500"),
    Case("slurmctld killed", daemons.controller_killed, says=AWAY),
    Case(
        "slurmctld killed while it starts jobs",
        daemons.controller_killed_at_work,
        says=AWAY,
        is_slow=True,
        requeues=True,
    ),
    Case("pod of slurmctld deleted", daemons.controller_replaced, says=AWAY),
    Case("slurmctld hangs", daemons.controller_hung, says="slurmrestd"),
    Case("state volume full", daemons.state_full, is_slow=True, condition="StateHasRoom", within=100),
    Case(
        "clock of a slurmd 5 min ahead",
        daemons.clock_ahead,
        is_slow=True,
        says="Slurm node skewed-0 is",
        within=120,
        recovers=120,
    ),
    Case("API server restarted", machines.api_restarted),
    Case("API server away for 20 s", machines.api_away, is_slow=True),
    Case("etcd restarted", machines.etcd_restarted),
    Case("kubelet stopped", machines.kubelet_stopped, is_slow=True, says="is NotReady", within=60),
    Case("network of a Node cut", machines.network_cut, is_slow=True, says="is NotReady", within=50, recovers=120),
    Case(
        "Node off and on",
        machines.node_off,
        is_slow=True,
        says="is NotReady",
        within=60,
        requeues=True,
        spares_shell=False,
        recovers=240,
    ),
    Case(
        "Node lost for a minute",
        machines.node_lost,
        is_slow=True,
        says="is replaced by another",
        within=120,
        requeues=True,
        spares_shell=False,
        recovers=240,
    ),
    Case("image that cannot be pulled", machines.unpullable, says="waits, ImagePullBackOff of localhost/nothing:1"),
    Case("two operators of different versions", machines.two_operators, is_slow=True),
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
