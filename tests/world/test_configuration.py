"""A change of Slurm's configuration, from the edit to the last daemon, and back where slurmctld refuses it."""

import asyncio
import re
from dataclasses import replace

import pytest

from soperator.kube import kinds
from soperator.policy.cluster.slurm_config import ConfigStep
from soperator.reconcile.cluster import slurm_config
from soperator.render.parts import labels
from soperator.slurm.settings.state import read_state
from tests.world.harness import NS, Town, operating, until
from tests.world.test_cluster import CLUSTER, WORKERS


def job_submit(text):
    """A config with a job_submit.lua."""
    return {"files": [{"name": "job_submit.lua", "text": text}]}


EDIT = CLUSTER | {"config": {"extraLines": {"slurm": "MaxStepCount=5"}}}
BROKEN = CLUSTER | {"config": {"extraLines": {"slurm": "MaxStepCount=6"}, **job_submit("boom")}}
FATAL = "slurmctld: error: job_submit.lua:1: boom\nslurmctld: fatal: failed to initialize job_submit plugin"


@pytest.fixture
async def town():
    """An operator over a cluster that is up."""
    async with operating(Town()) as made:
        await made.up(CLUSTER, WORKERS)
        yield made


def conf(town):
    return town.find(kinds.CONFIGMAP, "demo-config")["data"]["slurm.conf"]


def applied(town):
    """The condition ConfigApplied: status, reason, message."""
    found = {each["type"]: each for each in town.status(kinds.SLURMCLUSTER, "demo")["conditions"]}["ConfigApplied"]
    return found["status"], found["reason"], found["message"]


def kept(town):
    return [each for each in town.names(kinds.CONFIGMAP) if re.fullmatch("demo-config-.*", each)]


def slurmctld_falls(town, message=FATAL):
    """Let slurmctld end by itself, and the kubelet wait before it starts it again."""
    end = {"exitCode": 1, "message": message}
    status = {
        "name": "slurmctld",
        "ready": False,
        "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": end},
    }
    said = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [status]}
    town.fake.world.change(kinds.POD, (NS, "demo-controller-0"), {"status": said}, sub="status")


def minutes_pass(town):
    """Let what stands beside the files be of long ago."""
    note = town.find(kinds.CONFIGMAP, "demo-config")["metadata"]["annotations"][labels.TRANSACTION]
    past = replace(read_state(note), since=1.0, asked_at=1.0)
    said = {"metadata": {"annotations": {labels.TRANSACTION: past.text()}}}
    town.fake.world.change(kinds.CONFIGMAP, (NS, "demo-config"), said)


async def test_a_change_is_tried_written_handed_out_and_told(town):
    """No pod of slurmctld is replaced; slurmctld is asked once, and the condition counts who has read it."""
    before = town.find(kinds.POD, "demo-controller-0")["metadata"]["uid"]
    assert applied(town)[:2] == ("True", "Applied")
    town.apply(kinds.SLURMCLUSTER, "demo", EDIT)
    await town.settle()
    assert "MaxStepCount" not in conf(town)
    assert applied(town)[:2] == ("False", "Trying")
    town.trial_ends()
    await town.settle(quiet=1.2)
    assert "MaxStepCount=5" in conf(town)
    assert town.slurm.asked == ["GET reconfigure/"]
    assert town.find(kinds.POD, "demo-controller-0")["metadata"]["uid"] == before
    status = town.status(kinds.SLURMCLUSTER, "demo")
    assert applied(town) == ("True", "Applied", f"4/4 daemons have read configuration {status['config'][:8]}")
    assert status["config"] == town.running
    assert status["why"] == ""
    assert len(kept(town)) == 1
    assert not [each for each in town.names(kinds.POD) if "trial" in each]


async def test_what_a_trial_refuses_reaches_no_daemon(town):
    """The condition has Slurm's sentence; the files and slurmctld stay as they are; a correction is tried anew."""
    before = conf(town)
    town.apply(kinds.SLURMCLUSTER, "demo", BROKEN)
    await town.settle()
    town.trial_ends(FATAL)
    await town.settle(quiet=1.2)
    assert conf(town) == before
    assert town.slurm.asked == []
    assert applied(town)[1] == "Refused"
    assert "job_submit.lua:1: boom; failed to initialize job_submit plugin" in applied(town)[2]
    status = town.status(kinds.SLURMCLUSTER, "demo")
    assert status["conditions"][0]["status"] == "True"
    assert "boom" in status["why"]
    town.apply(kinds.SLURMCLUSTER, "demo", EDIT)
    await town.settle()
    town.trial_ends()
    await town.settle(quiet=1.2)
    assert applied(town)[1] == "Applied"


async def test_a_spec_with_an_unknown_setting_is_not_even_tried(town):
    """The problem names the line."""
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"config": {"extraLines": {"slurm": "MaxJobCont=5"}}})
    await town.settle()
    assert "write MaxJobCount" in town.says(kinds.SLURMCLUSTER, "demo")
    assert not [each for each in town.names(kinds.POD) if "trial" in each]


async def test_a_configuration_that_slurmctld_does_not_survive_is_taken_back(town):
    """The former files come back by themselves, the pod is replaced at once, and the condition has the words and the difference.

    Who has gone back and asks for it again has it tried again.
    """
    before = conf(town)
    town.apply(kinds.SLURMCLUSTER, "demo", BROKEN)
    await town.settle()
    town.slurm.reconfigured = lambda: slurmctld_falls(town)
    town.trial_ends()
    await town.settle(quiet=0.3)
    minutes_pass(town)
    await until(lambda: town.find(kinds.POD, "demo-controller-0") is None, longest=60.0)
    assert conf(town) == before
    town.slurm.reconfigured = town.slurmctld_starts
    town.running = ""
    town.daemons_run()
    town.pods_run()
    await town.settle(quiet=1.5)
    status, reason, said = applied(town)
    assert (status, reason) == ("False", "RolledBack")
    assert "job_submit.lua:1: boom" in said
    assert "+MaxStepCount=6" in said
    assert town.slurm.asked.count("GET reconfigure/") == 2
    town.apply(kinds.SLURMCLUSTER, "demo", CLUSTER | {"config": {"extraLines": {"slurm": ""}, "files": None}})
    await town.settle()
    assert applied(town)[:2] == ("True", "Applied")
    town.apply(kinds.SLURMCLUSTER, "demo", BROKEN)
    await town.settle()
    assert applied(town)[:2] == ("False", "Trying")
    town.trial_ends()
    await town.settle(quiet=1.2)
    assert "MaxStepCount=6" in conf(town)


async def test_a_change_goes_on_where_a_killed_operator_left_it():
    """An operator that has just started finishes what was written, and tries nothing twice that is done."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        town.slurm.down = True
        town.apply(kinds.SLURMCLUSTER, "demo", EDIT)
        await town.settle()
        town.trial_ends()
        await town.settle(quiet=1.2)
        assert "MaxStepCount=5" in conf(town)
        await town.told(kinds.SLURMCLUSTER, "demo", "which fails")
    town.slurm.down = False
    async with operating(town):
        await town.settle(quiet=1.5)
        assert applied(town)[:2] == ("True", "Applied")
        assert town.slurm.asked == ["GET reconfigure/"]


async def test_a_daemon_that_has_not_read_it_is_named(town):
    """The count leaves out nodes that are down."""
    town.slurm.nodes["worker-0"] |= {"slurmd_start_time": {"set": True, "number": 5}}
    town.slurm.set("worker-1", "DOWN")
    await says(town, "has not been read yet by worker-0; 2/3 daemons have read")
    assert applied(town)[2].startswith("configuration ")


async def test_a_login_pod_whose_sackd_has_not_read_it_is_named(town):
    """Commands there get what sackd hands them; it is asked until it has the new files, ever more seldom, and then no more."""
    now = town.wall()
    town.wall, town.handed["demo-login-0"] = (lambda: now), town.running
    town.apply(kinds.SLURMCLUSTER, "demo", EDIT)
    await town.settle()
    town.trial_ends()
    await says(town, "has not been read yet by demo-login-0; 3/4 daemons have read")
    town.later += 20
    town.handed["demo-login-0"] = ""
    await says(town, "it is unknown whether demo-login-0 has read configuration")
    status = town.status(kinds.SLURMCLUSTER, "demo")
    assert status["why"].startswith("it is unknown whether demo-login-0 has read configuration")
    assert next(each["status"] for each in status["conditions"] if each["type"] == "Available") == "True"
    asked = town.asked_inside
    await asyncio.sleep(15)
    assert town.asked_inside == asked
    del town.handed["demo-login-0"]
    town.later += 60
    await says(town, "4/4 daemons have read")
    assert applied(town)[:2] == ("True", "Applied")
    asked = town.asked_inside
    await town.settle(quiet=1.2)
    assert town.asked_inside == asked


async def says(town, words, longest=60.0):
    """Wait until ConfigApplied says this; progress is told every few seconds."""
    end = asyncio.get_running_loop().time() + longest
    while words not in applied(town)[2]:
        assert asyncio.get_running_loop().time() < end, applied(town)
        await asyncio.sleep(0.05)


def live(town):
    """The ConfigMap that is mounted."""
    return town.find(kinds.CONFIGMAP, "demo-config")


async def test_an_edit_of_the_mounted_files_by_hand_is_undone(town):
    """Within a second every file is as it was, one that was added is gone, and an Event says so; slurmctld is told nothing."""
    before = live(town)["data"]
    edit = {"slurm.conf": "ClusterName=other\n", "topology.conf": "SwitchName=s Nodes=ALL\n"}
    town.fake.world.change(kinds.CONFIGMAP, (NS, "demo-config"), {"data": edit})
    assert live(town)["data"] != before
    await asyncio.sleep(1)
    assert live(town)["data"] == before
    assert town.slurm.asked == []
    assert applied(town)[:2] == ("True", "Applied")
    events = [each.body for each in town.fake.requests if str(each).startswith("create events")]
    assert [
        each["note"] for each in events if each["reason"] == "ConfigRestored" and "demo-config" in each["note"]
    ] != []
    assert ("SlurmCluster", "AllReady") in [(each["regarding"]["kind"], each["reason"]) for each in events]


@pytest.mark.time_of_day
async def test_an_edit_by_hand_is_undone_by_an_operator_that_has_just_started():
    """It compares the content, and not what it remembers."""
    town = Town()
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
    before = live(town)["data"]
    town.fake.world.change(kinds.CONFIGMAP, (NS, "demo-config"), {"data": {"slurm.conf": "ClusterName=other\n"}})
    async with operating(town):
        await town.settle(quiet=0.5)
    assert live(town)["data"] == before


@pytest.mark.parametrize("label", ["slurm.soperator.io/cluster", "app.kubernetes.io/managed-by"])
@pytest.mark.parametrize("which", ["live", "kept"])
async def test_labels_of_the_files_come_back(town, which, label):
    """Without them the operator would not find its own."""
    name = "demo-config" if which == "live" else kept(town)[0]
    before = town.find(kinds.CONFIGMAP, name)
    town.fake.world.change(kinds.CONFIGMAP, (NS, name), {"metadata": {"labels": {label: "stolen"}}})
    await asyncio.sleep(2)
    after = town.find(kinds.CONFIGMAP, name)
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["data"] == before["data"]


async def test_a_deleted_copy_of_the_files_is_made_again(town):
    """Else there would be nothing to go back to."""
    (name,) = kept(town)
    before = town.find(kinds.CONFIGMAP, name)["data"]
    town.fake.world.remove(kinds.CONFIGMAP, NS, name)
    await asyncio.sleep(1)
    assert town.find(kinds.CONFIGMAP, name)["data"] == before


async def test_the_copy_of_the_former_files_is_made_again_while_others_are_handed_out(town):
    """It is what a rollback restores: the operator has it from the copy's own name, and not from the spec, which is another by now."""
    (name,) = kept(town)
    town.fake.world.remove(kinds.CONFIGMAP, NS, name)
    town.apply(kinds.SLURMCLUSTER, "demo", EDIT)
    await asyncio.sleep(1)
    assert name in kept(town)
    assert "MaxStepCount" not in town.find(kinds.CONFIGMAP, name)["data"]["slurm.conf"]


async def test_deleted_files_come_back_with_what_is_known_of_them(town):
    """slurmctld runs with them, so nothing is tried and nobody is told."""
    before = live(town)
    town.fake.world.remove(kinds.CONFIGMAP, NS, "demo-config")
    await asyncio.sleep(2)
    assert live(town)["data"] == before["data"]
    then, now = (read_state(each["metadata"]["annotations"][labels.TRANSACTION]) for each in (before, live(town)))
    assert (now.generation, now.good, now.fixed) == (then.generation, then.good, then.fixed)
    assert town.slurm.asked == []
    assert applied(town)[:2] == ("True", "Applied")


async def test_another_configuration_is_tried_also_when_what_was_known_of_the_former_is_gone(town):
    """Files, copies and note were deleted and the spec is another: what slurmctld runs with is asked, and the new files are tried."""
    before = live(town)["data"]
    for name in ("demo-config", *kept(town)):
        town.fake.world.remove(kinds.CONFIGMAP, NS, name)
    town.apply(kinds.SLURMCLUSTER, "demo", EDIT)
    await asyncio.sleep(2)
    assert live(town) is None or live(town)["data"] == before
    assert [each for each in town.names(kinds.POD) if each.startswith("demo-trial-")]
    town.trial_ends()
    await town.settle(quiet=1.2)
    assert "MaxStepCount=5" in conf(town)


@pytest.mark.parametrize("is_status_wiped", [False, True])
async def test_nothing_is_written_untried_while_a_slurmctld_that_has_run_cannot_be_asked(town, is_status_wiped):
    """Files, copies and note were deleted and the spec is another: that nobody answers does not say that nothing runs."""
    before, answered = live(town)["data"], town.running
    town.running = ""
    town.slurm.down = True
    for name in ("demo-config", *kept(town)):
        town.fake.world.remove(kinds.CONFIGMAP, NS, name)
    if is_status_wiped:
        town.fake.world.change(kinds.SLURMCLUSTER, (NS, "demo"), {"status": None})
    town.apply(kinds.SLURMCLUSTER, "demo", EDIT)
    await asyncio.sleep(2)
    assert live(town) is None or live(town)["data"] == before
    assert [each for each in town.names(kinds.POD) if each.startswith("demo-trial-")]
    town.running, town.slurm.down = answered, False
    town.trial_ends()
    await town.settle(quiet=1.2)
    assert "MaxStepCount=5" in conf(town)


async def test_a_deleted_configuration_comes_back_before_another_is_tried(town):
    """The kept copy of what slurmctld runs with is what a rollback of the new one restores."""
    before = live(town)["data"]
    town.fake.world.remove(kinds.CONFIGMAP, NS, "demo-config")
    town.apply(kinds.SLURMCLUSTER, "demo", EDIT)
    await asyncio.sleep(2)
    assert live(town)["data"] == before
    assert [each for each in town.names(kinds.POD) if each.startswith("demo-trial-")]


async def test_a_former_leader_does_not_write_over_a_newer_state(town):
    """It still waits for slurmctld when another operator has gone further; its write names an older version and is refused."""
    town.slurm.reconfigured = lambda: None
    town.apply(kinds.SLURMCLUSTER, "demo", EDIT)
    await town.settle()
    town.trial_ends()
    await until(lambda: town.slurm.asked)
    await asyncio.sleep(2)
    town.fake.world.is_silent = True
    town.fake.world.change(
        kinds.CONFIGMAP, (NS, "demo-config"), {"metadata": {"annotations": {"by": "the present leader"}}}
    )
    version = live(town)["metadata"]["resourceVersion"]
    town.slurmctld_starts()
    await asyncio.sleep(10)
    assert live(town)["metadata"]["resourceVersion"] == version


async def test_a_slurmctld_without_an_answer_holds_no_pass_up():
    """Events wake passes all the time, and only few of them ask its pod again; once it answers, the next of these questions has the answer."""
    town = Town()
    town.is_mute = True
    async with operating(town):
        await town.up(CLUSTER, WORKERS)
        for _ in range(240):
            town.fake.world.change(kinds.POD, (NS, "demo-worker-0"), {"metadata": {"labels": {"touched": str(_)}}})
            await asyncio.sleep(0.25)
        assert 5 <= town.asked_inside <= 8
        assert "HandingOut" not in town.says(kinds.SLURMCLUSTER, "demo")
        town.is_mute = False
        await asyncio.sleep(70)
        assert town.status(kinds.SLURMCLUSTER, "demo")["config"] == town.running != ""


async def test_a_step_that_breaks_a_rule_of_the_transaction_writes_nothing_and_is_reported(town, monkeypatch):
    """Rules with a defect write the new files without a trial: the former files stay, and ConfigApplied says what would have happened."""
    before = conf(town)
    wrong = lambda seen: ConfigStep("write", replace(seen.state, generation=seen.wanted))  # noqa: E731
    monkeypatch.setattr(slurm_config, "decide", wrong)
    town.apply(kinds.SLURMCLUSTER, "demo", EDIT)
    await until(lambda: applied(town)[1] == "InvariantBroken", 30.0)
    assert "would replace another without a trial; report this as a defect" in applied(town)[2]
    assert conf(town) == before
