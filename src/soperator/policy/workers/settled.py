"""Workers that need no decision, whatever the state of the others.

Such a worker is in service, with nothing to record and no drain of the operator to undo. The policy has no action for it unless the NodeSet has too
many workers or its template is a former one (a test compares this with the whole policy). Of five thousand workers nearly all are settled nearly
always, so a pass skips them.
"""

from soperator.policy.workers.pod_condition import IN_SERVICE, as_text
from soperator.policy.workers.types import KubeNode, WorkerPod
from soperator.slurm.node import SlurmNode

_SAYS_SO = ("", as_text(IN_SERVICE, ""))


def is_settled(pod: WorkerPod, node: SlurmNode | None, machine: KubeNode | None) -> bool:
    """Return whether a worker with the current template needs no decision."""
    if not pod.ready or pod.deleting or pod.phase != "Running" or not pod.protected or pod.noted or pod.leave:
        return False
    if node is None or not node.is_up or node.is_draining or pod.reported not in _SAYS_SO:
        return False
    return machine.ready and not machine.leaving if machine is not None else not pod.machine
