"""Generations of Slurm's files, and the pod that tries one."""

import pytest

from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.validate import World
from soperator.policy.validation import cluster_problems
from soperator.render.parts import labels
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import slurm_conf, trial
from soperator.slurm.settings.state import ConfigState, read_state
from tests.golden.cases import DEFAULTS

SCRIPT = "#!/bin/sh\nexit 0"


def cluster(**said):
    return Cluster("slurm", "demo", "uid", SlurmClusterSpec.model_validate(said))


def test_the_name_of_a_generation_stands_in_its_files_and_follows_every_one_of_them():
    """Slurm can say it, and another byte in any file is another generation."""
    plain = cluster()
    name = slurm_conf.generation(plain)
    assert f"generation={name}\n" in slurm_conf.files(plain)["slurm.conf"]
    said = (
        {"extraLines": {"slurm": "MaxJobCount=5"}},
        {"extraLines": {"gres": "AutoDetect=nvidia"}},
        {"prolog": [{"name": "a", "text": SCRIPT}]},
        {"files": [{"name": "topology.conf", "text": "SwitchName=a"}]},
    )
    others = [cluster(config=each) for each in said]
    assert len({name, *(slurm_conf.generation(each) for each in others)}) == 5


def test_files_that_a_person_brings_are_used_and_a_line_of_theirs_wins():
    """Scripts have no path, for then slurmctld hands them out; a list that holds ours keeps it."""
    own = {"topology.conf": "SwitchName=a Nodes=b", "job_submit.lua": "--"}
    script = [{"name": "mine", "text": SCRIPT}]
    brought = {
        "files": [{"name": name, "text": text} for name, text in own.items()],
        "prolog": script,
        "epilog": script,
    }
    lines = "TopologyPlugin=topology/block\nJobSubmitPlugins=require_timelimit"
    files = slurm_conf.files(cluster(config=brought | {"extraLines": {"slurm": lines}}))
    assert {"topology.conf", "job_submit.lua", "prolog-mine", "epilog-mine"} < files.keys()
    last = dict(line.split("=", 1) for line in files["slurm.conf"].splitlines() if line)
    assert (last["Prolog"], last["Epilog"]) == ("prolog-mine", "epilog-mine")
    assert (last["TopologyPlugin"], last["JobSubmitPlugins"]) == ("topology/block", "lua,require_timelimit")


def test_checks_around_jobs_stand_beside_a_persons_scripts_and_never_fail():
    """Slurm drains a node by itself when a script of these ends badly; and nothing of it is there where no checks run."""
    around = {"mode": "Drain", "prologEpilog": True}
    files = slurm_conf.files(cluster(config={"prolog": [{"name": "mine", "text": SCRIPT}]}, health=around))
    lines = files["slurm.conf"].splitlines()
    assert [each for each in lines if each.startswith(("Prolog=", "Epilog="))] == [
        "Prolog=checks-prolog.sh",
        "Epilog=checks-epilog.sh",
        "Prolog=prolog-mine",
    ]
    assert files["checks-epilog.sh"] == "#!/bin/sh\n/usr/lib/soperator/checks epilog\nexit 0\n"
    for health in ({"mode": "Off", "prologEpilog": True}, {"mode": "Drain"}):
        assert "checks-prolog.sh" not in str(slurm_conf.files(cluster(health=health)))


def test_what_slurm_says_of_a_line_names_the_line_of_the_spec():
    """A line of ours is left as it is."""
    made = cluster(config={"extraLines": {"slurm": "# mine\nPartitionName=x Bogus=3"}})
    number = slurm_conf.files(made)["slurm.conf"].splitlines().index("PartitionName=x Bogus=3") + 1
    assert slurm_conf.place(made, f"error in slurm.conf line {number}: x").endswith(
        "(spec.config.extraLines.slurm, line 2): x"
    )
    assert slurm_conf.place(made, "error in slurm.conf line 2") == "error in slurm.conf line 2"
    assert slurm_conf.place(cluster(), "error in slurm.conf line 2") == "error in slurm.conf line 2"


def test_what_slurm_says_of_a_partition_is_placed_too():
    """By its name, as Slurm writes it."""
    made = cluster(partitions=[{"name": "a"}, {"name": "a-b"}])
    said = slurm_conf.place(made, "fatal: Invalid node names in partition a-b")
    assert said == "fatal: Invalid node names in partition a-b (spec.partitions[1])"


def test_a_partition_may_be_over_features_of_nodes():
    """Beside NodeSets or without; each feature is a set of nodes that need not be there yet."""
    wide = [{"name": "a", "nodeSets": ["w"], "features": ["big"]}, {"name": "b", "features": ["big"]}]
    text = slurm_conf.slurm_conf(cluster(partitions=wide))
    assert "NodeSet=big Feature=big\nNodeSet=w Feature=w\n" in text
    assert "PartitionName=a Nodes=w,big" in text
    assert "PartitionName=b Nodes=big" in text


def test_files_that_no_configmap_holds_are_a_problem():
    """The problem says how large they are."""
    options = {f"Option{number}": "x" * 1024 for number in range(60)}
    partitions = [{"name": f"p{number}", "options": options} for number in range(20)]
    assert slurm_conf.too_large(cluster()) == []
    assert "KiB together" in str(slurm_conf.too_large(cluster(partitions=partitions))[0])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {"extraLines": {"slurm": "MaxJobCont=5"}},
            ("spec.config.extraLines.slurm, line 1", "MaxJobCont=5", "write MaxJobCount"),
        ),
        (
            {"extraLines": {"slurm": "\nFrobnicate=5"}},
            ("spec.config.extraLines.slurm, line 2", "Frobnicate=5", "no such setting"),
        ),
        (
            {"taskEpilog": [{"name": "a", "text": "echo"}]},
            ("spec.config.taskEpilog[0].text, line 1", "#!/bin/sh"),
        ),
        (
            {"prolog": [{"name": "a", "text": "#!/bin/sh\r\necho\r\n"}]},
            ("spec.config.prolog[0].text, line 1", "carriage return"),
        ),
        (
            {"files": [{"name": "topology.conf", "text": "SwitchName=a\nInclude b"}]},
            ("spec.config.files[0].text, line 2", "Include"),
        ),
        ({"files": [{"name": "x", "text": "a\0b"}]}, ("spec.config.files[0].text", "zero byte")),
        ({"extraLines": {"slurmdbd": "TrackWcKeys=yes"}}, ("extraLines.slurmdbd, line 1", "write TrackWCKey")),
        ({"extraLines": {"slurmdbd": "\nStorageHost=x"}}, ("extraLines.slurmdbd, line 2", "spec.accounting")),
    ],
)
def test_what_is_known_to_be_wrong_is_told_before_anything_is_tried(said, words):
    """The problem names the field, the line and the remedy."""
    spec = SlurmClusterSpec.model_validate({"config": said})
    found = "\n".join(map(str, cluster_problems("demo", World({"demo": spec}, {}, partial=True))))
    assert [word for word in words if word not in found] == []


def test_settings_of_another_slurm_are_judged_by_that_slurm():
    """With an image of one's own the list of 24.11 says nothing."""
    spec = SlurmClusterSpec.model_validate(
        {"config": {"extraLines": {"slurm": "NewIn2611=5"}}, "images": {"slurm": "my/slurm:26"}}
    )
    assert cluster_problems("demo", World({"demo": spec}, {}, partial=True)) == []


def test_a_trial_can_reach_nothing_of_the_cluster():
    """No key, no credentials, no state, no name in the cluster; the controller's names are its own address."""
    pod = trial.render_trial(cluster(), DEFAULTS, "abc")
    spec, text = pod["spec"], str(pod)
    assert "secret" not in text
    assert "persistentVolumeClaim" not in text
    assert spec["automountServiceAccountToken"] is False
    assert "subdomain" not in spec
    assert "dnsConfig" not in spec
    assert (spec["hostname"], spec["hostAliases"]) == (
        "demo-controller-0",
        [{"ip": "127.0.0.1", "hostnames": ["demo-controller"]}],
    )
    assert spec["containers"][0]["securityContext"]["runAsNonRoot"] is True


def test_a_trial_of_files_with_backups_does_not_tell_itself_to_give_way():
    """A backup's names lead to no address at all, not even this pod's: a connection there fails at once."""
    pod = trial.render_trial(cluster(controller={"replicas": 3}), DEFAULTS, "abc")
    assert pod["spec"]["hostAliases"] == [
        {"ip": "127.0.0.1", "hostnames": ["demo-controller"]},
        {"ip": "255.255.255.255", "hostnames": ["demo-controller-1", "demo-controller-2"]},
    ]


def test_what_is_known_of_the_files_stands_beside_them():
    """The live ConfigMap carries the state, and a kept generation never changes."""
    files, state = slurm_conf.files(cluster()), ConfigState("a", "b", 1.5, "a", 2.5)
    live, kept = trial.render_live(cluster(), files, state), trial.render_generation(cluster(), "a", files)
    assert read_state(live["metadata"]["annotations"][labels.TRANSACTION]) == state
    assert kept["immutable"] is True
    assert live["data"] == kept["data"] == files
