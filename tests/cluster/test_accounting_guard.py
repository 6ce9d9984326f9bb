"""A database that does not know the cluster gets nothing: it is told, and what slurmctld kept is recorded when accounting was off and is on again.

`make test-accounting` asks for it.
"""

import os
import shutil
import time
from collections.abc import Iterator

import pytest

from local.demo import STATE
from tests.cluster import books
from tests.cluster.lab import Lab, condition

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not os.environ.get("SOPERATOR_ACCOUNTING"), reason="SOPERATOR_ACCOUNTING is not set"),
]

JOBS = 20


@pytest.fixture
def on(lab: Lab, mariadb: str) -> Iterator[None]:
    """Accounting is on, with the operator's database, which has records."""
    with books.owned(lab, mariadb):
        jobs = books.submit(lab, "alice", 2, "true")
        lab.until("jobs are recorded", lambda: books.are_recorded(lab, jobs), 60)
        yield


def is_unknown(lab: Lab) -> bool:
    """Whether the condition says that the database does not know the cluster, and what to do."""
    message = str(condition(lab.status(), "AccountingReady")["message"])
    return books.told(lab) == ("False", "UnknownCluster") and "remove spec.accounting" in message


def begin_anew(lab: Lab, mariadb: str, kept: set[str]) -> None:
    """Switch accounting off and on, and wait for the records of jobs that ran while it was not well."""
    books.switch_off(lab)
    books.switch_on(lab, mariadb, {})
    assert books.number(lab) == books.given_number(lab)
    lab.until("what was kept is recorded", lambda: books.are_recorded(lab, kept), 120)
    later = books.submit(lab, "alice", 2, "true")
    lab.until("what follows is recorded", lambda: books.are_recorded(lab, later), 60)


def test_a_database_that_is_dropped_under_slurmdbd_is_told_and_loses_no_job_of_later(
    lab: Lab, mariadb: str, on: None
) -> None:
    """slurmctld's connection is broken within seconds; it is led to slurmdbd again when that database knows the cluster."""
    books.asked(lab, "DROP DATABASE slurm_acct_db")
    began = time.monotonic()
    lab.until("that is told", lambda: is_unknown(lab), 120)
    lab.timings.note("a database that was dropped is told", time.monotonic() - began)
    kept = books.submit(lab, "alice", JOBS, "sleep 1")
    books.wait_idle(lab)
    assert is_unknown(lab)
    begin_anew(lab, mariadb, kept)


def test_a_volume_that_is_thrown_away_under_accounting_loses_no_job_of_later(lab: Lab, mariadb: str, on: None) -> None:
    """Jobs run while there is no database and while there is an empty one; all are recorded when that is the cluster's."""
    claim, name = f"{lab.cluster}-database", f"{lab.cluster}-database-0"
    nowhere = {"nodeSelector": {"kubernetes.io/hostname": "nowhere"}}
    lab.patch("slurmcluster", lab.cluster, {"accounting": {"managedDatabase": {"scheduling": nowhere}}})
    lab.until("its absence is told", lambda: books.told(lab)[1] == "DatabaseNotReady", 90)
    lab.until(
        "no container of it runs", lambda: not lab.pods("database").get(name, {}).get("spec", {}).get("nodeName"), 90
    )
    kept = books.submit(lab, "alice", JOBS, "sleep 1")
    shutil.rmtree(f"{STATE}/storage/{claim}")
    (STATE / "storage" / claim).mkdir()
    lab.patch("slurmcluster", lab.cluster, {"accounting": {"managedDatabase": {"scheduling": None}}})
    lab.until("the empty one is told", lambda: is_unknown(lab), 180)
    kept |= books.submit(lab, "alice", JOBS, "sleep 1")
    books.wait_idle(lab)
    assert is_unknown(lab)
    begin_anew(lab, mariadb, kept)
