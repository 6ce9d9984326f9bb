"""What Slurm 24.11 makes of our gres.conf. The devices are made up: every machine has them."""

import yaml

from local.paths import REPOSITORY
from soperator.api.nodeset import NodeSetSpec
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.jail import gres
from soperator.render.parts.model import Cluster, NodeSet
from soperator.render.slurm_conf import node_conf
from soperator.slurm.node import RestNode, read_node
from tests.slurm.machine import NEEDS, Slurm

pytestmark = NEEDS
SCRIPT = REPOSITORY / "examples/two-gpu-types.sh"
#: The example's lines for its made-up GPUs, for our nodes.
GPUS = (
    next(yaml.safe_load_all((REPOSITORY / "examples/mixed.yaml").read_text()))["spec"]["config"]["extraLines"]["gres"]
    .replace("h100-[0-99]", "w-[0-1]")
    .replace("a100-[0-99]", "w-[2-3]")
)
#: What a job is told of its GPUs, and what a program on CUDA is.
GIVEN = "sh -c 'echo $SLURM_STEP_GPUS $CUDA_VISIBLE_DEVICES'"


def test_one_job_has_two_kinds_of_gpus(slurm: Slurm) -> None:
    """The script of examples/: each group has its own nodes with its own GPUs, which are made up, and one step runs over both."""
    slurm.sh("cat > /etc/slurm/gres.conf", GPUS)
    slurm.sh(
        "cat > /etc/slurm/more.conf",
        "GresTypes=gpu\nSchedulerParameters=bf_interval=1,bf_max_time=30\nPartitionName=gpu Nodes=ALL\n",
    )
    slurm.begins()
    slurm.starts("w-0", "w-1", more="Gres=gpu:h100:2")
    slurm.starts("w-2", "w-3", more="Gres=gpu:a100:2")
    slurm.sh("cat > /tmp/job.sh", SCRIPT.read_text().replace("00:8", "00:2"))
    assert slurm.sh("cd /tmp; sbatch --quiet --wait job.sh") == ""
    # A step that has to wait until Slurm has ended the last one says so, and when it begins.
    said = slurm.sh("grep -v '^srun: ' /tmp/two-gpu-types.out | sort").splitlines()
    assert said[:4] == ["A100s: w-2 has 2", "A100s: w-3 has 2", "H100s: w-0 has 2", "H100s: w-1 has 2"]
    assert sorted(line.split()[-1] for line in said[4:]) == ["w-0", "w-1", "w-2", "w-3"]


def declared(name: str, **gpu: object) -> NodeSet:
    """A NodeSet of eight CPUs with these GPUs."""
    spec = {"clusterRef": {"name": "demo"}, "gpu": {"vendor": "nvidia", **gpu}, "resources": {"limits": {"cpu": "8"}}}
    return NodeSet("slurm", name, "uid", NodeSetSpec.model_validate(spec))


def test_shards_share_a_gpu_and_a_part_of_a_gpu_is_a_type_of_its_own(slurm: Slurm) -> None:
    """Jobs with shards are on one GPU, and a whole GPU is the other; a job with shards is told its GPU like one with GPUs."""
    nodesets = [
        declared("shared", count=2, type="l4", shards=8),
        declared("mig", count=1, type="1g.10gb", resourceName="nvidia.com/mig-1g.10gb"),
    ]
    spec = SlurmClusterSpec.model_validate({"jail": {"claim": {"name": "a"}}, "controller": {"state": {"name": "b"}}})
    cluster = Cluster("slurm", "demo", "uid", spec, gpus=gres.counted({each.name: each.spec for each in nodesets}))
    lines = gres.gres_conf(cluster).replace("shared-[0-16383]", "w-[0,2]").replace("mig-[0-16383]", "w-1")
    slurm.sh("mkdir -p /run/soperator/gpus; cd /run/soperator/gpus; ln -s /dev/full 0; ln -s /dev/tty 1")
    slurm.sh("cat > /etc/slurm/gres.conf", lines)
    slurm.sh("cat > /etc/slurm/more.conf", f"GresTypes={gres.gres_types(cluster)}\n")
    slurm.begins()
    for node, nodeset in zip(("w-0", "w-1"), nodesets, strict=True):
        words = [word for word in node_conf.node_conf(nodeset).split() if word.startswith(("Gres=", "Feature="))]
        slurm.starts(node, more=" ".join(words), cpus=8)
    slurm.sh("for n in 1 2 3; do sbatch -Q -w w-0 --gres=shard:1 -o /dev/null --wrap 'sleep 60'; done")
    slurm.until("squeue -h -t R | wc -l", "3")
    assert slurm.runs("-w w-0 --gres=shard:1", GIVEN) == ["0 0"]
    assert "busy" in "\n".join(slurm.runs("-w w-0 --gres=gpu:2 --immediate=1"))
    assert slurm.runs("-w w-0 --gres=gpu:1", GIVEN) == ["1 1"]
    assert slurm.runs("-w w-1 --gres=gpu:1g.10gb", GIVEN) == ["0 0"]
    shown = slurm.sh("sinfo -hN -n w-[0-1] -o '%N %T %G'").splitlines()
    assert shown == ["w-0 mixed gpu:l4:2,shard:l4:8", "w-1 idle gpu:1g.10gb:1"]
    words = node_conf.record(nodesets[0], [0])
    slurm.sh(f"scontrol create {' '.join(words).replace('shared-0', 'w-2')}")
    record = RestNode("w-2", features=["shared"], gres=slurm.sh("sinfo -hN -n w-2 -p all -o %G").strip())
    assert (record.gres, read_node(record).shape.gres) == ("gpu:l4:2,shard:l4:8", node_conf.shape(nodesets[0]).gres)
