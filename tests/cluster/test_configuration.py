"""Slurm's configuration is a transaction: a good change reaches every daemon under a running job, a bad one reaches none, or is taken back."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.lab import Lab, condition

pytestmark = pytest.mark.cluster

#: Well with an empty state, as in the trial; but a slurmctld that has jobs ends with it.
LUA = """
function slurm_job_submit(job, partitions, uid) return slurm.SUCCESS end
function slurm_job_modify(job, record, partitions, uid) return slurm.SUCCESS end
if io.open("/var/spool/slurmctld/job_state") then error("there is a state") end
"""
PROLOG = {"name": "count", "text": "#!/bin/sh\necho $SLURM_JOB_ID >> /tmp/prologs\n"}


@pytest.fixture(autouse=True)
def restored(lab: Lab) -> Iterator[None]:
    """After each test the configuration is as before, and every daemon has it."""
    yield
    lab.patch("slurmcluster", lab.cluster, {"config": None})
    lab.wait_available()


def applied(lab: Lab) -> dict[str, Any]:
    """The condition ConfigApplied."""
    return condition(lab.status(), "ConfigApplied")


def controller(lab: Lab) -> tuple[str, int]:
    """slurmctld's pod, and how often slurmctld was restarted in it."""
    pod = lab.pods("controller")["demo-controller-0"]
    return pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"]


def files(lab: Lab) -> dict[str, str]:
    """What is mounted."""
    found: dict[str, str] = json.loads(lab.kubectl("get", "configmap", "demo-config", "-o", "json"))["data"]
    return found


def taken_back(lab: Lab) -> str:
    """What is told of a configuration that was taken back; empty while none is."""
    found = applied(lab)
    return str(found["message"]) if found["reason"] == "RolledBack" else ""


def test_a_good_change_reaches_every_daemon_under_a_running_job(lab: Lab, alice: str) -> None:
    """No pod is replaced, the job goes on, and the condition counts slurmctld and both nodes; scripts come with it."""
    held, before, began = lab.hold("worker-0"), controller(lab), time.monotonic()
    lab.patch(
        "slurmcluster", lab.cluster, {"config": {"extraLines": {"slurm": "MaxStepCount=4321"}, "prolog": [PROLOG]}}
    )
    lab.until("it is tried first", lambda: applied(lab)["reason"] == "Trying", 20)
    assert "MaxStepCount" not in files(lab)["slurm.conf"]
    lab.until("slurmctld has it", lambda: "= 4321" in lab.ssh(alice, "scontrol show config | grep MaxStepCount"), 60)
    lab.timings.note("configuration: kubectl patch → slurmctld runs with it", time.monotonic() - began)
    lab.until("every daemon has it", lambda: applied(lab)["message"].startswith("4/4 daemons have read"), 60)
    lab.timings.note("configuration: kubectl patch → every daemon has read it", time.monotonic() - began)
    assert controller(lab) == before
    assert "MaxStepCount=4321" in lab.ssh(alice, "cat /run/slurm/conf/slurm.conf")
    number = lab.ssh(alice, "srun -w worker-1 printenv SLURM_JOB_ID").strip()
    assert number in lab.kubectl("exec", "demo-worker-1", "-c", "slurmd", "--", "cat", "/tmp/prologs").split()
    held.let_go()


def test_a_misspelt_setting_is_told_with_its_line(lab: Lab) -> None:
    """It is not even tried."""
    before, mounted = controller(lab), files(lab)
    lab.patch("slurmcluster", lab.cluster, {"config": {"extraLines": {"slurm": "# mine\nMaxJobCont=4321"}}})
    lab.until("it is told", lambda: "line 2: MaxJobCont" in condition(lab.status(), "SpecAccepted")["message"], 10)
    assert "write MaxJobCount" in condition(lab.status(), "SpecAccepted")["message"]
    assert (controller(lab), files(lab)) == (before, mounted)
    assert lab.pods("trial") == {}


def test_what_only_slurmctld_knows_to_be_wrong_is_refused_by_one_of_its_own(lab: Lab, alice: str) -> None:
    """The condition has its sentence and the line of the spec; the real one has not heard of it, and takes jobs."""
    before, mounted, began = controller(lab), files(lab), time.monotonic()
    lab.patch("slurmcluster", lab.cluster, {"config": {"extraLines": {"slurm": "\nPriorityType=priority/nothing"}}})
    lab.until("it is refused", lambda: applied(lab)["reason"] == "Refused", 60)
    lab.timings.note("configuration: kubectl patch → refused by a slurmctld of its own", time.monotonic() - began)
    assert "priority/nothing" in applied(lab)["message"]
    assert "priority/nothing" in lab.says()
    assert condition(lab.status(), "Available")["status"] == "True"
    assert (controller(lab), files(lab)) == (before, mounted)
    assert lab.ssh(alice, "srun -w worker-1 hostname") == "worker-1\n"


def test_what_would_end_every_slurmd_is_refused(lab: Lab, alice: str) -> None:
    """slurmctld has nothing against it; a slurmd beside it has."""
    lab.patch("slurmcluster", lab.cluster, {"config": {"extraLines": {"slurm": "TaskPlugin=task/nothing"}}})
    lab.until("it is refused", lambda: "task/nothing" in applied(lab)["message"], 60)
    assert applied(lab)["reason"] == "Refused"
    assert lab.ssh(alice, "srun -N2 hostname | sort") == "worker-0\nworker-1\n"


def test_files_and_scripts_of_a_configmap_reach_jobs_and_follow_it(lab: Lab, alice: str) -> None:
    """A task's prolog runs as the user in the jail, slurmctld's as slurm; new content comes by itself, and what is gone ends nothing."""
    ref = {"name": "site-slurm", "key": "site.sh"}
    site = '#!/bin/sh\necho "export SITE=north"\necho "print $(test $(id -u) != 0 && echo as the user)"\n'
    counts = "#!/bin/sh\necho $SLURM_JOB_ID $(id -u) >>/tmp/counted\n"

    def give(text: str) -> None:
        lab.kubectl("delete", "configmap", "site-slurm", "--ignore-not-found")
        lab.kubectl("create", "configmap", "site-slurm", f"--from-literal=site.sh={text}")

    give(site)
    config = {
        "files": [{"name": "scrun.lua", "text": "-- of the site\n"}],
        "taskProlog": [{"name": "site", "configMapKeyRef": ref}],
        "prologSlurmctld": [{"name": "count", "text": counts}],
    }
    try:
        lab.patch("slurmcluster", lab.cluster, {"config": config})
        lab.until("it is written", lambda: "scrun.lua" in files(lab), 90)
        lab.until("all have it", lambda: applied(lab)["status"] == "True", 90)
        said = lab.ssh(alice, "srun -w worker-0 sh -c 'echo $SITE; cat /run/slurm/conf/scrun.lua'")
        assert said == "as the user\nnorth\n-- of the site\n"
        counted = lab.kubectl("exec", "demo-controller-0", "-c", "slurmctld", "--", "cat", "/tmp/counted").split()
        assert counted[1] == lab.kubectl("exec", "demo-controller-0", "-c", "slurmctld", "--", "id", "-u").strip()
        give(site.replace("north", "south"))
        lab.until("the new content is written", lambda: "south" in files(lab)["task-prolog"], 120)
        lab.until("all have that", lambda: applied(lab)["status"] == "True", 90)
        assert "south" in lab.ssh(alice, "srun -w worker-0 sh -c 'echo $SITE'")
        lab.kubectl("delete", "configmap", "site-slurm")
        lab.until("it is missed", lambda: applied(lab)["reason"] == "FilesMissing", 90)
        assert "ConfigMap site-slurm does not exist" in applied(lab)["message"]
        assert "south" in lab.ssh(alice, "srun -w worker-0 sh -c 'echo $SITE'")
    finally:
        lab.kubectl("delete", "configmap", "site-slurm", "--ignore-not-found")


def test_what_slurmctld_does_not_survive_is_taken_back(lab: Lab, alice: str) -> None:
    """It passes the trial and ends the real slurmctld; the former files come back, the job goes on, and the condition has words and difference."""
    held, before, began = lab.hold("worker-0"), files(lab), time.monotonic()
    lab.patch("slurmcluster", lab.cluster, {"config": {"files": [{"name": "job_submit.lua", "text": LUA}]}})
    lab.until("it is written", lambda: "job_submit.lua" in files(lab), 60)
    said = lab.until("it is taken back", lambda: taken_back(lab), 120)
    assert "there is a state" in said
    assert "+JobSubmitPlugins=lua" in said
    assert files(lab) == before
    lab.until("slurmctld is back", lambda: lab.ssh(alice, "timeout 5 scontrol ping || true").count("UP") == 1, 60)
    lab.timings.note(
        "configuration: kubectl patch → written, refused by slurmctld, taken back, slurmctld up",
        time.monotonic() - began,
    )
    assert lab.ssh(alice, "srun -w worker-1 hostname") == "worker-1\n"
    held.let_go()
