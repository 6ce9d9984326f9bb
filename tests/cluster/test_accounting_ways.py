"""The same of each kind of database: the operator's own, one elsewhere behind TLS, and a resource of mariadb-operator.

`make test-accounting` asks for it. The report tells what was seen.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.cluster import books, databases
from tests.cluster.conftest import make_user
from tests.cluster.databases import Database
from tests.cluster.lab import Lab, local

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.environ.get("SOPERATOR_ACCOUNTING"), reason="SOPERATOR_ACCOUNTING is not set"),
]

Way = Callable[[Lab, str], AbstractContextManager[Database]]
WAYS: dict[str, Way] = {
    "embedded": databases.embedded,
    "externalDatabase": databases.external,
    "mariadb-operator": databases.operated,
}
JOBS = 15
SETUP = """
sacctmgr -i add account physics
sacctmgr -i add account chemistry
sacctmgr -i add user alice account=physics
sacctmgr -i add user bob account=chemistry
sacctmgr -i modify account physics set GrpTRES=cpu=1
"""


@pytest.fixture(scope="module")
def mariadb(lab: Lab, mariadb: str) -> str:
    """The image, where there are two users."""
    make_user(lab, "bob")
    return mariadb


@pytest.fixture(params=WAYS)
def database(request: pytest.FixtureRequest, lab: Lab, mariadb: str) -> Iterator[Database]:
    """A database of each kind."""
    with WAYS[request.param](lab, mariadb) as made:
        yield made
        books.switch_off(lab)


def test_what_users_see_is_the_same_of_every_database(lab: Lab, mariadb: str, database: Database) -> None:
    """Switched on under a job, a limit told, history of two accounts, and no record missing after the database was killed under load."""
    held = lab.hold("worker-0")
    took = books.switch_on(lab, mariadb, database.said)
    lab.timings.note(f"accounting is switched on: {next(iter(database.said), 'embedded')}", took)
    assert held.state() == "RUNNING"
    held.let_go()
    lab.until(f"job {held.number} is recorded", lambda: books.are_recorded(lab, {held.number}), 60)

    lab.ssh("root", SETUP)
    lab.patch("slurmcluster", lab.cluster, {"accounting": {"enforce": ["associations", "limits", "qos"]}})
    lab.wait_available()
    held = lab.hold("worker-0")
    (waits,) = books.submit(lab, "alice", 1, "true")
    reason = f"squeue -h -j {waits} -o %r"
    lab.until("the limit is told", lambda: lab.ssh("alice", reason).strip() == "AssocGrpCpuLimit", 60)
    jobs = books.submit(lab, "bob", JOBS, "sleep 1")
    local("pod", "kill", f"{database.namespace}/{database.pod}", "mariadb")
    jobs |= books.submit(lab, "bob", JOBS, "true")
    held.let_go()
    books.wait_idle(lab)
    lab.until("the database is back", lambda: books.told(lab) == books.WELL, 120)
    jobs |= {waits, held.number}
    lab.until("every record is there, once", lambda: books.are_recorded(lab, jobs), 90)
    accounts = lab.ssh("root", f"{books.SACCT} -o account -j {','.join(jobs)}").split()
    assert (accounts.count("physics"), accounts.count("chemistry")) == (2, 2 * JOBS)
    assert "alice" in lab.ssh("root", "sshare -a -n -P -o user,rawusage")
