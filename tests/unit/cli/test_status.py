"""`soperator status` shows a cluster on one screen, with few requests, and says what it could not read."""

import json
import time

import pytest
import yaml
from typer.testing import CliRunner

from soperator.cli.__main__ import app
from soperator.cli.cluster.status import gather, screen
from soperator.cli.support.errors import CliError
from soperator.cli.support.output import OutputFormat, serialized
from soperator.kube import kinds
from soperator.kube.api import Api
from tests.unit.cli.slurm_stub import SlurmStub, forbidden
from tests.unit.fake_api import FakeApi

RUN = CliRunner()
CONDITIONS = [
    {"type": "Available", "status": "True", "reason": "WorkersNotReady", "message": "1 of 2 workers is missing"},
    {"type": "Ready", "status": "False", "reason": "WorkersNotReady", "message": "1 of 2 workers is missing"},
    {"type": "JailReady", "status": "True", "reason": "Filled", "message": "the jail is filled"},
    {"type": "UpToDate", "status": "False", "reason": "Workers", "message": "login follows after all workers"},
]
STATUS = {
    "observedGeneration": 1,
    "conditions": CONDITIONS,
    "controller": {"replicas": 1, "readyReplicas": 1},
    "login": {"replicas": 2, "readyReplicas": 2},
    "workers": {"replicas": 2, "readyReplicas": 1},
    "address": "ssh -p 30022 root@192.0.2.7",
    "slurm": "24.11.5",
    "why": "1 of 2 workers is missing: pod demo-worker-1: it is starting",
}
COUNTS = {"desiredReplicas": 2, "readyReplicas": 1, "idle": 0, "allocated": 1, "draining": 1, "down": 0}
SETTLED = {"type": "Settled", "status": "False", "reason": "Rollout", "message": "rollout: 1 of 2 are new"}


def seeded(name="demo", nodesets=("worker",)):
    """An API server with one cluster and its NodeSets."""
    fake = FakeApi()
    seed(fake, kinds.SLURMCLUSTER, name, {}, STATUS)
    for each in nodesets:
        seed(fake, kinds.NODESET, each, {"clusterRef": {"name": name}}, {**COUNTS, "conditions": [SETTLED]})
    return fake


def seed(fake, kind, name, spec, status):
    meta = {"name": name, "namespace": "slurm", "generation": 1}
    fake.world.seed(
        {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec, "status": status}
    )


async def test_one_screen_has_what_people_ask_first(tmp_path):
    """Whether it is ready and why not, how to log in, nodes by state, jobs by state, drains, rollouts: in three requests."""
    fake, slurm = seeded(), SlurmStub(tmp_path)
    slurm.answers("squeue", [{"%T": "RUNNING"}, {"%T": "PENDING"}, {"%T": "PENDING"}, {"%T": "COMPLETING"}])
    reason = {
        "%N": "worker-1",
        "%u": "slurm(64030)",
        "%H": "2026-11-25T16:00:00",
        "%T": "drained",
        "%E": "soperator: rollout",
    }
    slurm.answers("sinfo", [reason])
    lines = list(screen(await gather(fake.api(), "slurm", "demo", slurm.run)))
    text = "\n".join(lines)
    for words in (
        "SlurmCluster demo in namespace slurm, Slurm 24.11.5",
        "Available      True",
        "Ready          False: 1 of 2 workers is missing: pod demo-worker-1: it is starting",
        "controller 1/1, login 2/2, rest 0/0, workers 1/2",
        "Log in         ssh -p 30022 root@192.0.2.7",
        "Jail           Filled",
        "Images         Workers: login follows after all workers",
        "Accounting     off",
        "Jobs           1 running, 2 pending, 1 completing",
    ):
        assert words in text
    assert (
        "worker   2       1      0     1          1         0     0       0           rollout: 1 of 2 are new" in lines
    )
    assert lines[-1].split() == ["worker-1", "drained", "slurm(64030)", "2026-11-25T16:00:00", "soperator:", "rollout"]
    assert fake.asked() == ["get slurmclusters slurm/demo", "list nodesets slurm"]
    assert [str(each) for each in slurm.targets] == ["slurm/demo-controller-0[slurmctld]"]


async def test_without_the_right_to_execute_commands_all_but_the_queue_is_there():
    """The line of the jobs has the refusal."""
    data = await gather(seeded().api(), "slurm", "demo", forbidden)
    assert next(each for each in screen(data) if "Jobs" in each).startswith(
        "  Jobs           unknown: squeue and sinfo: 403 Forbidden"
    )
    assert data["nodeSets"][0]["allocated"] == 1


async def test_a_job_cannot_forge_a_line(tmp_path):
    """A reason with line breaks and separators stays one record."""
    slurm = SlurmStub(tmp_path)
    evil = "x\n--\n 9 RUNNING\nworker-7\x1froot\x1fnow\x1fidle\x1fall is well"
    slurm.answers("sinfo", [{"%N": "worker-1", "%u": "eve", "%H": "now", "%T": "drained", "%E": evil}])
    data = await gather(seeded().api(), "slurm", "demo", slurm.run)
    assert (data["jobs"], len(data["drained"]), data["drained"][0]["reason"]) == ({}, 1, evil)


async def test_a_name_is_needed_only_among_several(tmp_path):
    """The only cluster of the namespace is meant otherwise; the error names those that are there."""
    slurm = SlurmStub(tmp_path)
    fake = seeded()
    assert (await gather(fake.api(), "slurm", "", slurm.run))["cluster"] == "demo"
    seed(fake, kinds.SLURMCLUSTER, "other", {}, {})
    with pytest.raises(CliError, match="namespace slurm: give the name of one of demo, other"):
        await gather(fake.api(), "slurm", "", slurm.run)
    with pytest.raises(
        CliError, match="SlurmCluster dmeo: not found in namespace slurm; the clusters there are demo, other"
    ):
        await gather(fake.api(), "slurm", "dmeo", slurm.run)


def test_json_and_yaml_have_the_same(monkeypatch):
    """And nothing in them controls a terminal."""
    fake = seeded()
    fake.world.find(kinds.SLURMCLUSTER, "slurm", "demo")["status"]["why"] = "\x1b]52;c;x\x07"
    monkeypatch.setattr(Api, "connect", lambda *_, **__: fake.api())
    outputs = [RUN.invoke(app, ["status", "-A", "-o", form]).output for form in ("json", "yaml")]
    assert json.loads(outputs[0]) == yaml.safe_load(outputs[1])
    assert json.loads(outputs[0])[0]["address"] == STATUS["address"]
    assert all(each.isascii() and "\x1b" not in each for each in outputs)
    assert serialized(OutputFormat.JSON, {"a": 1}) == '{\n  "a": 1\n}\n'


async def test_a_thousand_nodes_cost_the_same_requests(tmp_path):
    """40 NodeSets of 25 nodes each, all drained for a reason of its own, and 20,000 jobs: under a second of a core here."""
    fake, slurm = seeded(nodesets=[f"set-{n}" for n in range(40)]), SlurmStub(tmp_path)
    slurm.answers("squeue", [{"%T": "RUNNING"}] * 20000)
    drained = {"%u": "root", "%H": "now", "%T": "drained"}
    slurm.answers("sinfo", [{**drained, "%N": f"set-{n % 40}-{n // 40}", "%E": f"reason {n}"} for n in range(1000)])
    began = time.process_time()
    lines = list(screen(await gather(fake.api(), "slurm", "demo", slurm.run)))
    assert time.process_time() - began < 1.0
    assert len(fake.requests) == 2
    assert len(slurm.targets) == 1
    assert lines[-1] == "990 more reasons: soperator top, or sinfo -R on a login node"
