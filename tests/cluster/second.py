"""A second cluster in a namespace of its own, installed by helm on storage of its own, and removed with its files."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local import demo, slurm_release
from local.paths import DEFAULT_STATE
from tests.cluster.lab import Lab

SMALL = {"cpu": "100m", "memory": "256Mi"}


def folder(lab: Lab) -> Path:
    """Where the files of its volumes lie on this machine."""
    return DEFAULT_STATE / "storage" / lab.namespace


def make_storage(lab: Lab) -> None:
    """Volumes and claims for its jail and its state, by the chart for it."""
    settings = [f"cluster={lab.cluster}", f"hostPath.path={folder(lab)}"]
    demo.helm(lab.target, "slurm-cluster-storage", lab.namespace, *settings, name="storage")


def claims(lab: Lab, **jail: Any) -> dict[str, Any]:
    """The part of its spec that names those claims, with further fields of the jail."""
    state = {"state": {"name": f"{lab.cluster}-state"}}
    return {"jail": {"claim": {"name": f"{lab.cluster}-jail"}, **jail}, "controller": state}


def install(
    lab: Lab, spec: Mapping[str, Any], workers: int = 2, requests: Mapping[str, str] = SMALL, wait: str = ""
) -> None:
    """The cluster with this spec, into which root may log in, and one NodeSet; with `wait`, such as 5m, until helm says that both are ready."""
    cluster = slurm_release.with_settings({"login": {"rootAuthorizedKeys": [demo.public_key()]}, **spec})
    nodesets = {"worker": {"replicas": workers, "resources": {"requests": dict(requests)}}}
    values = json.dumps({"cluster": cluster, "nodeSets": nodesets})
    demo.helm(lab.target, "slurm-cluster", lab.namespace, name=lab.cluster, values=values, wait=wait)


def clean(lab: Lab) -> None:
    """Remove both releases, the namespace, its volumes and their files, as far as they are there."""
    for release in (lab.cluster, "storage"):
        words = ("uninstall", release, "--ignore-not-found", "--wait", "--timeout", "90s")
        lab.target.run("helm", "-n", lab.namespace, *words)
    remove(lab)


def remove(lab: Lab) -> None:
    """Remove the namespace with whatever is in it, its volumes and their files."""
    lab.kubectl("delete", "namespace", lab.namespace, "--ignore-not-found", "--timeout=90s")
    volumes = (f"{lab.namespace}-{lab.cluster}-{each}" for each in ("jail", "state"))
    lab.kubectl("delete", "pv", *volumes, "--ignore-not-found")
    shutil.rmtree(folder(lab), ignore_errors=True)
