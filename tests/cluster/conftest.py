"""The cluster that the tests of this folder share, and the order in which they use it: cheap ones first, those that break things last."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local import demo
from local.demo import CLUSTER, KEY, NAMESPACE, STATE, Target, local_target
from tests.cluster import books
from tests.cluster.lab import OPERATOR, Held, Lab, Timings

ORDER = (
    "crds",
    "jobs",
    "logs",
    "jail",
    "packages",
    "job_spaces",
    "gpu_devices",
    "submounts",
    "deep",
    "driver",
    "per_node",
    "rights",
    "ssh",
    "containers",
    "isolation",
    "limits",
    "health",
    "escape",
    "slurm_ways",
    "host_users",
    "idle",
    "bad_input",
    "partitions",
    "healthcheck",
    "configuration",
    "scale",
    "mixed",
    "outside",
    "giveway",
    "power",
    "power_faults",
    "rollout",
    "upgrade",
    "change",
    "refill",
    "sick_jail",
    "room",
    "metrics",
    "kill_jobs",
    "standby",
    "kills",
    "directory",
    "accounting",
    "rest_users",
    "accounting_ways",
    "accounting_faults",
    "accounting_guard",
    "accounting_more",
    "tenancy",
    "backup",
    "munge",
    "bookworm",
    "newer_slurm",
    "endings",
    "forgotten",
    "faults",
    "node",
)
TIMINGS = Timings()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests of this folder and those below by file, one that has no place just before the last; all others stay where they are."""
    ranks = {f"test_{name}": rank for rank, name in enumerate(ORDER)}
    ours = [item for item in items if Path(__file__).parent in item.path.parents]
    places = iter(sorted(ours, key=lambda item: ranks.get(item.path.stem, len(ORDER) - 1.5)))
    chosen = set(ours)
    items[:] = [next(places) if item in chosen else item for item in items]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured."""
    if TIMINGS.lines:
        terminalreporter.section("seconds", sep="-")
        terminalreporter.write_line("\n".join(TIMINGS.lines))


@pytest.fixture(scope="session")
def target() -> Target:
    """The Kubernetes cluster: the local one as `make demo` left it, or that of KUBECONFIG."""
    given = os.environ.get("KUBECONFIG", "")
    if given and given != str(STATE / "kubeconfig"):
        return Target(given, os.environ["PATH"], is_local=False)
    return local_target()


@pytest.fixture(scope="session")
def lab(target: Target) -> Lab:
    """The Slurm cluster `demo`, whole; where it is not there it is brought up as `make demo` does it."""
    lab = Lab(target, NAMESPACE, CLUSTER, TIMINGS)
    if not KEY.exists() or not STATE.joinpath("kubeconfig").exists() or not lab.look("slurmcluster", CLUSTER):
        clock = demo.Clock()
        demo.install(demo.prepare(clock), clock, "slurm")
    lab.kubectl("rollout", "status", "deployment/soperator", "-n", OPERATOR, "--timeout=120s")
    lab.until("the operator that is installed leads", lambda: is_led(lab), 60)
    lab.wait_available(300)
    return lab


def is_led(lab: Lab) -> bool:
    """Whether the operator that holds the Lease is one that runs, and has had the time for a pass."""
    lease = json.loads(lab.kubectl("get", "lease", "soperator", "-n", OPERATOR, "-o", "json"))["spec"]
    since = datetime.now(UTC) - datetime.fromisoformat(lease["acquireTime"])
    return lease["holderIdentity"].split("_")[0] in lab.pods(namespace=OPERATOR) and since.total_seconds() > 5


@pytest.fixture(scope="module")
def alice(lab: Lab) -> Iterator[str]:
    """An ordinary user, made by root in the jail over SSH; what a failed test left running of hers ends with the module."""
    make_user(lab, "alice")
    yield "alice"
    lab.ssh("alice", "scancel --me; rm -f go-* held-*.out")


def make_user(lab: Lab, name: str) -> None:
    """Make a user who can log in with the demo's key."""
    lab.ssh("root", f"createuser {name} '{demo.public_key()}'")


@pytest.fixture(scope="module")
def mariadb(lab: Lab, alice: str) -> str:
    """The image of MariaDB, on the Nodes of this cluster."""
    if not lab.target.is_local:
        pytest.skip("the image of MariaDB is not in a foreign cluster")
    return books.bring_image()


@pytest.fixture(scope="module")
def bystander(lab: Lab, alice: str) -> Iterator[Held]:
    """A job on worker-1 that runs through a whole module, and ends by itself after it."""
    held = lab.hold("worker-1")
    yield held
    held.let_go()
    lab.wait_available()


@pytest.fixture
def untouched(lab: Lab, bystander: Held) -> Iterator[None]:
    """Check that a test left every pod of the cluster and its configuration as they were, and the job running."""
    before = _running(lab)
    yield
    assert _running(lab) == before
    assert bystander.state() == "RUNNING"


def _running(lab: Lab) -> dict[str, object]:
    found = {}
    for role in ("controller", "rest", "login", "worker"):
        for name, pod in lab.pods(role).items():
            if pod["metadata"]["labels"].get("slurm.soperator.io/nodeset", "worker") == "worker":
                starts = [each["restartCount"] for each in pod["status"].get("containerStatuses", ())]
                found[name] = (pod["metadata"]["uid"], starts)
    config = json.loads(lab.kubectl("get", "configmap", f"{lab.cluster}-config", "-o", "json"))
    return found | {"config": config["metadata"]["resourceVersion"]}
