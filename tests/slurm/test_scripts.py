"""Scripts of a site, as the renderer names them, under real daemons: how Slurm hands them out, in which order it runs them, and as whom."""

from pathlib import Path

from local.paths import REPOSITORY
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.parts.model import Cluster
from soperator.render.slurm_conf import site_files
from soperator.slurm import conf
from tests.slurm.machine import NEEDS, Slurm

pytestmark = NEEDS

CACHE = "/var/spool/slurmd-w-0/conf-cache"


def site() -> Cluster:
    """A cluster with two scripts of each kind, which say who and when they are; that of a task says more."""
    scripts = {
        hook: [
            {
                "name": name,
                "text": f'#!/bin/sh -e\n{"sleep 1; " * (name == "b")}echo "{name} $SLURM_SCRIPT_CONTEXT $(id -u)" >>/tmp/said\n',
            }
            for name in ("b", "a")
        ]
        for hook in ("prolog", "epilog", "prologSlurmctld", "epilogSlurmctld", "taskProlog", "taskEpilog")
    }
    scripts["taskProlog"].append(
        {"name": "c", "text": "#!/usr/bin/env perl\nprint qq(export SITE=north\\nprint hello\\n);\n"}
    )
    return Cluster("slurm", "demo", "uid", SlurmClusterSpec.model_validate({"config": scripts}))


def given(slurm: Slurm) -> None:
    """slurmctld with the scripts and the program that runs its own, and a slurmd that has of all this what slurmctld gives it."""
    made = site()
    for name, text in site_files.texts(made).items():
        slurm.sh(f"cat > /etc/slurm/{name}; chmod 644 /etc/slurm/{name}", text)
    program = (REPOSITORY / "images/slurm/scripts").read_text()
    slurm.sh(
        f"mkdir -p {Path(site_files.RUNNER).parent}; cat > {site_files.RUNNER}; chmod 755 {site_files.RUNNER}", program
    )
    lines = conf.render(site_files.settings(made)).replace("/var/spool/slurmd/conf-cache", CACHE)
    slurm.sh("cat > /etc/slurm/more.conf", f"{lines}SlurmctldParameters=enable_configless\n")
    slurm.sh(
        "sed -i 's|Include /etc/slurm/|Include |' /etc/slurm/slurm.conf; touch /tmp/said; chmod 666 /tmp/said; useradd -u 1500 alice"
    )
    slurm.begins()
    words = "CPUs=1 RealMemory=100 Port=7000"
    slurm.sh(f"unshare --uts sh -c 'hostname w-0; slurmd -N w-0 -Z --conf-server 10.99.0.1:6817 --conf \"{words}\"'")
    slurm.until("sinfo -h -p all -n w-0 -o %T", "idle")


def test_every_script_runs_once_in_its_order_and_as_its_user(slurm: Slurm) -> None:
    """Those of tasks run as the user, from the files that slurmctld handed out, and set the environment of the task."""
    given(slurm)
    assert (
        slurm.sh("setpriv --reuid=1500 --regid=1500 --clear-groups srun -Q -D / sh -c 'echo $SITE'") == "hello\nnorth\n"
    )
    slurm.until("grep -c epilog_slurmctld /tmp/said", "2")
    slurm.until("grep -c epilog_slurmd /tmp/said", "2")
    root, user = "0", "1500"
    slurmctld = slurm.sh("id -u slurm").strip()
    for context, uid in (
        ("prolog_slurmctld", slurmctld),
        ("prolog_slurmd", root),
        ("prolog_task", user),
        ("epilog_task", user),
        ("epilog_slurmd", root),
        ("epilog_slurmctld", slurmctld),
    ):
        said = slurm.sh(f"grep {context} /tmp/said").splitlines()
        assert said == [f"b {context} {uid}", f"a {context} {uid}"], context


def test_a_node_that_ran_scripts_takes_the_next_job(slurm: Slurm) -> None:
    """Nothing drained it: the script of tasks ends well as the Prolog that it is handed out as."""
    given(slurm)
    for _ in range(2):
        assert slurm.runs("", "hostname") == ["hello", "w-0"]
    slurm.until("sinfo -h -p all -n w-0 -o %T", "idle")
