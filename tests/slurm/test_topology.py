"""What slurmctld 24.11 makes of our topology.conf with dynamic nodes: a slurmctld and slurmds of Debian's in namespaces, without Kubernetes.

These are the facts of docs/decisions/0076.
"""

from soperator.slurm import conf, topology
from soperator.slurm.topology import Place
from tests.slurm.machine import NEEDS, Slurm

FULL = "Requested topology configuration is not available"
PLACES: dict[str, Place] = {"w-0": ("z1", "r1"), "w-1": ("z1", "r2"), "w-2": ("z2", "r1"), "w-3": ("z1", "r1")}

pytestmark = NEEDS


def test_a_tree_is_what_slurmctld_chooses_by_and_a_node_that_came_after_it_was_read_takes_no_job(slurm: Slurm) -> None:
    """Jobs lie below one switch; a node that came after the file was read takes none, whatever is free."""
    slurm.begins()
    slurm.starts(*PLACES)
    slurm.reads("tree", topology.tree(PLACES))
    assert slurm.runs("-N2") == ["w-0", "w-3"]
    assert slurm.runs("-N3") == ["w-0", "w-1", "w-3"]
    assert slurm.runs("-N4") == ["w-0", "w-1", "w-2", "w-3"]
    slurm.starts("w-4")
    assert FULL in "\n".join(slurm.runs("-w w-4"))


def test_a_node_is_in_its_switch_when_slurmctld_reads_the_file_right_after_it_has_registered(slurm: Slurm) -> None:
    """A reconfigure writes everything down first and reads it again; nothing has to be waited for."""
    slurm.begins()
    slurm.starts("w-0", is_saved=False)
    slurm.reads("tree", topology.tree({"w-0": PLACES["w-0"]}))
    for count in (2, 3, 4):
        places = dict(list(PLACES.items())[:count])
        slurm.starts(f"w-{count - 1}", is_saved=False)
        slurm.reads("tree", topology.tree(places))
        assert slurm.found() == sorted(places)
    assert slurm.runs("-w w-3") == ["w-3"]


def test_slurmctld_tells_which_nodes_it_did_not_find_although_they_are_back(slurm: Slurm) -> None:
    """One that is killed before it has saved a node reads the file without it; the file without the node and the file with it make it whole."""
    known = {node: place for node, place in PLACES.items() if node != "w-3"}
    slurm.begins()
    slurm.starts(*known)
    slurm.reads("tree", topology.tree(known))
    slurm.sh("cp -a /var/spool/slurmctld /tmp/before")
    slurm.starts("w-3")
    slurm.reads("tree", topology.tree(PLACES))
    assert slurm.found() == sorted(PLACES)
    slurm.sh("pkill -KILL '^slurmctld'; rm -r /var/spool/slurmctld; mv /tmp/before /var/spool/slurmctld")
    slurm.begins(signal="KILL")
    slurm.sh("kill -HUP $(cat /run/slurmd-w-3.pid)")  # it registers, as docs/decisions/0042 has it
    slurm.until("sinfo -hN -r -t idle | wc -l", str(len(PLACES)))
    assert slurm.found() == sorted(known)
    assert FULL in "\n".join(slurm.runs("-w w-3"))
    slurm.reads("tree", topology.tree(known))
    slurm.reads("tree", topology.tree(PLACES))
    assert slurm.found() == sorted(PLACES)
    assert slurm.runs("-w w-3") == ["w-3"]


def test_blocks_hold_spares_so_that_slurmctld_starts_whatever_nodes_there_are(slurm: Slurm) -> None:
    """With no node at all, with all, and after one of a block is gone; a job lies in one block."""
    places: dict[str, Place] = {"w-0": ("r1",), "w-1": ("r2",), "w-2": ("r1",), "w-3": ("r2",)}
    slurm.reads("block", topology.blocks(places, [2]), conf.render([topology.spares(places, [2])]))
    slurm.begins()
    slurm.starts(*places)
    slurm.reads("block", topology.blocks(places, [2]), conf.render([topology.spares(places, [2])]))
    assert slurm.runs("-N2 -w w-3") == ["w-1", "w-3"]
    assert slurm.runs("-N2") in (["w-0", "w-2"], ["w-1", "w-3"])
    slurm.sh("kill $(cat /run/slurmd-w-1.pid); scontrol update nodename=w-1 state=down reason=gone")
    slurm.sh("scontrol delete nodename=w-1")
    slurm.begins()
    slurm.until("sinfo -hN -r -t idle | wc -l", "3")
    assert slurm.runs("-N2") == ["w-0", "w-2"]
