"""Unlike machines in one cluster, and where they lie: docs/howto/mixed.md, on made-up racks and made-up GPUs."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from local.paths import REPOSITORY
from tests.cluster.lab import Lab, condition

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

EXAMPLE = REPOSITORY / "examples/mixed.yaml"
SCRIPT = REPOSITORY / "examples/two-gpu-types.sh"
RACK = "example.com/rack"
NODESETS = ("cpu", "h100", "a100", "burst")
GPUS = [{"op": "add", "path": "/status/capacity/example.com~1gpu", "value": "8"}]


@pytest.fixture(scope="module")
def mixed(lab: Lab, alice: str) -> Iterator[Lab]:
    """The example on the demo's cluster, from which it is taken away as the page says."""
    if not lab.target.is_local:
        pytest.skip("the labels of the Nodes are this machine's")
    nodes = [each["metadata"]["name"] for each in json.loads(lab.kubectl("get", "nodes", "-o", "json"))["items"]]
    for number, node in enumerate(nodes):
        lab.kubectl("label", "node", node, f"{RACK}=r{number + 1}", "--overwrite")
        lab.kubectl("patch", "node", node, "--subresource=status", "--type=json", "-p", json.dumps(GPUS))
    try:
        lab.kubectl("apply", "-f", str(EXAMPLE))
        lab.timed("mixed: apply → every NodeSet has its nodes", lambda: all(map(partial(is_up, lab), NODESETS)), 240)
        yield lab
    finally:
        lab.ssh("root", "scancel --user=alice")
        lab.patch("slurmcluster", lab.cluster, {"topology": None, "partitions": None})
        lab.kubectl("delete", "nodeset", *NODESETS, "--ignore-not-found", "--timeout=90s")
        lab.patch("slurmcluster", lab.cluster, {"config": {"extraLines": {"gres": None}}})
        lab.kubectl("label", "node", *nodes, f"{RACK}-")
        lab.wait_available(180)


def is_up(lab: Lab, nodeset: str) -> bool:
    """Whether a NodeSet says that it has all its nodes."""
    status = lab.status("nodeset", nodeset)
    return bool(status) and condition(status, "Available")["status"] == "True"


@contextmanager
def taken(lab: Lab, node: str) -> Iterator[None]:
    """Have a job take a node of the partition gpu whole meanwhile."""
    number = lab.ssh("alice", f"sbatch --parsable -p gpu --exclusive -w {node} -o /dev/null --wrap 'sleep 600'").strip()
    lab.until(f"job {number} runs", lambda: "RUNNING" in lab.ssh("alice", f"squeue -h -j {number} -o %T"), 30)
    yield
    lab.ssh("alice", f"scancel {number}")
    lab.until(f"job {number} is over", lambda: not lab.ssh("alice", f"squeue -h --me -j {number}").strip(), 30)


def leaves(lab: Lab, word: str = "SwitchName") -> dict[str, str]:
    """The nodes below each switch, or in each block, as slurmctld has them."""
    shown = lab.ssh("alice", "timeout 5 scontrol show topology 2>&1 || true")
    return dict(re.findall(rf"^{word}=(\S+) .*?Nodes=(\S+)", shown, re.MULTILINE))


def is_placed(lab: Lab) -> bool:
    """Whether slurmctld has the nodes of the example where they lie."""
    found = leaves(lab)
    return (
        "h100-[0-1]" in found.get("r1", "")
        and "burst-[0-2]" in found.get("r1", "")
        and "a100-[0-1]" in found.get("r2", "")
    )


def test_nodes_lie_where_their_nodes_or_their_nodesets_say(mixed: Lab) -> None:
    """Every node is in a rack, those that sleep too; the wish of the pods and the labels of the Nodes agree."""
    mixed.timed("all nodes are up → slurmctld has them in their racks", lambda: is_placed(mixed), 120)
    mixed.until("TopologyKnown", lambda: condition(mixed.status(), "TopologyKnown")["status"] == "True")
    pod = mixed.pods("worker")[f"{mixed.cluster}-cpu-0"]
    node = mixed.look("node", pod["spec"]["nodeName"])
    assert leaf(mixed, "cpu-0") == node["metadata"]["labels"][RACK]


def leaf(lab: Lab, node: str) -> str:
    """The switch that a node is on; empty where there is none."""
    found = ((name, nodes) for name, nodes in leaves(lab).items() if name != "root")
    return next((name for name, nodes in found if node in names(lab, nodes)), "")


def names(lab: Lab, hostlist: str) -> list[str]:
    """The names of a host list."""
    return lab.ssh("alice", f"scontrol show hostnames '{hostlist}'").split()


def test_nodes_that_share_a_machine_are_as_large_as_their_pods(mixed: Lab) -> None:
    """Nodes of several NodeSets lie on one Node, and Slurm gives out of each what its pod may use."""
    pods = mixed.pods("worker")
    machines = {
        name: pods[f"{mixed.cluster}-{name}"]["spec"]["nodeName"] for name in ("cpu-0", "h100-0", "h100-1", "a100-0")
    }
    assert machines["h100-0"] == machines["h100-1"] != machines["a100-0"]
    assert machines["cpu-0"] in (machines["h100-0"], machines["a100-0"])
    for name, gres in (("cpu-0", "(null)"), ("h100-0", "gpu:h100:2"), ("a100-0", "gpu:a100:2")):
        slurmd = next(
            each for each in pods[f"{mixed.cluster}-{name}"]["spec"]["containers"] if each["name"] == "slurmd"
        )
        shown = dict(
            re.findall(r" (CPUTot|RealMemory|Gres)=(\S+)", mixed.ssh("alice", f"scontrol show node -o {name}"))
        )
        limits = slurmd["resources"]["limits"]
        assert shown == {"CPUTot": limits["cpu"], "RealMemory": limits["memory"].removesuffix("Mi"), "Gres": gres}


def test_a_job_runs_below_one_switch_although_nodes_of_lower_number_are_free(mixed: Lab) -> None:
    """With one H100 node taken whole, two nodes are the two A100s, and not one of each."""
    with taken(mixed, "h100-0"):
        assert mixed.ssh("alice", "srun -Q -p gpu -N2 hostname | sort").split() == ["a100-0", "a100-1"]
        assert mixed.ssh("alice", "srun -Q -p gpu -N3 hostname | sort").split() == ["a100-0", "a100-1", "h100-1"]


def test_one_job_has_two_kinds_of_gpus(mixed: Lab) -> None:
    """Each group has its own nodes with its own GPUs, and one step runs over both."""
    mixed.ssh("alice", "sed s/00:8/00:2/ > two.sh", stdin=SCRIPT.read_bytes())
    said = mixed.ssh(
        "alice", "sbatch --quiet --wait two.sh; grep -v '^srun: ' two-gpu-types.out | sort; rm two.sh two-gpu-types.out"
    ).splitlines()
    assert said[:4] == [f"{each.upper()}s: {each}-{number} has 2" for each in ("a100", "h100") for number in (0, 1)]
    assert sorted(line.split()[-1] for line in said[4:]) == ["a100-0", "a100-1", "h100-0", "h100-1"]


def test_a_partition_over_nodes_that_sleep_wakes_one(mixed: Lab) -> None:
    """A job in it runs on a node that had no pod."""
    assert mixed.ssh("alice", "timeout 150 srun -Q -p burst hostname").startswith("burst-")


def test_a_node_that_joins_later_is_found_in_its_rack(mixed: Lab) -> None:
    """A third A100 node: a job of three nodes has all of one rack, where before it would have had two racks."""
    mixed.kubectl("scale", "nodeset", "a100", "--replicas=3")
    mixed.timed("scale to 3 → slurmctld has it in its rack", lambda: "a100-[0-2]" in leaves(mixed).get("r2", ""), 120)
    assert mixed.ssh("alice", "srun -Q -p gpu -N3 hostname | sort").split() == ["a100-0", "a100-1", "a100-2"]
    mixed.kubectl("scale", "nodeset", "a100", "--replicas=2")
    mixed.until("two are left", lambda: sum("-a100-" in name for name in mixed.pods("worker")) == 2, 60)


def test_a_label_that_is_missing_is_told_and_mended(mixed: Lab) -> None:
    """The condition names the nodes, the label and the remedy; jobs run meanwhile, and the label is enough to make it good."""
    node = mixed.pods("worker")[f"{mixed.cluster}-cpu-0"]["spec"]["nodeName"]
    rack = mixed.look("node", node)["metadata"]["labels"][RACK]
    mixed.kubectl("label", "node", node, f"{RACK}-")
    lost = mixed.until("TopologyKnown is False", lambda: known(mixed, "False"), 60)
    assert lost.startswith("the location of cpu-0 ")
    assert f"lacks the label {RACK}: set the label" in lost
    mixed.until("slurmctld has cpu-0 apart", lambda: leaf(mixed, "cpu-0") == "none", 90)
    assert mixed.ssh("alice", "srun -Q -w cpu-0 hostname") == "cpu-0\n"
    mixed.kubectl("label", "node", node, f"{RACK}={rack}")
    mixed.until("TopologyKnown", lambda: condition(mixed.status(), "TopologyKnown")["status"] == "True", 60)
    mixed.until("slurmctld has it in its rack", lambda: leaf(mixed, "cpu-0") == rack, 90)


def known(lab: Lab, status: str) -> str:
    """The message of TopologyKnown while it has this status; empty otherwise."""
    found = condition(lab.status(), "TopologyKnown")
    return str(found["message"]) if found["status"] == status else ""


def test_blocks_serve_the_same_nodes(mixed: Lab) -> None:
    """The same racks as blocks of two: with one A100 node taken, a job of two nodes is in the other block."""
    blocks = {"type": "Block", "levels": [RACK], "blockSizes": [2]}
    mixed.patch("slurmcluster", mixed.cluster, {"topology": blocks})
    mixed.timed("type: Block → slurmctld plans in blocks", lambda: len(leaves(mixed, "BlockName")) == 2, 90)
    with taken(mixed, "a100-0"):
        assert mixed.ssh("alice", "srun -Q -p gpu -N2 hostname | sort").split() == ["h100-0", "h100-1"]
