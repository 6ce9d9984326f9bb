"""Bad input is refused at apply, or shown within seconds with object, field, value and remedy; nothing that runs is touched."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.lab import Lab, condition, says

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("untouched")]

SECONDS = 5.0
GONE = "--ignore-not-found", "--wait=true", "--timeout=60s"


@pytest.fixture
def make(lab: Lab) -> Iterator[Callable[..., None]]:
    """Make one of our objects, and remove it at the end."""
    made: list[tuple[str, str]] = []

    def make(kind: str, name: str, **spec: Any) -> None:
        made.append((kind, name))
        done = lab.apply(kind, name, spec)
        assert done.returncode == 0, done.stderr

    yield make
    for kind, name in reversed(made):
        lab.kubectl("delete", kind, name, *GONE)


@pytest.fixture
def edit(lab: Lab) -> Iterator[Callable[[dict[str, Any], dict[str, Any]], None]]:
    """Edit the running SlurmCluster, and take the edit back at the end."""
    undo: list[dict[str, Any]] = []

    def edit(spec: dict[str, Any], back: dict[str, Any]) -> None:
        undo.append(back)
        lab.patch("slurmcluster", lab.cluster, spec)

    yield edit
    for back in undo:
        lab.patch("slurmcluster", lab.cluster, back)


def shows(
    lab: Lab,
    kind: str,
    name: str,
    said: Callable[[dict[str, Any]], str],
    words: tuple[str, ...],
    seconds: float = SECONDS,
) -> None:
    """Wait until a sentence of a status holds all words; it has to within seconds of the change, which was the last act."""
    began = time.monotonic()
    lab.until(
        f"{kind} {name} says {words}",
        lambda: all(word in said(lab.status(kind, name)) for word in words),
        seconds,
    )
    lab.timings.note(f"{kind} {name} tells of {words[1]}", time.monotonic() - began)


def why(status: dict[str, Any]) -> str:
    """What kubectl's column and the conditions say."""
    return says(status)


def accepted(status: dict[str, Any]) -> str:
    """What is wrong with the spec, of an object whose spec is refused."""
    found = condition(status, "SpecAccepted")
    return str(found["message"]) if found["status"] == "False" else ""


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"auth": {"type": "none"}}, ("auth.type", "none", "slurm")),
        ({"login": {"replicas": -1}}, ("login.replicas", "-1")),
        ({"jail": {"claim": {"name": "another"}}}, ("claim", "cannot be changed")),
    ],
    ids=["unknown value", "negative number", "another claim"],
)
def test_what_the_schema_forbids_is_refused_at_apply(lab: Lab, spec: dict[str, Any], words: tuple[str, ...]) -> None:
    """`kubectl apply` of a wrong edit of the running cluster fails with field, value and remedy."""
    done = lab.apply("SlurmCluster", lab.cluster, spec)
    assert done.returncode != 0
    assert [word for word in words if word not in done.stderr] == [], done.stderr


def test_a_misspelt_field_is_refused_at_apply(lab: Lab) -> None:
    """A field that does not exist is named."""
    done = lab.apply("NodeSet", "misspelt", {"clusterRef": {"name": lab.cluster}, "replicsa": 1})
    assert done.returncode != 0
    assert "replicsa" in done.stderr


def test_a_partition_over_an_unknown_nodeset_is_told(lab: Lab, edit: Callable[..., None]) -> None:
    """The condition names the place in the list, the NodeSet and those that there are; the cluster stays available."""
    edit({"partitions": [{"name": "odd", "nodeSets": ["worker", "nobody"]}]}, {"partitions": None})
    words = (f"SlurmCluster {lab.cluster}", "spec.partitions[0].nodeSets[1]", "nobody", "existing: worker", "create it")
    shows(lab, "slurmcluster", lab.cluster, accepted, words)
    assert condition(lab.status(), "Available")["status"] == "True"
    assert "odd" not in lab.ssh("alice", "sinfo -h")


def test_a_line_that_contradicts_ours_is_told(lab: Lab, edit: Callable[..., None]) -> None:
    """The condition names the line of the extra slurm.conf, its setting and the remedy; the cluster stays available."""
    edit({"config": {"extraLines": {"slurm": "# ours\nClusterName=other\n"}}}, {"config": None})
    words = (
        f"SlurmCluster {lab.cluster}",
        "spec.config.extraLines.slurm, line 2",
        "ClusterName=other",
        "remove the line",
    )
    shows(lab, "slurmcluster", lab.cluster, accepted, words)
    assert condition(lab.status(), "Available")["status"] == "True"


def test_a_missing_claim_is_told(lab: Lab, make: Callable[..., None]) -> None:
    """A SlurmCluster whose claim is not there says which, makes nothing, and begins when told otherwise."""
    make("SlurmCluster", "claimless", jail={"claim": {"name": "nowhere"}})
    words = ("SlurmCluster claimless", "spec.jail.claim.name", "nowhere", "create it")
    shows(lab, "slurmcluster", "claimless", why, words)
    made = lab.kubectl(
        "get", "pods,statefulsets,configmaps", "-l", "slurm.soperator.io/cluster=claimless", "-o", "name"
    )
    assert made == ""


def test_a_missing_claim_of_a_submount_is_told(lab: Lab, make: Callable[..., None]) -> None:
    """A NodeSet with a submount of a claim that is not there says which."""
    make("NodeSet", "mounting", clusterRef={"name": lab.cluster}, submounts=[{"path": "/data", "claimName": "nowhere"}])
    words = ("NodeSet mounting", "spec.submounts[0].claimName", "nowhere", "create it")
    shows(lab, "nodeset", "mounting", why, words)


def test_a_nodeset_without_its_cluster_is_told(lab: Lab, make: Callable[..., None]) -> None:
    """The NodeSet names the cluster that is not there, and those that are."""
    make("NodeSet", "lost", clusterRef={"name": "nobody"})
    shows(lab, "nodeset", "lost", why, ("NodeSet lost", "spec.clusterRef.name", "nobody", f"existing: {lab.cluster}"))


def test_two_nodesets_that_claim_one_pod_name_are_told(lab: Lab, make: Callable[..., None]) -> None:
    """The younger of two NodeSets whose pods would have the same names says so."""
    make("NodeSet", "b", clusterRef={"name": "demo-z"}, replicas=0)
    make("NodeSet", "z-b", clusterRef={"name": "demo"}, replicas=1)
    shows(lab, "nodeset", "z-b", why, ("NodeSet z-b", "metadata.name", "demo-z-b-<n>", "choose another name"))
    make("NodeSet", "worker-1", clusterRef={"name": "demo"}, replicas=1)
    shows(
        lab, "nodeset", "worker-1", why, ("NodeSet worker-1", "metadata.name", "Slurm node worker-1 of NodeSet worker")
    )


def test_an_image_that_does_not_exist_is_told(lab: Lab, make: Callable[..., None]) -> None:
    """The NodeSet names the pod, the container and the image; the workers that run go on, and the cluster says what it misses."""
    make("NodeSet", "ghost", clusterRef={"name": lab.cluster}, image="localhost/nothing:1")
    shows(lab, "nodeset", "ghost", why, ("demo-ghost-0", "localhost/nothing:1", "spec.image"))
    assert condition(lab.status(), "Available")["status"] == "True"
    lab.until("the cluster tells too", lambda: "localhost/nothing:1" in why(lab.status()), 10)


def test_a_volume_that_cannot_be_mounted_is_told(lab: Lab, make: Callable[..., None]) -> None:
    """Kubernetes says it in Events alone; the NodeSet says it too, where the pod would be starting for ever."""
    volumes = [{"name": "extra", "configMap": {"name": "nowhere"}}]
    mounts = [{"name": "extra", "mountPath": "/extra"}]
    make("NodeSet", "mountless", clusterRef={"name": lab.cluster}, replicas=1, volumes=volumes, volumeMounts=mounts)
    shows(lab, "nodeset", "mountless", why, ("demo-mountless-0", "a volume cannot be mounted", "nowhere"), 15.0)
