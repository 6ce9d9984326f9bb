"""Nodes that sleep on a machine with a real slurmctld."""

from soperator.policy.workers.types import Verb
from tests.slurm.machine import Slurm

#: As render/slurm_conf/power_saving.py writes it. Without bf_max_time a pass of backfill may last bf_interval, and one that meets the end
#: of a second tries no job.
#: A job that is queued again is looked at when its credential has ended, which is two minutes by default.
CONF = """SuspendProgram=/usr/bin/true
ResumeProgram=/usr/bin/true
SuspendTime=315360000
SuspendTimeout=3
ResumeTimeout=240
SuspendRate=0
ResumeRate=0
GresTypes=gpu
AuthInfo=cred_expire=5
SchedulerParameters=bf_interval=1,bf_max_time=30,sched_interval=5
NodeSet=owls Feature=owl
NodeSet=cats Feature=cat
PartitionName=owl Nodes=owls
PartitionName=cat Nodes=cats
"""


def sleeps(ctl: Slurm, nodes: str, more: str = "") -> str:
    """Make nodes known, asleep, as the operator does; what slurmctld says to it."""
    return ctl.sh(
        f"scontrol create NodeName={nodes} State=CLOUD CPUs=1 RealMemory=100 {more} &&"
        f"scontrol update NodeName={nodes} State=DOWN Reason=new && scontrol update NodeName={nodes} State={Verb.ALLOW}"
    ).strip()


def wakes(ctl: Slurm, node: str, more: str) -> None:
    """What the pod of the one node that wakes does, as soon as Slurm asks for it."""
    ctl.until(f"sinfo -h -p all -n {node} -o %t", "alloc#")
    ctl.sh(f"unshare --uts sh -c 'hostname {node}; slurmd -b -N {node} -Z --conf \"CPUs=1 RealMemory=100 {more}\"'")
