"""Slurm's next release over the present one: 24.11 to 26.05 in one step, under jobs, and no way back.

`make test-newer-slurm` builds the images and runs this, and writes docs/reports/upgrade.md; `make test` skips it.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from local import images, slurm_release
from local.paths import REPOSITORY
from tests.cluster.conftest import make_user
from tests.cluster.lab import Lab, condition, is_ready, local
from tests.cluster.second import claims, clean, install, make_storage

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

NAMESPACE = "slurm-newer"
CLUSTER = "newer"
REPORT = REPOSITORY / "docs/reports/upgrade.md"
#: A job of one step that sees two releases of slurmctld, an array that goes on meanwhile, and the settings that Debian's 26.05 wants.
LONG = "srun sh -c 'while [ ! -e $HOME/go ]; do sleep 0.5; done; echo done'"
ARRAY = 12
SETTINGS = "\n".join(slurm_release.SETTINGS["26.05"])


@dataclass
class Story:
    """What is told in the report."""

    lines: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def tell(self, what: str) -> None:
        """Note something with the time since the beginning."""
        self.lines.append(f"| {time.monotonic() - self.began:.0f} s | {what} |")


@pytest.fixture(scope="module")
def newer(lab: Lab) -> Iterator[Lab]:
    """A cluster with the present release, and one user."""
    if not lab.target.is_local or not os.environ.get("SOPERATOR_NEWER_SLURM"):
        pytest.skip("make test-newer-slurm builds the images that this needs, which takes minutes")
    second = Lab(lab.target, NAMESPACE, CLUSTER, lab.timings)
    clean(second)
    make_storage(second)
    install(second, {**claims(second), "images": of_all(image_of("slurm-2411"))})
    second.wait_available(300)
    make_user(second, "carol")
    yield second
    clean(second)


def test_a_major_upgrade_loses_no_job_and_there_is_no_way_back(newer: Lab) -> None:
    """What 26.05 refuses of the configuration is told before it is given anything; then all roles follow under jobs; 24.11 is refused."""
    old, new, story = image_of("slurm-2411"), image_of("slurm-2605"), Story()
    first = newer.ssh("carol", "sinfo --version").split()[-1]
    running = newer.ssh("carol", f'sbatch --parsable -w worker-0 -o long.out --wrap "{LONG}"').strip()
    newer.until("the long job runs", lambda: states(newer, running) == ["RUNNING"])

    newer.patch("slurmcluster", CLUSTER, {"images": of_all(new)})
    newer.until("the image is refused", lambda: up_to_date(newer)["reason"] == "Refused", 120)
    story.tell(f"with the configuration as it was: {up_to_date(newer)['message']}")
    assert "PrologFlags=Contain is required" in up_to_date(newer)["message"]
    assert slurms(newer) == {old}

    array = newer.ssh("carol", f"sbatch --parsable -a 0-{ARRAY - 1} -o a-%a.out --wrap 'sleep 3; echo done'").strip()
    newer.patch("slurmcluster", CLUSTER, {"config": {"extraLines": {"slurm": SETTINGS}}})
    newer.until("slurmctld is the new one", lambda: slurms(newer, "controller") == {new}, 240)
    story.tell("PrologFlags=Contain and MpiDefault=none are in place, the image has passed its trial, slurmctld has it")
    newer.until("login is waited with", lambda: up_to_date(newer)["reason"] == "Workers", 60)
    story.tell(f"the idle worker follows: {up_to_date(newer)['message']}")
    newer.until("the idle worker is the new one", lambda: new in slurms(newer, "worker"), 180)
    mixed = newer.ssh("carol", "sinfo -h -N -o '%N %v'").split()
    story.tell(f"nodes and their releases: {' '.join(mixed)}; the long job on worker-0 is {states(newer, running)[0]}")
    assert states(newer, running) == ["RUNNING"]
    assert mixed[1] == first
    newer.ssh("carol", "touch go")
    newer.until("all have the new image", lambda: slurms(newer) == {new}, 300)
    newer.until("nothing is left to do", lambda: up_to_date(newer)["status"] == "True" and newer.is_whole(), 120)
    second = newer.ssh("carol", "sinfo --version").split()[-1]
    story.tell(f"every worker and login are new; a user's sinfo is {second}, in a jail of {jail(newer)}")

    newer.until("the array has ended", lambda: set(states(newer, array)) <= {"COMPLETED"}, 180)
    written = newer.ssh("carol", "cat long.out a-*.out").split()
    assert written == ["done"] * (ARRAY + 1)
    assert newer.ssh("carol", "srun -N2 hostname | sort").split() == ["worker-0", "worker-1"]
    newer.ssh("carol", "echo hello >f; salloc -Q -N1 sh -c 'sbcast f /tmp/g && srun cp /tmp/g got'")
    assert newer.ssh("carol", "cat got") == "hello\n"
    story.tell(
        f"jobs that began under {first} or waited there: {ARRAY + 1}; ended well, once each: {len(written)}; lost: 0"
    )

    before = uids(newer)
    newer.patch("slurmcluster", CLUSTER, {"images": of_all(old)})
    newer.until("the way back is refused", lambda: up_to_date(newer)["reason"] == "Downgrade", 60)
    story.tell(f"back to the former images: {up_to_date(newer)['message']}")
    assert newer.ssh("carol", "srun hostname").startswith("worker-")
    assert uids(newer) == before
    write(story, first, second)


def image_of(name: str) -> str:
    """An image's reference, once the local cluster has it."""
    (image,) = images.built([name])
    local("load", str(image.tar))
    return image.references()[name]


def of_all(image: str) -> dict[str, str]:
    """The images of a spec, with Slurm of one image."""
    return dict.fromkeys(("slurm", "login", "munge"), image)


def up_to_date(lab: Lab) -> dict[str, Any]:
    """The condition UpToDate."""
    return condition(lab.status(), "UpToDate")


def states(lab: Lab, job: str) -> list[str]:
    """The states of a job, or of the tasks of an array, without accounting."""
    said = lab.ssh("carol", f"scontrol show job -o {job} || true")
    return [word.removeprefix("JobState=") for word in said.split() if word.startswith("JobState=")]


def slurms(lab: Lab, *roles: str) -> set[str]:
    """The images of the pods that are ready, of some roles or of all; a pod that is not ready is an image of no name."""
    found = [pod for role in roles or ("controller", "rest", "worker", "login") for pod in lab.pods(role).values()]
    names = {"slurmctld", "slurmrestd", "slurmd", "sackd"}
    return {
        each["image"] if is_ready(pod) else ""
        for pod in found
        for each in (*pod["spec"].get("initContainers", []), *pod["spec"]["containers"])
        if each["name"] in names
    }


def uids(lab: Lab) -> set[str]:
    """The identities of all pods but those of trials."""
    return {pod["metadata"]["uid"] for name, pod in lab.pods().items() if "-trial-" not in name}


def jail(lab: Lab) -> str:
    """The Debian of the jail."""
    return lab.ssh("carol", ". /etc/os-release; echo $VERSION_CODENAME").strip()


def write(story: Story, first: str, second: str) -> None:
    """The report, if this run is to leave one."""
    lines = "\n".join(story.lines)
    REPORT.write_text(
        f"# From Slurm {first} to {second} under jobs\n\n"
        "`make test-newer-slurm` on a shared machine of two cores: one cluster of two workers, one job that runs the whole time, an array, and the\n"
        "images of `spec.images` changed.\n\n"
        f"| after | what was seen |\n|---|---|\n{lines}\n"
    )
