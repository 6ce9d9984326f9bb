"""Deletions while jobs run: a NodeSet, a cluster, a namespace, a cluster whose slurmctld will never run again, the operator itself."""

import time
from collections.abc import Iterator

import pytest

from local import demo
from local.paths import DEFAULT_STATE
from tests.cluster import second
from tests.cluster.conftest import make_user
from tests.cluster.lab import OPERATOR, PAIR, Held, Lab

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

NAMESPACE, CLUSTER = "slurm-ending", "ending"
FOLDER = DEFAULT_STATE / "storage" / NAMESPACE


@pytest.fixture(scope="module")
def spare(lab: Lab) -> Iterator[Lab]:
    """The name of a second cluster, and storage for it; whatever a test leaves is removed at the end."""
    if not lab.target.is_local:
        pytest.skip("a foreign cluster has storage of its own")
    made = Lab(lab.target, NAMESPACE, CLUSTER, lab.timings)
    yield made
    second.remove(made)


def install(lab: Lab) -> Held:
    """Install the second cluster, in which a user has a job that runs until it is let go."""
    lab.__dict__.pop("address", None)
    second.make_storage(lab)
    second.install(lab, second.claims(lab), workers=1, requests={"cpu": "50m", "memory": "1Gi"})
    lab.wait_available(120)
    make_user(lab, "erin")
    lab.ssh("root", "scancel -u erin")  # the state's claim stays, and a job that was given up waits in it
    return lab.hold("worker-0", "erin")


def left(lab: Lab) -> list[str]:
    """The objects of the cluster that are still there, but for its claims."""
    kinds = "slurmclusters,nodesets,pods,statefulsets,deployments,services,configmaps,jobs"
    names = lab.kubectl("get", kinds, "--ignore-not-found", "-o", "name").split()
    return [name for name in names if name != "configmap/kube-root-ca.crt"]


def remove(lab: Lab, kind: str, name: str) -> None:
    """`kubectl delete` that does not wait."""
    lab.kubectl("delete", kind, name, "--wait=false")


def test_a_nodeset_that_is_deleted_lets_its_job_end(lab: Lab, alice: str) -> None:
    """The idle worker goes, the busy one stays and it is said why; then pods, records and the NodeSet go."""
    done = lab.apply("NodeSet", "leave", {"clusterRef": {"name": lab.cluster}, "replicas": 2, "resources": PAIR})
    assert done.returncode == 0, done.stderr
    lab.wait_available()
    held = lab.hold("leave-1")
    remove(lab, "nodeset", "leave")
    lab.until("the idle worker is gone", lambda: "demo-leave-0" not in lab.pods("worker"), 30)
    words = "the NodeSet is being deleted"
    lab.until("the NodeSet says why", lambda: words in lab.says("nodeset", "leave"), 20)
    assert held.state() == "RUNNING"
    held.let_go()
    lab.timed("NodeSet deleted: its job has ended → it is gone", lambda: not lab.look("nodeset", "leave"), 60)
    assert "leave" not in lab.ssh(alice, "sinfo -h -N -o %N")
    lab.wait_available()


def test_without_the_operator_clusters_go_on_and_a_deletion_waits_for_it_and_for_the_job(
    lab: Lab, spare: Lab, alice: str
) -> None:
    """After `helm uninstall soperator` jobs run and are submitted, and a deleted cluster stays as it is. A new operator disturbs nothing,
    keeps the deleted cluster's slurmctld until its job has ended by itself, and then leaves nothing but the claims.
    """
    held, kept = install(spare), lab.hold("worker-0")
    before = uids(lab)
    lab.target.run("helm", "uninstall", "soperator", "-n", OPERATOR, "--wait")
    try:
        assert lab.ssh(alice, "srun -w worker-1 hostname") == "worker-1\n"
        remove(spare, "slurmcluster", CLUSTER)
        remove(spare, "nodeset", "worker")
        time.sleep(3)
        assert "ending-worker-0" in spare.pods("worker")
    finally:
        demo.helm(lab.target, "soperator", OPERATOR, *demo.image_settings(lab.target))
    spare.until("it says why", lambda: "workers left: 1" in spare.says("slurmcluster", CLUSTER), 60)
    assert (held.state(), kept.state()) == ("RUNNING", "RUNNING")
    spare.ssh("erin", f"touch go-{spare.cluster}-{held.number}")
    spare.timed("cluster deleted: its job has ended → nothing is left", lambda: not left(spare), 90)
    output = FOLDER / f"{CLUSTER}-jail" / "root" / "home" / "erin" / f"held-{held.number}.out"
    assert output.read_text().splitlines() == ["began on worker-0", "ended on worker-0"]
    lab.wait_available()
    assert uids(lab) == before
    kept.let_go()


def uids(lab: Lab) -> dict[str, str]:
    """Every pod of the cluster, with its identity."""
    return {name: pod["metadata"]["uid"] for name, pod in lab.pods().items()}


def test_a_cluster_whose_slurmctld_never_runs_again_goes_when_a_person_gives_its_jobs_up(spare: Lab) -> None:
    """Its Node selector fits no Node, so nobody can be asked: it waits, says for what, and the annotation ends that."""
    install(spare)
    spare.patch("slurmcluster", CLUSTER, {"controller": {"scheduling": {"nodeSelector": {"nowhere": "yes"}}}})
    spare.until("slurmctld does not run", lambda: "slurmctld 0/1" in spare.says("slurmcluster", CLUSTER))
    remove(spare, "slurmcluster", CLUSTER)
    remove(spare, "nodeset", "worker")
    time.sleep(5)
    assert spare.look("nodeset", "worker")
    assert "ending-worker-0" in spare.pods("worker")
    spare.kubectl("annotate", "nodeset,slurmcluster", "--all", "slurm.soperator.io/abandon-jobs=true")
    spare.timed("jobs given up → nothing is left", lambda: not left(spare), 90)


def test_a_namespace_that_is_deleted_goes_with_all_that_is_in_it(spare: Lab) -> None:
    """Kubernetes ends the pods, and no finalizer of ours holds it up."""
    install(spare)
    remove(spare, "namespace", NAMESPACE)
    spare.timed("namespace deleted → gone", lambda: not spare.look("namespace", NAMESPACE), 90)
    spare.kubectl(
        "delete", "pv", *(f"{NAMESPACE}-{CLUSTER}-{each}" for each in ("jail", "state")), "--ignore-not-found"
    )
