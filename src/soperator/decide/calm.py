"""Workers about which there is nothing to decide, whatever is wanted of the others.

Such a worker takes jobs, or runs them, where it is; nobody has said anything of it that we would have to write down, and nothing of ours is
to be taken back. Unless there are too many workers, or its template is a former one, the policy does nothing to it (a test holds that against the
whole policy). Of five thousand workers nearly all are so nearly always.
"""

from soperator.decide.service import IN_SERVICE, told
from soperator.decide.workers import Machine, WorkerPod
from soperator.slurm.node import SlurmNode

_SAYS_SO = ("", told(IN_SERVICE, ""))


def is_calm(pod: WorkerPod, node: SlurmNode | None, machine: Machine | None) -> bool:
    """Whether a worker of the present template needs no decision."""
    if not pod.ready or pod.deleting or pod.phase != "Running" or not pod.protected or pod.noted or pod.leave:
        return False
    if node is None or not node.is_up or node.is_draining or pod.told not in _SAYS_SO:
        return False
    return machine.ready and not machine.leaving if machine is not None else not pod.machine
