"""A SlurmCluster and its NodeSets, from the first apply through change and trouble."""

import asyncio

import pytest

from soperator.kube import kinds
from tests.unit.fake_world import Fault
from tests.world.harness import NS, Town, operating, until

CLUSTER = {"jail": {"claim": {"name": "demo-jail"}}, "controller": {"state": {"name": "demo-state"}}}
WORKERS = {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2}}


@pytest.fixture
async def town():
    """An operator that runs over empty fakes."""
    async with operating(Town()) as made:
        yield made


async def test_a_cluster_comes_up_and_says_so(town):
    """When all pods are ready and Slurm knows the workers, it is available and nothing is left to say."""
    await town.up(CLUSTER, WORKERS)
    status = town.status(kinds.SLURMCLUSTER, "demo")
    assert status["slurm"] == "24.11.5"
    assert (*(status[role]["summary"] for role in ("controller", "login", "rest", "workers")), status["why"]) == (
        "1/1",
        "1/1",
        "1/1",
        "2/2",
        "",
    )
    assert status["conditions"][0] | {"lastTransitionTime": ""} == {
        "type": "Available", "status": "True", "reason": "AllReady", "message": "", "observedGeneration": 1, "lastTransitionTime": "",
    }  # fmt: skip


async def test_login_and_workers_wait_for_the_jail_and_say_why(town):
    """Before the jail is filled there is no login and no worker, and both objects name the Job."""
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER)
    town.apply(kinds.NODESET, "worker", WORKERS["worker"])
    await town.settle(quiet=0.5)
    assert town.names(kinds.STATEFULSET) == ["demo-controller"]
    assert town.names(kinds.POD) == []
    await town.told(kinds.SLURMCLUSTER, "demo", "Job demo-populate")
    assert "Job demo-populate" in town.says(kinds.NODESET, "worker")


async def test_a_settled_cluster_costs_no_request(town):
    """Once all is as wanted, the operator asks the API server for nothing."""
    await town.up(CLUSTER, WORKERS)
    before = len(town.fake.requests)
    await town.settle(quiet=0.5)
    assert town.fake.requests[before:] == []


async def test_a_restarted_operator_writes_nothing():
    """What is right stays unwritten, also for an operator that has just started."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
    before = len(town.fake.writes())
    async with operating(town):
        await town.settle(quiet=0.3)
    assert town.fake.writes()[before:] == []


async def test_the_writes_are_as_many_as_the_children_and_thirteen(town):
    """From the first apply to availability, one write for each child and thirteen besides, two of them for what is remembered."""
    await town.up(CLUSTER, WORKERS)
    children = [
        each
        for each in town.fake.world.objects.values()
        if each["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by")
    ]
    writes = [each for each in town.fake.writes() if " events " not in each]
    made_by_us = [each for each in children if each["kind"] != "Pod" or each["spec"].get("hostname")]
    assert len(writes) <= len(made_by_us) + 13


async def test_scale_in_drains_waits_and_then_deletes(town):
    """The surplus worker keeps its pod until Slurm says that its job has ended; then pod and record go."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.set("worker-0", "ALLOCATED")
    town.slurm.set("worker-1", "ALLOCATED")
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1})
    await town.settle(quiet=0.3)
    assert "POST node/worker-1" in town.slurm.asked
    assert "demo-worker-1" in town.names(kinds.POD)
    assert town.status(kinds.NODESET, "worker")["why"] == "scale-in: worker-1 drains"
    town.slurm.set("worker-1", "IDLE", "DRAIN", reason="soperator: scale-in")
    await town.settle(quiet=0.3)
    assert "demo-worker-1" not in town.names(kinds.POD)
    assert "worker-1" not in town.slurm.nodes


async def test_nothing_is_removed_while_slurm_is_silent(town):
    """A slurmrestd that does not answer makes every worker busy."""
    await town.up(CLUSTER, WORKERS)
    town.slurm.down = True
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 0})
    await town.settle(quiet=0.3)
    assert len([name for name in town.names(kinds.POD) if "worker" in name]) == 2


async def test_a_deleted_worker_comes_back_under_its_name(town):
    """A pod that somebody deletes is made again."""
    await town.up(CLUSTER, WORKERS)
    town.fake.world.remove(kinds.POD, NS, "demo-worker-0")
    await town.settle()
    assert "demo-worker-0" in town.names(kinds.POD)


async def test_a_missing_claim_is_named_and_nothing_is_made(town):
    """The condition names the field, the claim and the remedy."""
    town.apply(kinds.SLURMCLUSTER, "demo", {"jail": {"claim": {"name": "nowhere"}}})
    await town.settle()
    why = town.says(kinds.SLURMCLUSTER, "demo")
    assert "spec.jail.claim.name" in why
    assert "nowhere" in why
    assert town.names(kinds.STATEFULSET) == []


async def test_a_bad_edit_touches_nothing_that_runs(town):
    """A line that contradicts what we own is told with its line number, and no object changes."""
    await town.up(CLUSTER, WORKERS)
    before = town.find(kinds.CONFIGMAP, "demo-config")
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"config": {"extraLines": {"slurm": "ClusterName=other"}}})
    await town.settle()
    status = town.status(kinds.SLURMCLUSTER, "demo")
    accepted = next(each for each in status["conditions"] if each["type"] == "SpecAccepted")
    assert accepted["status"] == "False"
    assert "ClusterName" in accepted["message"]
    assert status["conditions"][0]["status"] == "True"
    assert town.find(kinds.CONFIGMAP, "demo-config") == before


async def test_a_nodeset_without_its_cluster_says_so(town):
    """The reference that leads nowhere is named."""
    town.apply(kinds.NODESET, "lost", {"clusterRef": {"name": "nobody"}, "replicas": 1})
    await town.settle()
    assert "nobody" in town.says(kinds.NODESET, "lost")


async def test_deleting_the_populate_job_takes_no_login_away(town):
    """A jail that is looked at again disturbs nobody who works in it."""
    await town.up(CLUSTER, WORKERS)
    town.fake.world.remove(kinds.JOB, NS, "demo-populate")
    await town.settle()
    assert "demo-login" in town.names(kinds.STATEFULSET)
    assert "demo-populate" in town.names(kinds.JOB)


async def test_what_the_api_server_refuses_is_shown_on_the_object(town):
    """A pod that is refused is told on its NodeSet with the server's own words."""
    town.fake.world.rules.append(
        lambda _old, new: "spec.containers[0].image: bad reference" if new["kind"] == "Pod" else None
    )
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER)
    town.apply(kinds.NODESET, "worker", WORKERS["worker"])
    await town.settle()
    town.fill_jail()
    await town.settle(quiet=0.5)
    status = town.status(kinds.NODESET, "worker")
    assert "bad reference" in status["why"]
    assert status["conditions"][0]["status"] == "False"


async def test_a_missing_secret_is_named_until_it_is_there(town):
    """A NodeSet whose volume names a Secret that does not exist says so, and goes on by itself when it is made."""
    await town.up(CLUSTER, WORKERS)
    volumes = [{"name": "licence", "secret": {"secretName": "licence"}}]
    town.apply(kinds.NODESET, "extra", {"clusterRef": {"name": "demo"}, "replicas": 1, "volumes": volumes})
    await town.settle()
    assert "spec.volumes[0].secret.secretName: licence" in town.says(kinds.NODESET, "extra")
    town.fake.world.seed({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "licence", "namespace": NS}})
    await town.settle()
    assert "demo-extra-0" in town.names(kinds.POD)


async def test_a_refused_cluster_leaves_its_workers_alone(town):
    """A spec with a problem rolls no worker, for their pods would follow it."""
    await town.up(CLUSTER, WORKERS)
    before = town.find(kinds.POD, "demo-worker-0")["metadata"]["uid"]
    submounts = [{"path": "/data", "claimName": "nope"}]
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"jail": CLUSTER["jail"] | {"submounts": submounts}})
    await town.settle(quiet=0.4)
    assert town.find(kinds.POD, "demo-worker-0")["metadata"]["uid"] == before
    assert town.slurm.asked == []
    assert "nope" in town.says(kinds.NODESET, "worker")


async def test_a_cluster_says_whether_root_of_the_jail_is_confined(town):
    """Where the API server drops hostUsers, a condition says what that means."""
    await town.up(CLUSTER, WORKERS)
    confined = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}["Confined"]
    assert confined["status"] == "False"
    assert "demo-login-0" in confined["message"]


async def test_a_cluster_says_which_nodeset_takes_a_wall_down(town):
    """A sidecar with every right on the Node is allowed, and named by its field."""
    sidecar = {"name": "tool", "image": "tool:1", "securityContext": {"privileged": True}}
    loose = WORKERS["worker"] | {"podTemplate": {"spec": {"containers": [sidecar]}}}
    await town.up(CLUSTER, {"worker": loose})
    confined = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}["Confined"]
    assert confined["status"] == "False"
    assert "NodeSet worker: spec.podTemplate.spec.containers[0].securityContext.privileged" in confined["message"]


async def test_an_image_that_cannot_be_pulled_is_told_with_its_field(town):
    """The NodeSet names the pod, the image and where it is said."""
    await town.up(CLUSTER, WORKERS)
    waiting = {"reason": "ErrImagePull", "message": 'failed to pull "localhost/nothing:1"'}
    town.fake.world.change(
        kinds.POD,
        (NS, "demo-worker-1"),
        {
            "status": {
                "phase": "Pending",
                "conditions": [{"type": "Ready", "status": "False"}],
                "containerStatuses": [
                    {"name": "slurmd", "ready": False, "restartCount": 0, "state": {"waiting": waiting}}
                ],
            }
        },
        sub="status",
    )
    await town.settle(quiet=0.3)
    why = town.says(kinds.NODESET, "worker")
    assert "demo-worker-1" in why
    assert "localhost/nothing:1" in why
    assert "correct spec.image of NodeSet worker or spec.images of SlurmCluster demo" in why


async def test_a_rollout_lets_the_new_pod_register_anew(town):
    """A node of the former template is drained, loses its pod and its record in Slurm, and only then gets a new pod."""
    await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
    asked = len(town.slurm.asked)
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 1, "extraConf": "TmpDisk=7"})
    await town.settle(quiet=0.3)
    pod = town.find(kinds.POD, "demo-worker-0")
    said = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
    assert "TmpDisk=7" in said["SOPERATOR_NODE_CONF"]
    assert town.slurm.asked[asked:] == ["POST node/worker-0", "GET jobs/", "DELETE node/worker-0"]
    assert "worker-0" not in town.slurm.nodes


async def test_a_rollout_says_what_is_new(town):
    """The drain's reason in Slurm, the status and the Event have the first difference, which is read once."""
    await town.up(CLUSTER, WORKERS)
    for name in ("worker-0", "worker-1"):
        town.slurm.set(name, "ALLOCATED")
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 2, "extraConf": "TmpDisk=7"})
    await town.told(kinds.NODESET, "worker", "rollout: 0 of 2 are new (TmpDisk=7)")
    await town.settle(quiet=0.3)
    reasons = {each["reason"] for each in town.slurm.nodes.values()} - {""}
    assert reasons == {"soperator: new pod template: TmpDisk=7"}
    read = [
        each
        for each in town.fake.requests
        if each.method == "GET" and not each.is_metadata and (each.where.name or "").startswith("demo-worker-")
    ]
    assert len(read) == 1


async def test_what_is_new_in_login_and_controller_is_an_event(town):
    """Kubernetes replaces their pods; the Event names the StatefulSet and the first difference, once, and nothing is read where nothing changes."""
    await town.up(CLUSTER, WORKERS)

    def said():
        found = [each for each in town.fake.world.objects.values() if each["kind"] == "Event"]
        return sorted(each["note"] for each in found if each["reason"] == "Rollout")

    def read():
        found = [each for each in town.fake.requests if each.method == "GET" and not each.is_metadata]
        return [each for each in found if each.where.name == "demo-login"]

    assert (said(), read()) == ([], [])
    size = {"limits": {"memory": "8Gi"}}
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"login": {"resources": size}})
    await town.settle(quiet=0.5)
    (text,) = said()
    assert text.startswith("StatefulSet demo-login: new pod template: resources.limits.memory of container sshd ")
    assert text.endswith(" → 8Gi")
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"login": {"resources": size, "replicas": 2}})
    await town.settle(quiet=0.5)
    assert said() == [text]


async def test_a_rollout_begins_with_the_node_that_is_idle_now(town):
    """A job that began since the last poll makes its node busy: the other one is drained first."""
    await town.up(CLUSTER, WORKERS)
    await town.poll_no_more()
    town.slurm.set("worker-0", "ALLOCATED")
    asked = len(town.slurm.asked)
    town.apply(kinds.NODESET, "worker", {"clusterRef": {"name": "demo"}, "replicas": 2, "extraConf": "TmpDisk=7"})
    await town.settle(quiet=0.3)
    assert town.slurm.asked[asked:][:1] == ["POST node/worker-1"]


async def test_the_record_of_a_former_template_goes_although_the_last_poll_did_not_know_of_its_drain(town):
    """Before a pod comes back under a name that Slurm knows, Slurm is asked again."""
    await town.up(CLUSTER, WORKERS)
    await town.poll_no_more()
    town.slurm.set("worker-0", "IDLE", "DRAIN", reason="soperator: new pod template")
    town.fake.world.remove(kinds.POD, NS, "demo-worker-0")
    await town.settle()
    assert "demo-worker-0" in town.names(kinds.POD)
    assert "DELETE node/worker-0" in town.slurm.asked


async def test_an_operator_that_is_upgraded_before_its_definitions_goes_on_without_the_new_kind():
    """No kind HealthCheck: clusters are made and kept all the same, and a check that comes with the kind runs."""
    town = Town()
    town.fake.faults.append(Fault("*", "healthchecks", 404, "NotFound", times=1_000_000))
    async with operating(town):
        await asyncio.sleep(10.0)
        await town.up(CLUSTER, {"worker": {"clusterRef": {"name": "demo"}, "replicas": 1}})
        assert "worker-0" in town.slurm.nodes
        assert town.slurm.jobs == {}
        town.fake.faults.clear()
        town.apply(kinds.HEALTHCHECK, "disk", {"clusterRef": {"name": "demo"}, "script": "#!/bin/sh\ntrue\n"})
        await asyncio.sleep(40.0)
        assert town.find(kinds.HEALTHCHECK, "disk")["status"]["why"]


async def test_the_exporter_comes_and_goes_with_its_field(town):
    """Metrics switched on later restart nothing, and switched off leave nothing."""
    await town.up(CLUSTER, WORKERS)
    pods = town.names(kinds.POD)
    town.apply(kinds.SLURMCLUSTER, "demo", {**CLUSTER, "metrics": {"exporter": {}}})
    await town.settle(quiet=0.5)
    for kind in (kinds.DEPLOYMENT, kinds.SERVICE, kinds.NETWORKPOLICY):
        assert "demo-exporter" in town.names(kind)
    assert (served := condition(town, "MetricsServed"))["status"] == "False"
    assert served["message"] == "the exporter: 1 pod is not created yet"
    town.daemons_run()
    town.pods_run()
    await town.settle(quiet=0.5)
    assert condition(town, "MetricsServed")["status"] == "True"
    assert condition(town, "Available")["status"] == "True"
    assert {each for each in town.names(kinds.POD) if "exporter" not in each} == set(pods)
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"metrics": {"exporter": None}})
    await town.settle(quiet=0.5)
    for kind in (kinds.DEPLOYMENT, kinds.SERVICE, kinds.NETWORKPOLICY):
        assert "demo-exporter" not in town.names(kind)
    await until(lambda: condition(town, "MetricsServed") == {})


def condition(town, name):
    """A condition of the cluster; empty where there is none."""
    found = town.status(kinds.SLURMCLUSTER, "demo")["conditions"]
    return next((each for each in found if each["type"] == name), {})


async def test_a_role_that_somebody_scaled_to_none_says_so(town):
    """While a spec is refused nothing of the cluster is written, so the sentence has to name the object."""
    await town.up(CLUSTER, WORKERS)
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"config": {"extraLines": {"slurm": "MaxJobCont=5"}}})
    await town.told(kinds.SLURMCLUSTER, "demo", "write MaxJobCount")
    town.fake.world.change(kinds.DEPLOYMENT, (NS, "demo-rest"), {"spec": {"replicas": 0}}, sub="scale")
    town.fake.world.remove(kinds.POD, NS, "demo-rest-0")
    await town.told(kinds.SLURMCLUSTER, "demo", "slurmrestd 0/1 ready: its Deployment demo-rest has 0 replicas")
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"config": {"extraLines": {"slurm": ""}}})
    await until(lambda: town.find(kinds.DEPLOYMENT, "demo-rest")["spec"]["replicas"] == 1)


async def test_a_restarted_operator_undoes_what_kubectl_scale_did():
    """No manager's entry tells of it, as with a real API server."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
    town.fake.world.change(kinds.DEPLOYMENT, (NS, "demo-rest"), {"spec": {"replicas": 0}}, sub="scale")
    town.fake.world.change(kinds.STATEFULSET, (NS, "demo-login"), {"spec": {"replicas": 0}}, sub="scale")
    async with operating(town):
        await until(lambda: town.find(kinds.DEPLOYMENT, "demo-rest")["spec"]["replicas"] == 1)
        await until(lambda: town.find(kinds.STATEFULSET, "demo-login")["spec"]["replicas"] == 1)


async def test_a_nodeset_that_is_refused_is_not_missed(town):
    """It says itself what is wrong; the cluster counts its workers as far as there are any."""
    await town.up(CLUSTER, WORKERS)
    town.apply(kinds.NODESET, "other", {"clusterRef": {"name": "demo"}, "replicas": 2, "extraConf": "Comment=x"})
    await town.told(kinds.NODESET, "other", "no such setting")
    await town.settle(quiet=0.5)
    status = town.status(kinds.SLURMCLUSTER, "demo")
    assert (status["workers"]["summary"], status["why"]) == ("2/2", "")
    town.apply(kinds.NODESET, "worker", WORKERS["worker"] | {"replicas": 5, "extraConf": "Comment=x"})
    await town.told(kinds.NODESET, "worker", "no such setting")
    await town.settle(quiet=0.5)
    assert town.status(kinds.SLURMCLUSTER, "demo")["workers"] == {"replicas": 2, "readyReplicas": 2, "summary": "2/2"}
