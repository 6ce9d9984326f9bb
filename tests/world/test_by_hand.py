"""Everything that the operator makes for a cluster, against everything that a person can do to it with kubectl, while a job runs.

The objects are those that there are, and not a list: one that is added later is tried too, or its kind is missed below.
"""

import asyncio
import copy
from contextlib import asynccontextmanager

import pytest

from soperator.kube import kinds
from soperator.kube.exec import Result
from soperator.kube.kinds import kind_of
from soperator.reconcile.cache.informers import CHILDREN
from soperator.render.parts import labels, names
from tests.unit.fake_world import Where
from tests.world.harness import NS, Town, operating
from tests.world.test_accounting import pod_is

#: Seconds within which what was done is undone.
SOON = 5.0
CLUSTER = {
    "jail": {"claim": {"name": "demo-jail"}},
    "controller": {"state": {"name": "demo-state"}, "replicas": 2},
    "accounting": {},
    "metrics": {"exporter": {}},
    "rest": {"users": {"tokens": [{"user": "ci", "secretName": "ci-token", "lifetime": "1h"}]}},
}
WORKERS = {"worker": {"clusterRef": {"name": "demo"}, "replicas": 2, "podTemplate": {}}}
OWNERS = {kinds.SLURMCLUSTER: "demo", kinds.NODESET: "worker"}
#: What an edit writes.
EDITED = "ZWRpdGVk"
#: Annotations with times: of the note beside Slurm's files, and of a token, which is signed anew.
DATED = {labels.TRANSACTION, labels.TOKEN}
#: Kinds that are not put back, each with the reason.
LEFT = {
    kinds.JOB: "who deletes a Job asks for another run of it, and its Pods' template cannot be edited",
}


async def execute(_api, target, _command):
    """What a command prints: the number of a user; nothing else is asked here."""
    return Result(0, "" if target.container == "slurmdbd" else "1000\n", "")


@asynccontextmanager
async def running():
    """A cluster with all that it can have, and a job on worker-0."""
    async with operating(Town(), execute=execute) as town:
        await town.up(CLUSTER, WORKERS)
        pod_is(town, "database", "mariadb", True)
        pod_is(town, "accounting", "slurmdbd", True)
        for _ in range(3):
            await town.settle(quiet=0.5)
            if any(each.startswith("demo-trial-") for each in town.names(kinds.POD)):
                town.trial_ends()
            await town.settle(quiet=1.2)
        pod_is_ready(town, "rest-users")
        town.slurm.run(7, "worker-0")
        await asyncio.sleep(5)
        yield town


def pod_is_ready(town, role):
    """Let the Deployment of a role have its pod."""
    template = town.find(kinds.DEPLOYMENT, f"demo-{role}")["spec"]["template"]
    meta = template["metadata"] | {"name": f"demo-{role}-0", "namespace": NS}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}}
    town.fake.world.seed(made | {"status": ready})


def ours(town):
    """Every object that the operator made and is to keep as it is, by kind and name."""
    found = {}
    for each in town.fake.world.objects.values():
        if each["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "soperator":
            kind = kind_of(each)
            if kind in CHILDREN and kind not in LEFT:
                found[kind, each["metadata"]["name"]] = each
    return found


def content(obj):
    """What an object says, without what Kubernetes adds."""
    if obj is None:
        return None
    added = ["uid", "resourceVersion", "generation", "managedFields", "creationTimestamp"]
    if obj["metadata"]["name"] == names.anchor("demo"):
        added.append("deletionTimestamp")  # its finalizer keeps it
    meta = {key: value for key, value in obj["metadata"].items() if key not in added}
    owners = [(each["kind"], each["name"]) for each in meta.get("ownerReferences", ())]
    notes = {key: value for key, value in meta.get("annotations", {}).items() if key not in DATED}
    data = {key: value == EDITED if key == "token" else value for key, value in obj.get("data", {}).items()}
    return {
        **obj,
        "metadata": meta | {"annotations": notes, "ownerReferences": sorted(owners)},
        "data": data,
        "status": {},
    }


def is_told(town, name):
    """Whether a condition that is False names the object."""
    found = town.status(kinds.SLURMCLUSTER, "demo")["conditions"]
    return any(each["status"] == "False" and name in each["message"] for each in found)


def delete(town, kind, obj):
    town.fake.world.remove(kind, NS, obj["metadata"]["name"])


def edit(town, kind, obj):
    """Another value in a field that the operator says; what is immutable nobody can edit."""
    changed = copy.deepcopy(obj)
    if obj.get("immutable"):
        return False
    match kind:
        case kinds.SECRET | kinds.CONFIGMAP:
            changed["data"][min(changed["data"])] = EDITED
        case kinds.STATEFULSET | kinds.DEPLOYMENT:
            changed["spec"]["template"]["spec"]["containers"][0]["image"] = "edited"
        case kinds.NETWORKPOLICY:
            changed["spec"]["podSelector"]["matchLabels"] = {"edited": "true"}
        case kinds.PDB:
            changed["spec"]["selector"]["matchLabels"] = {"edited": "true"}
        case kinds.SERVICE:
            changed["spec"]["selector"] = {"edited": "true"}
        case _:
            raise AssertionError(f"say here how {kind} is edited")
    return put(town, kind, changed)


def relabel(town, kind, obj):
    meta = obj["metadata"]
    return put(town, kind, obj | {"metadata": meta | {"labels": dict.fromkeys(meta["labels"], "edited")}})


def orphan(town, kind, obj):
    if "ownerReferences" not in obj["metadata"]:
        return False
    return put(town, kind, obj | {"metadata": {**obj["metadata"], "ownerReferences": []}})


def scale(town, kind, obj):
    if "replicas" not in obj.get("spec", {}):
        return False
    name = obj["metadata"]["name"]
    town.fake.world.change(kind, (NS, name), {"spec": {"replicas": 0}}, sub="scale")
    return True


def put(town, kind, obj):
    """What `kubectl replace` does."""
    town.fake.world.replace(Where.at(kind, NS, obj["metadata"]["name"]), obj, "kubectl")
    return True


@pytest.mark.parametrize("ending", [(), (kinds.NODESET, kinds.SLURMCLUSTER)], ids=["alive", "ending"])
@pytest.mark.parametrize("act", [delete, edit, relabel, orphan, scale])
async def test_what_a_person_does_to_an_object_of_the_operator_is_undone(act, ending):
    """Each object is as it was soon, no worker pod is replaced, and the job runs on; also while a deletion waits for that job."""
    async with running() as town:
        before = copy.deepcopy(ours(town))
        for kind in ending:
            town.fake.world.delete(Where.at(kind, NS, OWNERS[kind]), policy="Foreground")
        await asyncio.sleep(10 if ending else 0)
        pods = {
            each: town.find(kinds.POD, each)["metadata"]["uid"] for each in town.names(kinds.POD) if "worker" in each
        }
        assert len(pods) == (1 if ending else 2)
        wrong = {}
        for (kind, name), obj in before.items():
            if act(town, kind, town.find(kind, name)) is False:
                continue
            await asyncio.sleep(SOON)
            if content(town.find(kind, name)) != content(obj) and not is_told(town, name):
                wrong[f"{kind}/{name}"] = town.find(kind, name)
        assert not wrong, sorted(wrong)
        assert {each: town.find(kinds.POD, each)["metadata"]["uid"] for each in pods} == pods
        assert town.slurm.jobs[7]["job_state"] == ["RUNNING"]
        assert ("DRAIN" in town.slurm.nodes["worker-0"]["state"]) is bool(ending)
        assert all(town.find(kind, OWNERS[kind]) for kind in ending)


async def test_every_kind_that_the_operator_makes_is_tried():
    """A kind that is new is either put back, or stands in LEFT with its reason."""
    async with running() as town:
        assert {kind for kind, _ in ours(town)} == {*CHILDREN} - {*LEFT}
