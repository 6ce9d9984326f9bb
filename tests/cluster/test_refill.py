"""The jail under its users' hands: filled whatever is killed, repaired, and replaced without a lost job or home."""

import random
import shutil
import subprocess
import time

import pytest

from local import demo
from local.paths import DEFAULT_STATE
from tests.chance import drawn
from tests.cluster.fills import small_image, survive
from tests.cluster.lab import Lab, condition

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def test_a_job_that_is_killed_at_a_random_moment_still_fills_the_jail(lab: Lab) -> None:
    """Five Jobs, each killed once, leave what an undisturbed one leaves, to the file and its size."""
    if not lab.target.is_local:
        pytest.skip("the files of a foreign cluster's claims are not in reach")
    began = time.monotonic()
    survive(lab, 5, random.Random(drawn()))
    lab.timings.note("five populate Jobs killed → all complete", time.monotonic() - began)


def test_a_fill_that_cannot_begin_says_why_and_goes_on_when_it_is_corrected(lab: Lab) -> None:
    """A jail image that does not exist is named in JailReady within seconds; a corrected one fills the jail, with nothing to delete."""
    if not lab.target.is_local:
        pytest.skip("a foreign cluster has storage of its own")
    name, image = "unfilled", "localhost/soperator/nothing:1"
    folder = DEFAULT_STATE / "storage" / name
    demo.helm(lab.target, "slurm-cluster-storage", name, f"cluster={name}", f"hostPath.path={folder}", name="storage")
    there = Lab(lab.target, name, name, lab.timings)
    spec = {
        "jail": {"claim": {"name": f"{name}-jail"}, "image": image},
        "controller": {"state": {"name": f"{name}-state"}},
        "login": {"replicas": 0},
    }
    began = time.monotonic()
    try:
        assert there.apply("SlurmCluster", name, spec).returncode == 0
        there.until("the image is named", lambda: image in condition(there.status(), "JailReady")["message"], 20)
        lab.timings.note(
            "a cluster with a jail image that does not exist → JailReady names it", time.monotonic() - began
        )
        there.patch("slurmcluster", name, {"jail": {"image": small_image(lab)}})
        there.until("the jail is filled", lambda: condition(there.status(), "JailReady")["reason"] == "Filled", 60)
        assert (folder / f"{name}-jail/root/usr/local/bin/srun").is_symlink()
    finally:
        there.tried("delete", "slurmcluster", name, "--wait=false")
        there.tried("delete", "namespace", name, "--timeout=60s")
        there.tried("delete", "pv", f"{name}-{name}-jail", f"{name}-{name}-state", "--ignore-not-found")
        shutil.rmtree(folder, ignore_errors=True)


def test_a_user_who_deletes_the_shells_is_helped_by_a_request(lab: Lab, alice: str) -> None:
    """Without /bin/sh and bash nobody logs in, the cluster lives, and what is missing is put back while it does."""
    lab.ssh("root", "echo mine > /usr/local/share/mine; rm -f /usr/bin/sh /usr/bin/bash /usr/bin/dash /usr/bin/less")
    refused = subprocess.run([*demo.ssh(lab.address, alice), "true"], capture_output=True, check=False)
    assert refused.returncode != 0
    assert condition(lab.status(), "Available")["status"] == "True"
    began = time.monotonic()
    request(lab, "Missing")
    lab.timings.note("request → the shells are back", time.monotonic() - began)
    assert lab.ssh(alice, "srun -N2 sh -c 'test -x /usr/bin/less && echo whole'") == "whole\nwhole\n"
    assert lab.ssh("root", "cat /usr/local/share/mine") == "mine\n"


def test_an_overwrite_waits_for_jobs_and_keeps_homes_and_users(lab: Lab, alice: str) -> None:
    """The running job ends by itself, then the image is there anew: people and homes stay, what root installed is gone, no worker is replaced."""
    lab.ssh(alice, "echo hers > ~/notes")
    workers = {name: pod["metadata"]["uid"] for name, pod in lab.pods("worker").items()}
    held = lab.hold("worker-0")
    began = time.monotonic()
    name = ask(lab, "Overwrite")
    lab.until(
        "the condition names the job's node",
        lambda: "waits for the jobs on worker-0" in condition(lab.status(), "JailReady")["message"],
        20,
    )
    assert held.state() == "RUNNING"
    waiting = lab.ssh(alice, "sbatch --parsable -N2 -o after.out --wrap 'srun cat notes'").strip()
    held.let_go()
    until_done(lab, name)
    lab.wait_available()
    lab.timings.note("overwrite requested, with a job of some seconds → available again", time.monotonic() - began)
    lab.until(
        "the job that waited has run", lambda: "COMPLETED" in lab.ssh(alice, f"scontrol show job -o {waiting}"), 30
    )
    assert lab.ssh(alice, "cat after.out") == "hers\nhers\n"
    assert lab.ssh("root", "ls /usr/local/share/mine 2>/dev/null || echo gone") == "gone\n"
    assert {name: pod["metadata"]["uid"] for name, pod in lab.pods("worker").items()} == workers
    assert condition(lab.status(), "JailReady")["reason"] == "Filled"


def request(lab: Lab, mode: str) -> None:
    """Ask, and wait until it was carried out."""
    until_done(lab, ask(lab, mode))


def ask(lab: Lab, mode: str) -> str:
    """Ask by a word that was not there before; return it."""
    name = f"test-{time.time_ns()}"
    lab.patch("slurmcluster", lab.cluster, {"jail": {"refill": {"request": name, "mode": mode}}})
    return name


def until_done(lab: Lab, name: str) -> None:
    """Wait until the status says that a request was carried out."""
    lab.until(f"request {name} carried out", lambda: lab.status().get("refilled") == name, 120)
