"""Upgrades: a newer operator restarts nothing by itself, and new images of Slurm come in Slurm's order."""

from dataclasses import replace

from soperator.kube import kinds
from soperator.render.parts import labels
from tests.golden.cases import DEFAULTS
from tests.world.harness import NS, Town, operating

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
WORKERS = {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}}
NEWER = replace(
    DEFAULTS, **{role: f"registry.test/{role}:2" for role in ("slurm", "login", "munge", "agents", "jail", "sssd")}
)
OLD, NEW = "registry.test/slurm:1", "registry.test/slurm:2"


def slurm_of(town, role):
    """The image of Slurm in the template of a role's workload."""
    kind = kinds.DEPLOYMENT if role == "rest" else kinds.STATEFULSET
    spec = town.find(kind, f"demo-{role}")["spec"]["template"]["spec"]
    names = {"slurmctld", "slurmrestd", "sackd"}
    (found,) = [each["image"] for each in spec["containers"] + spec.get("initContainers", []) if each["name"] in names]
    return found


def roles(town):
    """The image of Slurm of slurmctld, slurmrestd, login and the workers."""
    pods = [town.find(kinds.POD, f"demo-worker-{number}") for number in range(2)]
    workers = {pod["spec"]["containers"][0]["image"] for pod in pods if pod}
    return [*(slurm_of(town, role) for role in ("controller", "rest", "login")), workers]


def up_to_date(town):
    """The condition UpToDate."""
    conditions = town.status(kinds.SLURMCLUSTER, "demo")["conditions"]
    return next(each for each in conditions if each["type"] == "UpToDate")


def objects(town):
    """All that the operator made, but for what it tells of it."""
    told = ("status",)
    found = [each for each in town.fake.world.objects.values() if each["kind"] not in ("Event", "Lease")]
    kept = [{key: value for key, value in each.items() if key not in told} for each in found]
    for each in kept:  # what is remembered of a cluster is told too
        added = ("resourceVersion", "managedFields", "annotations") if each["metadata"]["name"] == "demo-anchor" else ()
        each["metadata"] = {key: value for key, value in each["metadata"].items() if key not in added}
    return {(each["kind"], each["metadata"]["name"]): each["spec" if "spec" in each else "metadata"] for each in kept}


VERSIONS = {OLD: "24.11.5", NEW: "26.05.5"}


async def tried(town, versions=VERSIONS, refused=""):
    """Let the images that slurmctld has and is to have be tried, when nothing has changed yet."""
    before = roles(town)
    assert town.image_trials_end(versions, refused)
    assert roles(town) == before
    await town.settle(quiet=0.4)


async def test_an_operator_with_other_images_changes_nothing():
    """Every object of the cluster stays as it is, no node is asked anything, and UpToDate says what is held back and how to have it."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
    before, asked = objects(town), len(town.slurm.asked)
    async with operating(town, defaults=NEWER):
        await town.settle(quiet=0.5)
        assert objects(town) == before
        assert town.slurm.asked[asked:] == []
        await told(town, "Held")
        said = up_to_date(town)
        assert said["message"].startswith(
            "this operator has other images for agents, jail, login, munge, slurm, sssd, but"
        )
        town.apply(kinds.NODESET, "worker", WORKERS["worker"] | {"replicas": 3})
        await town.settle(quiet=0.3)
        assert town.find(kinds.POD, "demo-worker-2")["spec"]["containers"][0]["image"] == OLD


async def test_a_request_takes_the_operators_images_over_in_slurms_order():
    """slurmctld first; slurmrestd and the workers when it runs; login when every worker does; then the request is carried out."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
    async with operating(town, defaults=NEWER):
        town.slurm.set("worker-1", "ALLOCATED")
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"upgrade": {"request": "2"}})
        await town.settle(quiet=0.4)
        assert up_to_date(town)["message"] == f"{NEW} is tried, beside {OLD}"
        await tried(town)
        assert roles(town) == [NEW, OLD, OLD, {OLD}]
        assert not [each for each in town.names(kinds.POD) if "trial" in each]
        await told(town, "Controller")
        assert up_to_date(town)["message"] == f"slurmctld must run {NEW} first; workers and login follow"
        town.restart("controller")
        await town.settle(quiet=0.4)
        assert roles(town) == [NEW, NEW, OLD, {OLD, NEW}]
        await told(town, "Workers")
        town.pods_run()
        town.slurm.set("worker-1", "IDLE", "DRAIN", reason="soperator: new pod template")
        await town.settle(quiet=0.5)
        town.pods_run()
        await town.settle(quiet=0.5)
        assert roles(town) == [NEW, NEW, NEW, {NEW}]
        await told(town, "AsAsked")
        kept = town.status(kinds.SLURMCLUSTER, "demo")["images"]
        assert kept["versions"] == VERSIONS
        assert (kept["request"], kept["defaults"]["slurm"], kept["defaults"]["agents"]) == (
            "2", NEW, "registry.test/agents:2",
        )  # fmt: skip


async def test_a_slurmctld_that_does_not_come_up_keeps_its_workers_as_they_are():
    """With an image whose slurmctld fails only on the real state nothing else has changed, and the former image brings all back."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, WORKERS)
        before = objects(town)
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"images": {"slurm": "broken:1"}})
        await town.settle(quiet=0.3)
        await tried(town, {OLD: "24.11.5", "broken:1": "24.11.5"})
        town.restart("controller", is_ready=False)
        await town.settle(quiet=0.3)
        assert roles(town) == ["broken:1", OLD, OLD, {OLD}]
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"images": {"slurm": ""}})
        await town.settle(quiet=0.3)
        town.restart("controller")
        await town.settle(quiet=0.3)
        after = objects(town)
        assert {key for key in before if after.get(key) != before[key]} <= {
            ("SlurmCluster", "demo"),
            ("Pod", "demo-controller-0"),
        }


async def test_a_cluster_may_go_with_its_operator():
    """With mode WithOperator a newer operator upgrades it as soon as it runs."""
    town, spec = Town(), CLUSTER | {"upgrade": {"mode": "WithOperator"}}
    async with operating(town):
        await town.up(spec, WORKERS)
    async with operating(town, defaults=NEWER):
        await town.settle(quiet=0.4)
        await tried(town)
        assert roles(town) == [NEW, OLD, OLD, {OLD}]


async def test_an_image_that_refuses_the_configuration_never_reaches_slurmctld():
    """Its words are told; another configuration is tried with it anew, and the former image in the spec ends it."""
    async with operating(Town()) as town:
        await town.up(CLUSTER, WORKERS)
        before = objects(town)
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"images": {"slurm": NEW}})
        await town.settle(quiet=0.4)
        await tried(town, {OLD: "24.11.5"}, "fatal: MpiDefault=pmix, and this Slurm has no plugin mpi/pmix")
        await told(town, "Refused")
        assert up_to_date(town)["message"].startswith(
            f"slurmctld keeps {OLD}, because {NEW} refuses its configuration: MpiDefault=pmix"
        )
        assert roles(town) == [OLD, OLD, OLD, {OLD}]
        changed = {"images": {"slurm": NEW}, "config": {"extraLines": {"slurm": "MpiDefault=none"}}}
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | changed)
        await town.settle(quiet=0.4)
        town.configuration_trial_ends()
        await town.settle(quiet=1.2)
        await tried(town)
        assert roles(town) == [NEW, OLD, OLD, {OLD}]
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"images": {"slurm": ""}})
        await town.settle(quiet=0.4)
        assert not [each for each in town.names(kinds.POD) if "image-trial" in each]
        assert {key for key in before if key[0] == "Pod"} <= set(objects(town))


async def test_slurmctld_does_not_go_back_to_an_older_release():
    """An older one would refuse the state, and be down: nothing restarts, and the condition says what to do; so also for another operator."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"images": {"slurm": NEW}})
        await town.settle(quiet=0.4)
        await tried(town)
        town.restart("controller")
        await town.settle(quiet=0.4)
        assert roles(town)[:2] == [NEW, NEW]
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"images": {"slurm": ""}})
        await told(town, "Downgrade")
        assert (
            f"slurmctld keeps {NEW}: {OLD} has Slurm 24.11.5, which refuses the state that Slurm 26.05.5 has written"
            in up_to_date(town)["message"]
        )
        assert roles(town)[:2] == [NEW, NEW]
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"images": {"slurm": "elsewhere:24.11"}})
        await town.settle(quiet=0.4)
        await tried(town, {"elsewhere:24.11": "24.11.5"})
        await told(town, "Downgrade")
    async with operating(town):
        town.restart("controller", is_ready=False)
        await town.settle(quiet=0.4)
        assert roles(town)[:2] == [NEW, NEW]


async def told(town, reason, longest=6.0):
    """Wait until UpToDate has this reason; it is progress, and told every few seconds."""
    import asyncio

    end = asyncio.get_running_loop().time() + longest
    while up_to_date(town)["reason"] != reason:
        assert asyncio.get_running_loop().time() < end, up_to_date(town)
        await asyncio.sleep(0.05)


async def test_an_operator_that_makes_other_pods_of_the_same_spec_restarts_nothing():
    """Pods and workloads of the former operator count as its own; what is new, or what somebody changes, is made its way, and nothing else."""
    town, later = Town(), replace(DEFAULTS, cluster_domain="later.local")
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        await told(town, "AsAsked")
    before, asked = objects(town), len(town.slurm.asked)
    async with operating(town, defaults=later, renderer="2"):
        await town.settle(quiet=0.5)
        assert objects(town) == before
        assert town.slurm.asked[asked:] == []
        town.apply(kinds.NODESET, "worker", WORKERS["worker"] | {"replicas": 3})
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"login": {"replicas": 2}})
        await town.settle(quiet=0.5)
        town.pods_run()
        await town.settle(quiet=0.5)
        changed = {key for key, each in objects(town).items() if before.get(key) != each}
        assert changed == {
            ("SlurmCluster", "demo"), ("NodeSet", "worker"), ("StatefulSet", "demo-login"), ("Pod", "demo-worker-2"),
        }  # fmt: skip
    async with operating(town, defaults=later, renderer="2"):
        await town.settle(quiet=0.5)
        assert {key for key, each in objects(town).items() if before.get(key) != each} == changed
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"upgrade": {"request": "later"}})
        await town.settle(quiet=0.5)
        assert "later.local" in str(town.find(kinds.STATEFULSET, "demo-controller"))
        assert "POST node/worker-0" in town.slurm.asked or "POST node/worker-1" in town.slurm.asked


async def test_a_change_that_the_former_operator_did_not_come_to_is_made():
    """A spec edited while no operator ran is no reason to leave pods as they are."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
        await told(town, "AsAsked")
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1, "extraConf": "TmpDisk=7"})
    async with operating(town, renderer="2"):
        await town.settle(quiet=0.5)
        assert "TmpDisk=7" in str(town.find(kinds.POD, "demo-worker-0"))


def of_a_former_operator(town):
    """Let the cluster be as an operator made it that wrote another slurm.conf for the same spec, named 0."""
    live, name = town.find(kinds.CONFIGMAP, "demo-config"), town.running
    said = live["metadata"]["annotations"][labels.TRANSACTION].replace(name, "0" * 16)
    data = {"slurm.conf": live["data"]["slurm.conf"].replace(name, "0" * 16)}
    annotated = {"metadata": {"annotations": {labels.TRANSACTION: said}}, "data": data}
    town.fake.world.change(kinds.CONFIGMAP, (NS, "demo-config"), annotated)
    rendered = town.status(kinds.SLURMCLUSTER, "demo")["rendered"]
    assert rendered["wanted"]["config"] == name
    rendered["wanted"]["config"] = town.running = "0" * 16
    town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), {"status": {"rendered": rendered}}, sub="status")
    forgotten = {"metadata": {"annotations": {labels.MEMORY: None}}}  # it remembered in the status alone
    town.fake.world.change(kinds.CONFIGMAP, (NS, "demo-anchor"), forgotten)


async def test_an_operator_that_writes_another_slurm_conf_for_the_same_spec_keeps_the_one_that_is_there():
    """Nothing is tried, written or told to slurmctld until somebody asks for it, and UpToDate says so; an edit elsewhere is no such request."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        await told(town, "AsAsked")
    of_a_former_operator(town)
    before, asked = objects(town), len(town.slurm.asked)
    async with operating(town, renderer="2"):
        await told(town, "Held")
        assert up_to_date(town)["message"].startswith("this operator version renders another slurm.conf for this spec;")
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"login": {"replicas": 2}})
        await town.settle(quiet=0.5)
        changed = {key for key, each in objects(town).items() if before.get(key) != each}
        assert changed == {("SlurmCluster", "demo"), ("StatefulSet", "demo-login")}
        assert town.slurm.asked[asked:] == []
    async with operating(town, renderer="2"):
        await town.settle(quiet=0.5)
        assert town.mounted() == "0" * 16
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"upgrade": {"request": "later"}})
        await town.settle(quiet=0.5)
        town.trial_ends()
        await town.settle(quiet=1.2)
        assert town.mounted() == town.running != "0" * 16
        await told(town, "AsAsked")


async def test_an_edit_of_the_configuration_takes_the_present_operators_slurm_conf_along():
    """One file cannot be of two operators."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        await told(town, "AsAsked")
    of_a_former_operator(town)
    async with operating(town, renderer="2"):
        await told(town, "Held")
        town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"config": {"extraLines": {"slurm": "MaxStepCount=5"}}})
        await town.settle(quiet=0.5)
        town.trial_ends()
        await town.settle(quiet=1.2)
        assert town.mounted() == town.running != "0" * 16
        assert "MaxStepCount=5" in town.find(kinds.CONFIGMAP, "demo-config")["data"]["slurm.conf"]
