"""Workers with GPUs: slurmctld knows their devices before they register."""

from soperator.kube import kinds
from tests.world.harness import Town, operating

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
GPUS = {"clusterRef": {"name": "demo"}, "replicas": 1, "gpu": {"vendor": "nvidia", "count": 2}}
LINE = "NodeName=h100-[0-16383] Name=gpu File=/run/soperator/gpus/[0-1] Flags=nvidia_gpu_env\n"


async def test_a_nodeset_with_gpus_waits_until_slurmctld_has_their_line():
    """Added to a running cluster, slurmctld reads its line of gres.conf, and its first worker comes after that."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
        town.apply(kinds.NODESET, "h100", GPUS)
        await town.settle(quiet=0.3)
        assert town.find(kinds.POD, "demo-h100-0") is None
        await town.told(kinds.NODESET, "h100", "slurmctld does not run with the gres.conf of the NodeSet's GPUs yet")
        town.trial_ends()
        await town.settle(quiet=1.2)
        assert town.find(kinds.CONFIGMAP, "demo-config")["data"]["gres.conf"] == LINE
        assert town.find(kinds.POD, "demo-h100-0") is not None


async def test_lines_of_ones_own_are_all_there_is():
    """With lines in config.extraLines.gres nothing is added, and the workers' entry links no device."""
    async with operating(Town()) as town:
        own = {"extraLines": {"gres": "NodeName=h100-[0-9] Name=gpu File=/dev/nvidia[0-1]"}}
        await town.up(CLUSTER | {"config": own}, {"h100": GPUS})
        assert town.find(kinds.CONFIGMAP, "demo-config")["data"]["gres.conf"] == own["extraLines"]["gres"] + "\n"
        pod = town.find(kinds.POD, "demo-h100-0")
        assert "SOPERATOR_GPUS" not in {each["name"] for each in pod["spec"]["containers"][0]["env"]}


async def test_a_nodeset_with_gpus_waits_for_lines_of_ones_own_too():
    """Lines and a NodeSet that are applied at once: slurmctld reads the lines, and the first worker comes after that."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
        own = {"extraLines": {"gres": "NodeName=h100-[0-9] Name=gpu File=/dev/nvidia[0-1]"}}
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"config": own})
        town.apply(kinds.NODESET, "h100", GPUS)
        await town.settle(quiet=0.3)
        assert town.find(kinds.POD, "demo-h100-0") is None
        town.trial_ends()
        await town.settle(quiet=1.2)
        assert town.find(kinds.CONFIGMAP, "demo-config")["data"]["gres.conf"] == own["extraLines"]["gres"] + "\n"
        assert town.find(kinds.POD, "demo-h100-0") is not None
