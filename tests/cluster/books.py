"""What tests of accounting do to a cluster: the image and a volume for its database, jobs that are counted, and what is recorded of them."""

import json
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from local import demo, images
from local.demo import STATE
from tests.cluster.lab import Lab, condition, local

WELL = ("True", "Accounting")
#: For root's programs on a login node.
SACCT = "sacct -a -X -n -P -S now-2days"


def bring_image(name: str = "mariadb") -> str:
    """An image that is built by name only, which is on every Node by now."""
    python = "/usr/bin/python3"
    subprocess.run([python, "-m", "local.images", "build", name], cwd=demo.ROOT, check=True, capture_output=True)
    (built,) = images.built([name])
    local("load", str(built.tar))
    return built.references()[name]


def make_volume(lab: Lab, claim: str, size: str = "10Gi") -> None:
    """A volume that waits for a claim, as a provisioner would make it, on a folder that all Nodes have."""
    apply(
        lab,
        {
            "kind": "PersistentVolume",
            "metadata": {"name": f"{lab.namespace}-{claim}"},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"kind": "PersistentVolumeClaim", "namespace": lab.namespace, "name": claim},
                "hostPath": {"path": f"{STATE}/storage/{claim}", "type": "DirectoryOrCreate"},
            },
        },
    )


def apply(lab: Lab, *objects: dict[str, Any]) -> None:
    """Make or change objects of the core of Kubernetes' API, or of a version that they name."""
    items = [{"apiVersion": "v1", **each} for each in objects]
    lab.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def told(lab: Lab) -> tuple[str, str]:
    """Status and reason of the condition AccountingReady."""
    found = condition(lab.status(), "AccountingReady")
    return found["status"], found["reason"]


def switch_on(lab: Lab, mariadb: str, said: dict[str, Any]) -> float:
    """Switch accounting on, and wait until slurmctld runs with it; return how long that took in seconds."""
    began = time.monotonic()
    lab.patch("slurmcluster", lab.cluster, {"images": {"mariadb": mariadb}, "accounting": said})
    lab.until("accounting is on", lambda: told(lab) == WELL, 400)
    return time.monotonic() - began


def switch_off(lab: Lab) -> None:
    """Remove accounting from the spec, and wait until slurmctld runs without it and all pods of it are gone."""
    lab.patch("slurmcluster", lab.cluster, {"accounting": None, "images": {"mariadb": None}})
    lab.until("slurmdbd and the database are gone", lambda: not lab.pods("accounting") | lab.pods("database"), 300)
    lab.wait_available(240)


@contextmanager
def owned(lab: Lab, mariadb: str) -> Iterator[float]:
    """Accounting is on meanwhile, with an empty database of the operator; the seconds that it took to be on."""
    throw_away(lab)
    make_volume(lab, f"{lab.cluster}-database")
    try:
        yield switch_on(lab, mariadb, {})
    finally:
        switch_off(lab)


def number(lab: Lab) -> str:
    """By which slurmctld knows the cluster."""
    file = "/var/spool/slurmctld/clustername"
    said = lab.kubectl("exec", f"{lab.cluster}-controller-0", "-c", "slurmctld", "--", "cat", file)
    return said.partition("|")[2]


def given_number(lab: Lab) -> str:
    """By which the operator's database knows it."""
    return asked(lab, f"SELECT id FROM cluster_table WHERE name = '{lab.cluster}'").strip()


def asked(lab: Lab, sql: str) -> str:
    """What the operator's database answers to root of its pod, a line for each row."""
    server = ["mariadb", "--no-defaults", "--socket=/run/mysqld/socket", "-u", "mysql", "-N", "slurm_acct_db"]
    return lab.kubectl("exec", f"{lab.cluster}-database-0", "-c", "mariadb", "--", *server, "-e", sql)


def throw_away(lab: Lab) -> None:
    """Remove the claim of the operator's database, with its volume and all records; accounting is off."""
    remove_volume(lab, f"{lab.cluster}-database")


def remove_volume(lab: Lab, claim: str) -> None:
    """Remove a claim, and the volume that `make_volume` made for it, with its files."""
    lab.kubectl("delete", "pvc", claim, "--ignore-not-found", "--timeout=60s")
    lab.kubectl("delete", "pv", f"{lab.namespace}-{claim}", "--ignore-not-found", "--timeout=60s")
    shutil.rmtree(f"{STATE}/storage/{claim}", ignore_errors=True)


def make_claim(lab: Lab, name: str) -> None:
    """A claim that takes the volume made for it."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "10Gi"}}}
    apply(lab, {"kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec})


def submit(lab: Lab, user: str, count: int, command: str, *options: str) -> set[str]:
    """The numbers of so many batch jobs, whose command holds no quotation mark."""
    words = " ".join(("sbatch --parsable -o /dev/null", *options))
    return set(lab.ssh(user, f"for n in $(seq {count}); do {words} --wrap '{command}'; done").split())


def recorded(lab: Lab) -> dict[str, str]:
    """The state of each job by its number, as the database has it."""
    return dict(line.split("|") for line in lab.ssh("root", f"{SACCT} -o jobid,state").splitlines())


def are_recorded(lab: Lab, jobs: Collection[str]) -> bool:
    """Whether the database has all these jobs, each once and as completed."""
    lines = [line.split("|") for line in lab.ssh("root", f"{SACCT} -D -o jobid,state").splitlines()]
    return sorted(each for each in lines if each[0] in jobs) == sorted([each, "COMPLETED"] for each in jobs)


def wait_idle(lab: Lab, seconds: float = 120) -> None:
    """Wait until no job is queued or runs."""
    lab.until("all jobs have ended", lambda: not lab.ssh("root", "squeue -h").strip(), seconds)
