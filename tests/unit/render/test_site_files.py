"""A site's own files of /etc/slurm and its scripts: what becomes of them, which names they may have, and in which order Slurm runs them."""

import subprocess

import pytest

from soperator.api.fields.config import FileRef, entries
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.api.validation.validate import World
from soperator.policy.validation import cluster_problems
from soperator.render.cluster import database_connection
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import site_files, slurm_conf

SCRIPT = "#!/bin/sh\nexit 0"


def cluster(contents=None, power=None, **config):
    """A cluster with this config, and these contents of what it refers to."""
    spec = SlurmClusterSpec.model_validate({"config": config, "health": {"mode": "Drain", "prologEpilog": True}})
    return Cluster("slurm", "demo", "uid", spec, contents=contents or {}, sleeps=power)


def problems(**spec):
    """What lint says of a spec, by field."""
    read = SlurmClusterSpec.model_validate(spec)
    return {each.field: each.remedy for each in cluster_problems("demo", World({"demo": read}, {}, partial=True))}


def lines(of, *keys):
    """The lines of slurm.conf with one of these keys."""
    text = slurm_conf.slurm_conf(of)
    return [each for each in text.splitlines() if each.split("=")[0] in keys]


def scripts(*names):
    """Scripts with these names."""
    return [{"name": each, "text": SCRIPT} for each in names]


def test_scripts_run_in_their_order_after_the_operators_own():
    """Health checks around jobs come first, and the wait for nodes that wake stands beside slurmctld's."""
    made = cluster(power=(60, 60), prolog=scripts("b", "a"), epilog=scripts("c"), prologSlurmctld=scripts("z", "y"))
    assert lines(made, "Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld") == [
        "PrologSlurmctld=/opt/soperator/libexec/await-nodes",
        "Prolog=checks-prolog.sh",
        "Epilog=checks-epilog.sh",
        "Prolog=prolog-b",
        "Prolog=prolog-a",
        "Epilog=epilog-c",
        "PrologSlurmctld=/usr/lib/soperator/scripts",
    ]
    files = slurm_conf.files(made)
    assert sorted(each for each in files if each.startswith("slurmctld-")) == [
        "slurmctld-prolog.00-z",
        "slurmctld-prolog.01-y",
    ]


def test_scripts_of_tasks_are_one_file_that_slurm_hands_out_as_a_prolog():
    """It does nothing as a Prolog, and each script runs by its own interpreter until one fails."""
    first = '#!/bin/sh -e\necho "export A=1"'
    second = '#!/usr/bin/env perl\nprint "print $0\\n"; exit 3'
    third = "#!/bin/sh\necho never"
    texts = [{"name": name, "text": text} for name, text in (("a", first), ("b", second), ("c", third))]
    made = cluster(taskProlog=texts)
    assert lines(made, "Prolog", "TaskProlog")[1:] == [
        "Prolog=task-prolog",
        "TaskProlog=/var/spool/slurmd/conf-cache/task-prolog",
    ]
    text = slurm_conf.files(made)["task-prolog"]

    def run(context):
        env = {"PATH": "/usr/bin:/bin", "SLURM_SCRIPT_CONTEXT": context}
        done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, env=env, check=False, timeout=20)
        return done.returncode, done.stdout

    assert run("prolog_slurmd") == (0, "")
    assert run("prolog_task") == (3, "export A=1\nprint /dev/fd/9\n")


def test_a_script_of_a_task_that_looks_like_the_end_of_another_is_whole():
    """The word that ends a script follows from the script, and no script can hold its own."""
    first = {"name": "a", "text": "#!/bin/sh\necho one\n"}
    text = slurm_conf.files(cluster(taskEpilog=[first]))["task-epilog"]
    end = text.splitlines()[-1]
    both = slurm_conf.files(
        cluster(taskEpilog=[first, {"name": "b", "text": f"#!/bin/sh\necho two\n# {end}\n{end} 2>&1\n"}])
    )
    env = {"PATH": "/usr/bin:/bin", "SLURM_SCRIPT_CONTEXT": "epilog_task"}
    done = subprocess.run(
        ["sh", "-c", both["task-epilog"]], capture_output=True, text=True, env=env, check=False, timeout=20
    )
    assert done.stdout.startswith("one\ntwo\n")
    assert f"{end}: not found" in done.stdout


def test_what_a_spec_refers_to_is_a_file_like_any_other():
    """Its content is part of the generation, and unknown content is another generation that nobody wrote."""
    ref = {"configMapKeyRef": {"name": "site", "key": "mpi"}}
    config = {"files": [{"name": "mpi.conf", **ref}], "prolog": [{"name": "x", **ref}]}
    at = FileRef("ConfigMap", "site", "mpi")
    known, other, unknown = (cluster(each, **config) for each in ({at: SCRIPT}, {at: f"{SCRIPT}1"}, {}))
    assert slurm_conf.files(known)["mpi.conf"] == slurm_conf.files(known)["prolog-x"] == f"{SCRIPT}\n"
    assert len({slurm_conf.generation(each) for each in (known, other, unknown)}) == 3
    assert [each.path for each in site_files.missing(unknown)] == ["spec.config.files[0]", "spec.config.prolog[0]"]
    assert site_files.missing(known) == []


def test_content_from_elsewhere_is_checked_as_that_of_the_spec():
    """A script without an interpreter, and a tree with a circle."""
    files = {"script": "echo", "tree": "SwitchName=a Switches=a"}
    config = {
        "prolog": [{"name": "x", "configMapKeyRef": {"name": "site", "key": "script"}}],
        "files": [{"name": "topology.conf", "configMapKeyRef": {"name": "site", "key": "tree"}}],
    }
    made = cluster({FileRef("ConfigMap", "site", key): text for key, text in files.items()}, **config)
    assert [each.field for each in site_files.problems(made)] == [
        "spec.config.files[0].configMapKeyRef, line 1",
        "spec.config.prolog[0].configMapKeyRef, line 1",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("slurm.conf", "config.extraLines.slurm"),
        ("cgroup.conf", "config.extraLines.cgroup"),
        ("gres.conf", "config.extraLines.gres"),
        ("plugstack.conf", "config.extraLines.plugstack"),
        ("slurmdbd.conf", "config.extraLines.slurmdbd"),
        ("job_container.conf", "reads no such file"),
        ("slurm.key", "see auth"),
        ("checks-prolog.sh", "choose another name"),
        ("prolog-x", "config.prolog"),
        ("slurmctld-prolog.00-x", "choose another name"),
    ],
)
def test_a_file_that_has_another_place_is_refused_with_that_place(name, words):
    """By its name."""
    found = problems(config={"files": [{"name": name, "text": "x"}]})
    assert words in found["spec.config.files[0].name"]


def test_two_entries_of_a_list_have_two_names():
    """The same name under another hook is another script."""
    found = problems(config={"prolog": scripts("a", "a"), "epilog": scripts("a")})
    assert list(found) == ["spec.config.prolog[1].name"]


def test_a_secret_stays_with_slurmctld():
    """A file that slurmctld hands out, and a script that runs on nodes, would be readable to users of the jail."""
    ref = {"secretKeyRef": {"name": "s", "key": "k"}}
    config = {
        "files": [{"name": "mpi.conf", **ref}, {"name": "job_submit.lua", **ref}],
        "taskProlog": [{"name": "a", **ref}],
        "prolog": [{"name": "a", **ref}],
        "prologSlurmctld": [{"name": "a", **ref}],
    }
    found = problems(config=config)
    assert set(found) == {f"spec.config.{each}[0].secretKeyRef" for each in ("files", "taskProlog", "prolog")}
    assert "users read it" in found["spec.config.files[0].secretKeyRef"]


def test_lines_of_slurmdbd_conf_follow_the_operators():
    """Slurm takes the last of two settings; what the operator owns is refused."""
    spec = {"accounting": {}, "config": {"extraLines": {"slurmdbd": "TrackWCKey=yes\n\n"}}}
    made = Cluster("slurm", "demo", "uid", SlurmClusterSpec.model_validate(spec))
    assert database_connection.files(made)["slurmdbd.conf"].endswith("\nTrackWCKey=yes\n\n")
    assert problems(**spec) == {}
    for line, words in (
        ("DbdHost=x", "relies on it"),
        ("PurgeJobAfter=1day", "accounting.purge"),
        ("Include x", "Include"),
    ):
        found = cluster_problems(
            "demo",
            World({"demo": SlurmClusterSpec.model_validate({"config": {"extraLines": {"slurmdbd": line}}})}, {}),
        )
        assert words in str(found[0])


def test_every_entry_has_a_file_of_its_own():
    """Names of scripts under different hooks, and of files, never meet."""
    hooks = ("prolog", "epilog", "prologSlurmctld", "epilogSlurmctld", "taskProlog", "taskEpilog")
    made = cluster(files=[{"name": "a", "text": "x"}], **{each: scripts("a", "b") for each in hooks})
    files = [each.file for each in entries(made.spec.config)]
    assert len(files) == len(set(files)) == 13


def test_a_message_shows_nothing_of_a_secret():
    """A condition is read by more people than a Secret."""
    ref = {"secretKeyRef": {"name": "s", "key": "k"}}
    made = cluster({FileRef("Secret", "s", "k"): "hunter2"}, prologSlurmctld=[{"name": "x", **ref}])
    (problem,) = site_files.problems(made)
    assert "hunter2" not in str(problem)
    assert "begin the script with the line" in str(problem)
