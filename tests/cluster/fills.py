"""Fill claims by the populate Job itself, apart from any cluster, and kill it on the way."""

import json
import os
import random
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.paths import DEFAULT_STATE
from soperator.api.slurmcluster import SlurmClusterSpec
from soperator.render.jail.populate_job import render_populate
from soperator.render.parts.model import Cluster, Defaults
from tests.cluster.lab import OPERATOR, Lab

NAMESPACE = "slurm-populate"
FOLDER = DEFAULT_STATE / "storage" / NAMESPACE


@dataclass(frozen=True)
class Fill:
    """One claim and its Job."""

    lab: Lab
    name: str
    image: str

    @property
    def folder(self) -> Path:
        """The claim's files, as the Nodes keep them."""
        return FOLDER / self.name

    def start(self) -> None:
        """Make volume, claim and Job as the operator would."""
        spec = {"jail": {"claim": {"name": self.name}, "image": self.image}, "images": {"agents": self.image}}
        cluster = Cluster(NAMESPACE, self.name, "none", SlurmClusterSpec.model_validate(spec))
        (job,) = render_populate(cluster, Defaults(*[self.image] * 5))
        del job["metadata"]["ownerReferences"]
        del job["metadata"]["labels"]["app.kubernetes.io/managed-by"]
        items = [*_storage(self.name, self.folder), job]
        self.lab.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def pods(self) -> list[str]:
        """Pods of the Job that have not ended, and are not on their way out."""
        words = ["get", "pods", "-l", f"job-name={self.name}-populate", "-o", "json"]
        found = json.loads(self.lab.kubectl(*words))["items"]
        live = [each for each in found if each["status"].get("phase") in ("Pending", "Running")]
        return [each["metadata"]["name"] for each in live if "deletionTimestamp" not in each["metadata"]]

    def start_and_kill(self, seconds: float, hard: bool) -> bool:
        """Start the Job, kill its pod so long after it has appeared, and say whether there was one.

        Hard is without the Node's word that its processes have ended.
        """
        self.start()
        self.lab.until(f"{self.name} has a pod", self.pods, 30)
        time.sleep(seconds)
        how = ["--grace-period=0", "--force"] if hard else ["--grace-period=1", "--wait=false"]
        names = self.pods()
        for name in names:
            self.lab.tried("delete", "pod", name, *how)
        return bool(names)

    def is_complete(self) -> bool:
        """Whether the Job says that it is."""
        job = self.lab.look("job", f"{self.name}-populate")
        said = {each["type"] for each in job["status"].get("conditions", ()) if each["status"] == "True"}
        assert "Failed" not in said, job["status"]
        return "Complete" in said

    def content(self) -> set[tuple[str, int]]:
        """Every regular file of the jail with its size, and nothing else on the claim but the records."""
        assert sorted(each.name for each in self.folder.iterdir()) == [".soperator", "root"]
        assert sorted(each.name for each in (self.folder / ".soperator").iterdir()) == ["lock", "populated.json"]
        root, found = self.folder / "root", set()
        for folder, _, names in os.walk(root):
            files = [Path(folder, name) for name in names]
            found |= {(str(each.relative_to(root)), each.lstat().st_size) for each in files if not each.is_symlink()}
        return found


def small_image(lab: Lab) -> str:
    """An image with all that a fill needs, small, and on each Node: the operator's own."""
    deployment = json.loads(lab.kubectl("get", "deployment", "soperator", "-n", OPERATOR, "-o", "json"))
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


@contextmanager
def fills(lab: Lab, count: int) -> Iterator[list[Fill]]:
    """So many claims to be filled from the operator's image, which is small and on each Node, in a namespace of their own."""
    here = Lab(lab.target, NAMESPACE, "none", lab.timings)
    image = small_image(lab)
    made = [Fill(here, f"fill-{number}", image) for number in range(count)]
    _clean(here, made)
    lab.kubectl("create", "namespace", NAMESPACE)
    try:
        yield made
    finally:
        _clean(here, made)


def survive(lab: Lab, count: int, chance: random.Random) -> None:
    """Fill `count` claims beside an undisturbed one, kill each Job once at some moment, and compare what came of it.

    Where a Job had ended before its moment came, nothing was killed; that may be so for few.
    """
    with fills(lab, count + 1) as made:
        reference, *victims = made
        reference.start()
        with ThreadPoolExecutor(count) as pool:
            kills = [pool.submit(each.start_and_kill, chance.uniform(0, 4), chance.random() < 0.5) for each in victims]
            killed = [each.result() for each in kills]
        assert sum(killed) > count // 2, killed
        for each in made:
            lab.until(f"Job of {each.name} complete", each.is_complete, 150)
        expected = reference.content()
        for each in victims:
            assert each.content() == expected, each.name


def _storage(name: str, folder: Path) -> list[dict[str, Any]]:
    claim: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = claim | {
        "capacity": {"storage": "1Gi"},
        "claimRef": {"namespace": NAMESPACE, "name": name},
        "hostPath": {"path": str(folder), "type": "DirectoryOrCreate"},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    claim |= {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": f"{NAMESPACE}-{name}"}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"{NAMESPACE}-{name}"}, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": claim,
        },
    ]


def _clean(lab: Lab, made: list[Fill]) -> None:
    lab.tried("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=90s")
    lab.tried("delete", "pv", *(f"{NAMESPACE}-{each.name}" for each in made), "--ignore-not-found")
    shutil.rmtree(FOLDER, ignore_errors=True)
